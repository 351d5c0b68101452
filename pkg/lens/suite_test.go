// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	machinefactory "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/test/sim"
)

// suite is what synctest wants to know; specs run while TestLens does.
var suite *testing.T

func TestLens(t *testing.T) {
	suite = t
	quiet := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(quiet)
	_ = quiet.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"})
	klog.SetOutput(io.Discard)
	RegisterFailHandler(Fail)
	RunSpecs(t, "Lens")
}

const ns = "shoot"

var machineResource = v1alpha1.Resource("machines")

// lensWorld is a consistent clientset with its informers running, and others' way around it.
type lensWorld struct {
	context.Context
	server    *sim.Server
	client    *lens.Consistent
	informers machineinformers.Interface
	others    machineclient.MachineV1alpha1Interface
	metrics   *prometheus.Registry
	stop      context.CancelFunc
	log       ktesting.Buffer
}

// details are the keys and values of the last message.
func (w lensWorld) details() map[string]string {
	GinkgoHelper()
	entries := w.log.Data()
	Expect(entries).NotTo(BeEmpty())
	all, pairs := map[string]string{}, entries[len(entries)-1].ParameterKVList
	for i := 0; i < len(pairs); i += 2 {
		all[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
	}
	return all
}

// logged are the messages of a clientset about itself.
func (w lensWorld) logged() (messages []string) {
	for _, entry := range w.log.Data() {
		messages = append(messages, entry.Message)
	}
	return messages
}

// inWorld runs a body in virtual time, which is free to stop the clientset. Changes are of the informers that it follows.
func inWorld(seed uint64, body func(lensWorld), changes ...func(machineinformers.Interface) machineinformers.Interface) {
	inWorldWith(lens.Options{}, seed, body, changes...)
}

// inWorldWith is inWorld with options of the clientset.
func inWorldWith(options lens.Options, seed uint64, body func(lensWorld), changes ...func(machineinformers.Interface) machineinformers.Interface) {
	synctest.Test(suite, func(*testing.T) {
		defer GinkgoRecover()
		server := sim.New(sim.Options{Seed: seed, Resources: sim.Machine})
		defer server.Close()
		logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logger))
		defer stop()
		w := lensWorld{Context: ctx, server: server, stop: stop, metrics: prometheus.NewRegistry(), log: logger.GetSink().(ktesting.Underlier).GetBuffer()}
		w.others = versioned.NewForConfigOrDie(server.ConfigFor("others")).MachineV1alpha1()
		options.Registerer = w.metrics
		w.client = lens.New(ctx, versioned.NewForConfigOrDie(server.ConfigFor("ours")), options)
		factory := machinefactory.NewFilteredSharedInformerFactory(w.client, 0, ns, nil)
		followed := factory.Machine().V1alpha1()
		for _, change := range changes {
			followed = change(followed)
		}
		bound, err := w.client.Bind(followed)
		Expect(err).NotTo(HaveOccurred())
		w.informers = bound
		// The informers outlive the clientset's context, as those of a process on its way out may.
		life, end := context.WithCancel(context.Background())
		factory.Start(life.Done())
		defer factory.Shutdown()
		defer end()
		Expect(cache.WaitFor(ctx, "",
			bound.Machines().Informer().HasSyncedChecker(),
			bound.MachineSets().Informer().HasSyncedChecker(),
			bound.MachineDeployments().Informer().HasSyncedChecker(),
		)).To(BeTrue())
		body(w)
	})
}

func (w lensWorld) machines() machineclient.MachineInterface {
	return w.client.MachineV1alpha1().Machines(ns)
}

// stored are the machines there really are.
func (w lensWorld) stored() []v1alpha1.Machine {
	list, err := w.others.Machines(ns).List(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

func machine(name string, finalizers ...string) *v1alpha1.Machine {
	yes := true
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: ns, Finalizers: finalizers,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "machine.sapcloud.io/v1alpha1", Kind: "MachineSet", Name: "pool", UID: types.UID("pool-uid"), Controller: &yes,
		}},
	}}
}

// unnamed is a machine as the MachineSet controller asks for one.
func unnamed() *v1alpha1.Machine {
	m := machine("")
	m.GenerateName = "pool-"
	return m
}

// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/test/sim"
)

const garden = "garden"

// cloud is the identity under which the driver writes.
const cloud = "cloud"

// world is one API server, as control and target cluster, and a driver that runs on it, in a bubble.
type world struct {
	server   *sim.Server
	core     kubernetes.Interface
	machines versioned.Interface
	client   *sim.Client // of the present process
	driver   *Driver
	events   *record.FakeRecorder
	end      context.CancelFunc
	ended    chan error
}

// inWorld runs a spec with a driver at work; all ends before it does.
func inWorld(spec func(w *world)) func() {
	return bubble(func() {
		w := newWorld()
		defer w.server.Close()
		w.start()
		defer w.stop()
		spec(w)
	})
}

func newWorld() *world {
	server := sim.New(sim.Options{Seed: 1})
	return &world{
		server: server, core: kubernetes.NewForConfigOrDie(server.ConfigFor("user")),
		machines: versioned.NewForConfigOrDie(server.ConfigFor("user")), events: record.NewFakeRecorder(100),
	}
}

// fresh is a driver without memory.
func (w *world) fresh() *Driver {
	w.client = w.server.Client(cloud)
	config := w.client.Config()
	core := kubernetes.NewForConfigOrDie(config)
	return New(Options{
		Namespace: garden, Control: core, Target: core, Recorder: w.events,
		Machines: versioned.NewForConfigOrDie(config).MachineV1alpha1(),
	})
}

// start loads and runs a new process.
func (w *world) start() {
	GinkgoHelper()
	w.driver = w.fresh()
	ctx, cancel := context.WithCancel(context.Background())
	w.end, w.ended = cancel, make(chan error, 1)
	Expect(w.driver.LoadRecords(ctx)).To(Succeed())
	go func() { w.ended <- w.driver.Run(ctx) }()
	synctest.Wait()
}

// stop ends the process; what it knew is forgotten.
func (w *world) stop() {
	GinkgoHelper()
	w.end()
	Expect(<-w.ended).To(Succeed())
}

// after lets time pass and all that follows from it happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func class(name, providerSpec string) *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Name: name, Namespace: garden},
		ProviderSpec: runtime.RawExtension{Raw: []byte(providerSpec)},
	}
}

// booting in ten seconds.
var slow = class("pool", with(`"bootDelay":"10s"`))

func named1(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: garden}}
}

func (w *world) create(name string, class *v1alpha1.MachineClass) error {
	_, err := w.driver.CreateMachine(context.Background(), &driver.CreateMachineRequest{Machine: named1(name), MachineClass: class})
	return err
}

func (w *world) delete(name string) error {
	_, err := w.driver.DeleteMachine(context.Background(), &driver.DeleteMachineRequest{Machine: named1(name), MachineClass: slow})
	return err
}

func (w *world) status(name string) error {
	_, err := w.driver.GetMachineStatus(context.Background(), &driver.GetMachineStatusRequest{Machine: named1(name), MachineClass: slow})
	return err
}

func (w *world) list(class *v1alpha1.MachineClass) map[string]string {
	GinkgoHelper()
	list, err := w.driver.ListMachines(context.Background(), &driver.ListMachinesRequest{MachineClass: class})
	Expect(err).NotTo(HaveOccurred())
	return list.MachineList
}

// node is nil where there is none.
func (w *world) node(name string) *corev1.Node {
	GinkgoHelper()
	node, err := w.core.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return node
}

func (w *world) condition(node string, kind corev1.NodeConditionType) corev1.ConditionStatus {
	GinkgoHelper()
	for _, c := range w.node(node).Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// suffer writes the ConfigMap of faults.
func (w *world) suffer(faults string) {
	GinkgoHelper()
	ctx, configs := context.Background(), w.core.CoreV1().ConfigMaps(garden)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: FaultsConfigMap, Namespace: garden}, Data: map[string]string{FaultsKey: faults}}
	_, err := configs.Update(ctx, config, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configs.Create(ctx, config, metav1.CreateOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
	synctest.Wait()
}

// kill ends the process such that nothing it still does takes effect.
func (w *world) kill() {
	GinkgoHelper()
	w.client.Cut()
	w.stop()
}

// writes of the driver that changed something.
func (w *world) writes() int {
	n := 0
	for _, write := range w.server.Writes() {
		if write.User == cloud && !write.NoOp() {
			n++
		}
	}
	return n
}

// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

const ns = fixture.Namespace

var (
	machinesResource    = v1alpha1.SchemeGroupVersion.WithResource("machines")
	deploymentsResource = v1alpha1.SchemeGroupVersion.WithResource("machinedeployments")
)

// world is a server, a client that shows views, and others' plain client.
type world struct {
	context.Context
	server *sim.Server
	seen   machineclient.MachineV1alpha1Interface
	raw    machineclient.MachineV1alpha1Interface
	stop   context.CancelFunc

	clientset *view.Clientset
}

// inWorld runs a body in virtual time, with a Machine m in reserve and a MachineDeployment pool with excess.
func inWorld(body func(world)) { bornInWorld(view.CreationOptions{}, body) }

func bornInWorld(births view.CreationOptions, body func(world)) {
	inWorldWith(view.Options{CreationOptions: births}, body)
}

// inWorldWith is inWorld with options of the clientset.
func inWorldWith(options view.Options, body func(world)) {
	synctest.Test(suite, func(*testing.T) {
		defer GinkgoRecover()
		server := sim.New(sim.Options{Seed: 1, Resources: sim.Machine})
		defer server.Close()
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		w := world{Context: ctx, server: server, stop: stop}
		w.raw = versioned.NewForConfigOrDie(server.ConfigFor("others")).MachineV1alpha1()
		w.clientset = view.New(ctx, versioned.NewForConfigOrDie(server.ConfigFor("ours")), options)
		w.seen = w.clientset.MachineV1alpha1()
		_, err := w.raw.Machines(ns).Create(ctx, pool.Mark(fixture.Machine("m"), reserve), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = w.raw.MachineDeployments(ns).Create(ctx, withExcess(3, "2"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = w.raw.MachineDeployments(ns).Patch(ctx, "pool", types.MergePatchType, []byte(`{"spec":{"excessReplicas":2},"status":{"later":1}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = w.raw.MachineDeployments(ns).Patch(ctx, "pool", types.MergePatchType, []byte(`{"status":{"excessReplicas":2}}`), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
		body(w)
	})
}

func (w world) machine() *v1alpha1.Machine {
	GinkgoHelper()
	m, err := w.seen.Machines(ns).Get(w, "m", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return m
}

func (w world) deployment() *v1alpha1.MachineDeployment {
	GinkgoHelper()
	d, err := w.seen.MachineDeployments(ns).Get(w, "pool", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d
}

// whole checks that all that is hidden is stored.
func (w world) whole() {
	GinkgoHelper()
	m, err := w.raw.Machines(ns).Get(w, "m", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(markOf(m)).To(Equal(reserve))
	Expect(template(m).Spec.Taints).To(ContainElement(taint))
	Expect(template(m).Annotations).To(HaveKeyWithValue(keep, "true"))
	d := w.server.Get(deploymentsResource, ns, "pool")
	Expect(d.GetAnnotations()).To(HaveKeyWithValue(machine.AppliedExcessAnnotation, "2"))
	Expect(d.GetAnnotations()).To(HaveKeyWithValue(machine.BoundsAnnotation, "1:9:2"))
	Expect(d.Object["spec"].(tree)["replicas"]).To(BeEquivalentTo(3))
	Expect(d.Object["spec"].(tree)["excessReplicas"]).To(BeEquivalentTo(2))
	Expect(d.Object["status"].(tree)["excessReplicas"]).To(BeEquivalentTo(2))
}

func isViewOfMachine(m *v1alpha1.Machine) {
	GinkgoHelper()
	Expect(template(m).Spec.Taints).NotTo(ContainElement(taint))
	Expect(template(m).Annotations).NotTo(HaveKey(keep))
	Expect(m.Annotations).NotTo(HaveKey(machine.ReserveAnnotation))
}

func isViewOfDeployment(d *v1alpha1.MachineDeployment) {
	GinkgoHelper()
	Expect(d.Spec.Replicas).To(Equal(int32(5)))
	Expect(d.Annotations).NotTo(HaveKey(HavePrefix(machine.AnnotationPrefix)))
}

var _ = Describe("The client of the controllers", func() {
	It("shows views, however it is read", func() {
		inWorld(func(w world) {
			isViewOfMachine(w.machine())
			isViewOfDeployment(w.deployment())
			machines, err := w.seen.Machines(ns).List(w, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			isViewOfMachine(&machines.Items[0])
			deployments, err := w.seen.MachineDeployments(ns).List(w, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			isViewOfDeployment(&deployments.Items[0])
		})
	})

	It("watches views: added, modified and deleted", func() {
		inWorld(func(w world) {
			machines, err := w.seen.Machines(ns).Watch(w, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			deployments, err := w.seen.MachineDeployments(ns).Watch(w, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			_, err = w.raw.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(w.raw.Machines(ns).Delete(w, "m", metav1.DeleteOptions{})).To(Succeed())
			Expect(w.raw.MachineDeployments(ns).Delete(w, "pool", metav1.DeleteOptions{})).To(Succeed())
			for _, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
				e := <-machines.ResultChan()
				Expect(string(e.Type)).To(Equal(kind))
				isViewOfMachine(e.Object.(*v1alpha1.Machine))
			}
			for _, kind := range []string{"ADDED", "DELETED"} {
				e := <-deployments.ResultChan()
				Expect(string(e.Type)).To(Equal(kind))
				isViewOfDeployment(e.Object.(*v1alpha1.MachineDeployment))
			}
			machines.Stop()
			machines.Stop() // as reflectors do
			deployments.Stop()
		})
	})

	It("ends a watch that has no reader any more, and one that the server ends", func() {
		inWorld(func(w world) {
			unread, err := w.seen.Machines(ns).Watch(w, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			synctest.Wait()
			unread.Stop()
			ended, err := w.seen.Machines(ns).Watch(w, metav1.ListOptions{ResourceVersion: w.server.Version()})
			Expect(err).NotTo(HaveOccurred())
			w.server.Compact()
			for e := range ended.ResultChan() {
				Expect(string(e.Type)).To(Equal("ERROR"))
				Expect(e.Object).To(BeAssignableToTypeOf(&metav1.Status{}))
			}
		}) // what still ran would be a deadlock
	})

	It("shows MachineSets as they are", func() {
		inWorld(func(w world) {
			set := &v1alpha1.MachineSet{}
			set.Name, set.Spec.Replicas = "set", 5
			set.Annotations = map[string]string{machine.BoundsAnnotation: "leaked by stock"}
			made, err := w.seen.MachineSets(ns).Create(w, set, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(made.Annotations).To(Equal(set.Annotations))
		})
	})

	It("answers with an object that has a name to read, whatever fails", func() {
		inWorld(func(w world) {
			m, err := w.seen.Machines(ns).Get(w, "none", metav1.GetOptions{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue())
			Expect(m.Name).To(BeEmpty())
			m, err = w.seen.Machines(ns).Update(w, fixture.Machine("none"), metav1.UpdateOptions{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue())
			Expect(m.Name).To(BeEmpty())
			d, err := w.seen.MachineDeployments(ns).UpdateStatus(w, fixture.MachineDeployment("none", 1), metav1.UpdateOptions{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue())
			Expect(d.Name).To(BeEmpty())
		})
	})
})

// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/sim"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
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

	It("ends a watch that nobody reads any more, and one that the server ends", func() {
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

	DescribeTable("lays what is written to a MachineDeployment over what is stored",
		func(write func(world, *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error), done func(*v1alpha1.MachineDeployment) bool) {
			inWorld(func(w world) {
				d, err := write(w, w.deployment())
				Expect(err).NotTo(HaveOccurred())
				isViewOfDeployment(d)
				Expect(done(d)).To(BeTrue())
				w.whole()
				isViewOfDeployment(w.deployment())
			})
		},
		Entry("finalizers", func(w world, d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
			d.Finalizers = append(d.Finalizers, "machine.sapcloud.io/x")
			return w.seen.MachineDeployments(ns).Update(w, d, metav1.UpdateOptions{})
		}, func(d *v1alpha1.MachineDeployment) bool { return len(d.Finalizers) == 1 }),
		Entry("the trigger annotation, emptied", func(w world, d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
			d.Annotations = map[string]string{"node.machine.sapcloud.io/trigger-deletion-by-mcm": ""}
			return w.seen.MachineDeployments(ns).Update(w, d, metav1.UpdateOptions{})
		}, func(d *v1alpha1.MachineDeployment) bool { return len(d.Annotations) == 1 }),
		Entry("the revision", func(w world, d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
			d.Annotations["deployment.kubernetes.io/revision"] = "7"
			return w.seen.MachineDeployments(ns).Update(w, d, metav1.UpdateOptions{})
		}, func(d *v1alpha1.MachineDeployment) bool {
			return d.Annotations["deployment.kubernetes.io/revision"] == "7"
		}),
		Entry("a rollback: the template, and all annotations", func(w world, d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
			d.Spec.Template.Spec.Class.Name, d.Spec.RollbackTo = "older", nil
			d.Annotations = map[string]string{machine.BoundsAnnotation: "leaked"}
			return w.seen.MachineDeployments(ns).Update(w, d, metav1.UpdateOptions{})
		}, func(d *v1alpha1.MachineDeployment) bool { return d.Spec.Template.Spec.Class.Name == "older" }),
		Entry("the label that freezes it", func(w world, d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
			d.Labels = map[string]string{"freeze": "True"}
			return w.seen.MachineDeployments(ns).Update(w, d, metav1.UpdateOptions{})
		}, func(d *v1alpha1.MachineDeployment) bool { return d.Labels["freeze"] == "True" }),
		Entry("its status", func(w world, d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
			d.Status.Replicas = 5
			d.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: "Available"}}
			return w.seen.MachineDeployments(ns).UpdateStatus(w, d, metav1.UpdateOptions{})
		}, func(d *v1alpha1.MachineDeployment) bool { return d.Status.Replicas == 5 }),
	)

	DescribeTable("lays what is written to a Machine over what is stored",
		func(write func(world, *v1alpha1.Machine) (*v1alpha1.Machine, error), done func(*v1alpha1.Machine) bool) {
			inWorld(func(w world) {
				m, err := write(w, w.machine())
				Expect(err).NotTo(HaveOccurred())
				isViewOfMachine(m)
				Expect(done(m)).To(BeTrue())
				w.whole()
				isViewOfMachine(w.machine())
			})
		},
		Entry("the priority of a named victim", func(w world, m *v1alpha1.Machine) (*v1alpha1.Machine, error) {
			m.Annotations = map[string]string{"machinepriority.machine.sapcloud.io": "1"}
			return w.seen.Machines(ns).Update(w, m, metav1.UpdateOptions{})
		}, func(m *v1alpha1.Machine) bool { return m.Annotations["machinepriority.machine.sapcloud.io"] == "1" }),
		Entry("its template", func(w world, m *v1alpha1.Machine) (*v1alpha1.Machine, error) {
			m.Spec.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{Spec: corev1.NodeSpec{Taints: []corev1.Taint{foreignTaint}}}
			return w.seen.Machines(ns).Update(w, m, metav1.UpdateOptions{})
		}, func(m *v1alpha1.Machine) bool { return len(template(m).Spec.Taints) == 1 }),
		Entry("its status", func(w world, m *v1alpha1.Machine) (*v1alpha1.Machine, error) {
			m.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
			return w.seen.Machines(ns).UpdateStatus(w, m, metav1.UpdateOptions{})
		}, func(m *v1alpha1.Machine) bool { return m.Status.CurrentStatus.Phase == v1alpha1.MachineTerminating }),
		Entry("its adoption", func(w world, m *v1alpha1.Machine) (*v1alpha1.Machine, error) {
			return w.seen.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(fmt.Sprintf(
				`{"metadata":{"ownerReferences":[{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineSet","name":"set","uid":"u","controller":true}],"labels":{"a":"b"},"uid":%q}}`, m.UID)), metav1.PatchOptions{})
		}, func(m *v1alpha1.Machine) bool { return len(m.OwnerReferences) == 1 && m.Labels["a"] == "b" }),
		Entry("a label taken away", func(w world, _ *v1alpha1.Machine) (*v1alpha1.Machine, error) {
			return w.seen.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":null}}}`), metav1.PatchOptions{})
		}, func(m *v1alpha1.Machine) bool { return len(m.Labels) == 0 }),
	)

	It("lets machines be deleted", func() {
		inWorld(func(w world) {
			Expect(w.seen.Machines(ns).Delete(w, "m", metav1.DeleteOptions{})).To(Succeed())
			Expect(w.server.Get(machinesResource, ns, "m")).To(BeNil())
		})
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

	It("refuses what could take away what is hidden, and writes nothing (V10)", func() {
		inWorld(func(w world) {
			before := len(w.server.Writes())
			for what, err := range map[string]error{
				"a patch of the template":   second(w.seen.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{"spec":{"nodeTemplate":{}}}`), metav1.PatchOptions{})),
				"a patch of annotations":    second(w.seen.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`), metav1.PatchOptions{})),
				"a patch of the status":     second(w.seen.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")),
				"a JSON patch":              second(w.seen.Machines(ns).Patch(w, "m", types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{})),
				"no patch at all":           second(w.seen.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{`), metav1.PatchOptions{})),
				"a deployment's patch":      second(w.seen.MachineDeployments(ns).Patch(w, "pool", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})),
				"a deployment's scale":      second(w.seen.MachineDeployments(ns).UpdateScale(w, "pool", &autoscalingv1.Scale{}, metav1.UpdateOptions{})),
				"a deployment's replicas":   w.setReplicas(4),
				"a machine that is unnamed": second(w.seen.Machines(ns).Update(w, &v1alpha1.Machine{}, metav1.UpdateOptions{})),
			} {
				Expect(err).To(HaveOccurred(), what)
			}
			Expect(w.server.Writes()).To(HaveLen(before))
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

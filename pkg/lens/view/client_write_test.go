// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

var _ = Describe("The client of the controllers", func() {
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
})

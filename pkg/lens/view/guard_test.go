// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

// createSet creates a MachineSet with 3 replicas.
func (w world) createSet() *v1alpha1.MachineSet {
	GinkgoHelper()
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}, Spec: v1alpha1.MachineSetSpec{Replicas: 3}}
	set, err := w.raw.MachineSets(ns).Create(w, set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return set
}

var _ = Describe("Guards (V11)", func() {
	// guarded runs a body on a MachineSet with 3 replicas behind a guard that lets no MachineSet shrink.
	guarded := func(body func(sets machineclient.MachineSetInterface, set *v1alpha1.MachineSet, replicas func() int32)) {
		none := view.Guards{Shrink: func(after *v1alpha1.MachineSet) (func(*v1alpha1.MachineSet, error), error) {
			if after.Spec.Replicas < 3 {
				return nil, apierrors.NewConflict(v1alpha1.Resource("machinesets"), after.Name, nil)
			}
			return func(*v1alpha1.MachineSet, error) {}, nil
		}}
		inWorldWith(view.Options{Guards: none}, func(w world) {
			body(w.seen.MachineSets(ns), w.createSet(), func() int32 {
				now, err := w.raw.MachineSets(ns).Get(w, "set", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				return now.Spec.Replicas
			})
		})
	}

	DescribeTable("are not passed by", func(ctx SpecContext, shrink func(machineclient.MachineSetInterface, *v1alpha1.MachineSet) error) {
		guarded(func(sets machineclient.MachineSetInterface, set *v1alpha1.MachineSet, replicas func() int32) {
			Expect(shrink(sets, set)).NotTo(Succeed())
			Expect(replicas()).To(Equal(int32(3)))
		})
	},
		Entry("an update", func(sets machineclient.MachineSetInterface, set *v1alpha1.MachineSet) error {
			set.Spec.Replicas = 1
			return second(sets.Update(suite.Context(), set, metav1.UpdateOptions{}))
		}),
		Entry("a merge patch", func(sets machineclient.MachineSetInterface, _ *v1alpha1.MachineSet) error {
			return second(sets.Patch(suite.Context(), "set", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{}))
		}),
		Entry("a JSON patch", func(sets machineclient.MachineSetInterface, _ *v1alpha1.MachineSet) error {
			return second(sets.Patch(suite.Context(), "set", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/replicas","value":1}]`), metav1.PatchOptions{}))
		}),
		Entry("a patch of the scale subresource", func(sets machineclient.MachineSetInterface, _ *v1alpha1.MachineSet) error {
			return second(sets.Patch(suite.Context(), "set", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{}, "scale"))
		}),
		Entry("a scale", func(sets machineclient.MachineSetInterface, set *v1alpha1.MachineSet) error {
			scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "set", Namespace: ns, ResourceVersion: set.ResourceVersion}, Spec: autoscalingv1.ScaleSpec{Replicas: 1}}
			return second(sets.UpdateScale(suite.Context(), "set", scale, metav1.UpdateOptions{}))
		}),
	)

	It("have a Machine deleted at the version that they looked at, and at no later one", func() {
		var outcomes []error
		var version string
		guards := view.Guards{Remove: func(string, string) (string, func(error), error) {
			return version, func(err error) { outcomes = append(outcomes, err) }, nil
		}}
		inWorldWith(view.Options{Guards: guards}, func(w world) {
			version = w.machine().ResourceVersion
			seen := w.seen.Machines(ns)
			released, err := w.raw.Machines(ns).Patch(w, "m", types.MergePatchType, []byte(`{"metadata":{"labels":{"serves":"now"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(apierrors.IsConflict(seen.Delete(w, "m", metav1.DeleteOptions{}))).To(BeTrue())
			version = released.ResourceVersion
			Expect(seen.Delete(w, "m", metav1.DeleteOptions{})).To(Succeed())
			Expect(outcomes).To(HaveExactElements(MatchError(apierrors.IsConflict, "is a conflict"), Succeed()))
		})
	})

	It("are told how the write of a MachineSet ended, also where it was refused", func() {
		var outcomes []error
		guards := view.Guards{Shrink: func(*v1alpha1.MachineSet) (func(*v1alpha1.MachineSet, error), error) {
			return func(_ *v1alpha1.MachineSet, err error) { outcomes = append(outcomes, err) }, nil
		}}
		inWorldWith(view.Options{Guards: guards}, func(w world) {
			old, seen := w.createSet(), w.seen.MachineSets(ns)
			set, err := w.raw.MachineSets(ns).Patch(w, "set", types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"since"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			old.Spec.Replicas, set.Spec.Replicas = 2, 2
			Expect(second(seen.Update(w, old, metav1.UpdateOptions{}))).To(Satisfy(apierrors.IsConflict))
			Expect(second(seen.Update(w, set, metav1.UpdateOptions{}))).To(Succeed())
			Expect(outcomes).To(HaveExactElements(MatchError(apierrors.IsConflict, "is a conflict"), Succeed()))
		})
	})

	It("are asked before a MachineDeployment loses the name of a machine, and not before its status changes", func() {
		asked, refusal := 0, error(apierrors.NewConflict(v1alpha1.Resource("machinedeployments"), "d", nil))
		guards := view.Guards{Unname: func(before, after *v1alpha1.MachineDeployment) error {
			asked++
			Expect([]string{before.Annotations["x"], after.Annotations["x"]}).To(Equal([]string{"w", "y"}), "what is stored, and what is to be")
			return refusal
		}}
		inWorldWith(view.Options{Guards: guards}, func(w world) {
			d, err := w.raw.MachineDeployments(ns).Create(w, &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Annotations: map[string]string{"x": "w"}}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			seen := w.seen.MachineDeployments(ns)
			Expect(second(seen.UpdateStatus(w, d, metav1.UpdateOptions{}))).To(Succeed())
			Expect(asked).To(BeZero())
			d.Annotations = map[string]string{"x": "y"}
			refused, err := seen.Update(w, d, metav1.UpdateOptions{})
			Expect(err).To(Satisfy(apierrors.IsConflict))
			Expect(refused).To(HaveField("Name", BeEmpty()))
			refusal = nil
			Expect(seen.Update(w, d, metav1.UpdateOptions{})).To(HaveField("Annotations", HaveKeyWithValue("x", "y")))
			Expect(asked).To(Equal(2))
			Expect(w.raw.MachineDeployments(ns).Get(w, "d", metav1.GetOptions{})).To(HaveField("Annotations", HaveKeyWithValue("x", "y")))
		})
	})

	It("let growth pass, and the patch by which a MachineSet is adopted", func() {
		guarded(func(sets machineclient.MachineSetInterface, set *v1alpha1.MachineSet, replicas func() int32) {
			_, err := sets.Patch(suite.Context(), "set", types.MergePatchType,
				[]byte(`{"metadata":{"ownerReferences":[{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","name":"d","uid":"u","controller":true}],"uid":"`+string(set.UID)+`"}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			adopted, err := sets.Get(suite.Context(), "set", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(adopted.OwnerReferences).To(HaveLen(1))
			adopted.Spec.Replicas = 5
			grown, err := sets.Update(suite.Context(), adopted, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(grown.Spec.Replicas).To(Equal(int32(5)))
			adopted.Spec.Replicas = 1
			refused, err := sets.Update(suite.Context(), adopted, metav1.UpdateOptions{})
			Expect(apierrors.IsConflict(err)).To(BeTrue())
			Expect(refused.Name).To(BeEmpty())
			Expect(replicas()).To(Equal(int32(5)))
		})
	})
})

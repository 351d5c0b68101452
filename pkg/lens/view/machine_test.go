// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"encoding/json"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var foreignTaint = corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}

func template(m *v1alpha1.Machine) *v1alpha1.NodeTemplateSpec { return &m.Spec.NodeTemplateSpec }

// markOf is the mark that a Machine has.
func markOf(m *v1alpha1.Machine) machine.Reserve {
	GinkgoHelper()
	mark, err := machine.ParseReserve(m.Annotations[machine.ReserveAnnotation])
	Expect(err).NotTo(HaveOccurred())
	return mark
}

var _ = Describe("A Machine in reserve", func() {
	plain := fixture.Machine("m", func(m *v1alpha1.Machine) {
		m.Labels = map[string]string{"name": "pool"}
		template(m).Spec.Taints = []corev1.Taint{foreignTaint}
		template(m).Annotations = map[string]string{"a": "b"}
	})

	It("shows as the one that serves", func() {
		shown := view.ShowMachine(pool.Mark(plain, reserve))
		Expect(equality.Semantic.DeepEqual(shown, view.ShowMachine(plain))).To(BeTrue())
	})

	It("has in its template, and on its mark, what holds it", func() {
		marked := pool.Mark(plain, reserve)
		Expect(template(marked).Spec.Taints).To(Equal([]corev1.Taint{foreignTaint, taint}))
		Expect(template(marked).Annotations).To(Equal(map[string]string{
			"a": "b", keep: "true", machine.ReserveAnnotation: "2026-11-21T09:30:00Z",
		}))
		Expect(markOf(marked)).To(Equal(reserve))
	})

	It("shows what its template carries by itself: over-stripping would be written for ever (V4)", func() {
		own := plain.DeepCopy()
		template(own).Spec.Taints = append(template(own).Spec.Taints, taint)
		template(own).Annotations[keep] = "true"
		marked := pool.Mark(own, reserve)
		Expect(markOf(marked).Taints).To(BeEmpty())
		Expect(markOf(marked).Annotations).NotTo(HaveKey(keep))
		Expect(template(view.ShowMachine(marked)).Spec.Taints).To(Equal(template(own).Spec.Taints))
		Expect(template(view.ShowMachine(marked)).Annotations).To(HaveKeyWithValue(keep, "true"))
		Expect(pool.Unmark(marked)).To(Equal(own))
	})

	It("keeps the order of its taints, also where another client has changed that of ours", func() {
		strict := corev1.Taint{Key: taintKey, Effect: corev1.TaintEffectNoExecute}
		both := reserve
		both.Taints = []corev1.Taint{taint, strict}
		for _, order := range [][]corev1.Taint{{strict, taint, foreignTaint}, {taint, strict, foreignTaint}, {foreignTaint, strict, taint}} {
			marked := pool.Mark(plain, both)
			template(marked).Spec.Taints = order
			after := restored(marked, func(m *v1alpha1.Machine) { m.Spec.ProviderID = "p" })
			Expect(template(after).Spec.Taints).To(Equal(order))
		}
	})

	It("shows what has been changed since it was added", func() {
		marked := pool.Mark(plain, reserve)
		template(marked).Spec.Taints[1].Value = "other"
		template(marked).Annotations[keep] = "false"
		Expect(template(view.ShowMachine(marked)).Spec.Taints).To(HaveLen(2))
		Expect(template(view.ShowMachine(marked)).Annotations).To(HaveKeyWithValue(keep, "false"))
	})

	It("shows a foreign taint like ours, of which there is one too many", func() {
		marked := pool.Mark(plain, reserve)
		template(marked).Spec.Taints = append([]corev1.Taint{taint}, template(marked).Spec.Taints...)
		Expect(template(view.ShowMachine(marked)).Spec.Taints).To(Equal([]corev1.Taint{taint, foreignTaint}))
	})

	It("shows all where the mark cannot be read, but for the mark", func() {
		marked := pool.Mark(plain, reserve)
		marked.Annotations[machine.ReserveAnnotation] = "2026-11-21T09:30:00Z"
		shown := view.ShowMachine(marked)
		Expect(shown.Annotations).To(BeEmpty())
		Expect(shown.Spec).To(Equal(marked.Spec))
		Expect(pool.Unmark(marked).Spec).To(Equal(marked.Spec))
		Expect(pool.Unmark(marked).Annotations).To(BeEmpty())
	})

	It("keeps what holds it when the controllers replace its template (V3)", func() {
		is := restored(pool.Mark(plain, reserve), func(m *v1alpha1.Machine) {
			m.Spec.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{}
			template(m).Labels = map[string]string{"new": "label"}
		})
		Expect(template(is).Spec.Taints).To(Equal([]corev1.Taint{taint}))
		Expect(template(is).Annotations).To(Equal(reserve.Annotations))
		Expect(template(is).Labels).To(HaveKey("new"))
		Expect(markOf(is)).To(Equal(reserve))
	})

	It("keeps its mark when all annotations are taken away, and takes none of ours from a view", func() {
		is := restored(pool.Mark(plain, reserve), func(m *v1alpha1.Machine) { m.Annotations = map[string]string{"their": "own"} })
		Expect(markOf(is)).To(Equal(reserve))
		Expect(is.Annotations).To(HaveKey("their"))
		is = restored(pool.Mark(plain, reserve), func(m *v1alpha1.Machine) {
			m.Annotations = map[string]string{machine.ReserveAnnotation: "leaked", machine.AnnotationPrefix + "leaked": "too"}
		})
		Expect(is.Annotations).To(HaveLen(1))
		Expect(markOf(is)).To(Equal(reserve))
		is = restored(plain, func(m *v1alpha1.Machine) {
			m.Annotations = map[string]string{machine.ReserveAnnotation: reserve.String()}
			m.Labels["changed"] = "too"
		})
		Expect(is.Annotations).To(BeEmpty())
	})

	It("keeps its mark when its last annotation is taken away", func() {
		annotated := plain.DeepCopy()
		annotated.Annotations = map[string]string{"their": "own"}
		is := restored(pool.Mark(annotated, reserve), func(m *v1alpha1.Machine) { m.Annotations = nil })
		Expect(markOf(is)).To(Equal(reserve))
		Expect(is.Annotations).To(HaveLen(1))
	})

	It("keeps the annotations of others, and has none where there were none", func() {
		annotated := plain.DeepCopy()
		annotated.Annotations = map[string]string{"their": "own"}
		Expect(pool.Mark(annotated, reserve).Annotations).To(HaveKeyWithValue("their", "own"))
		Expect(pool.Unmark(pool.Mark(annotated, reserve))).To(Equal(annotated))
		bare := fixture.Machine("m")
		bare.Annotations, template(bare).Annotations = nil, nil
		Expect(pool.Unmark(pool.Mark(bare, reserve))).To(Equal(bare))
		Expect(view.ShowMachine(pool.Mark(bare, reserve))).To(Equal(view.ShowMachine(bare)))
	})

	It("does not store when a taint was added, which is different on each Node", func() {
		want := reserve
		want.Taints = []corev1.Taint{{Key: taintKey, Effect: corev1.TaintEffectNoSchedule, TimeAdded: ptr.To(metav1.Now())}}
		marked := pool.Mark(plain, want)
		Expect(template(marked).Spec.Taints).To(Equal([]corev1.Taint{foreignTaint, taint}))
		Expect(markOf(marked)).To(Equal(reserve))
	})

	It("does not put back what it had lost, though that was empty", func() {
		empty := reserve
		empty.Annotations = map[string]string{"empty": ""}
		marked := pool.Mark(plain, empty)
		delete(template(marked).Annotations, "empty")
		is := restored(marked, func(m *v1alpha1.Machine) { m.Spec.ProviderID = "p" })
		Expect(template(is).Annotations).NotTo(HaveKey("empty"))
	})

	It("is not changed by a mark that cannot be read", func() {
		marked := pool.Mark(plain, reserve)
		marked.Annotations[machine.ReserveAnnotation] = `{"since":"today"}`
		Expect(template(view.ShowMachine(marked))).To(Equal(template(marked)))
		is := restored(marked, func(m *v1alpha1.Machine) { m.Spec.ProviderID = "p" })
		Expect(template(is)).To(Equal(template(marked)))
		Expect(is.Annotations).To(Equal(marked.Annotations))
	})

	It("keeps what is not known of elements that have no name, by what they are (V3)", func() {
		address := func(address, later string) tree {
			return tree{"type": "InternalIP", "address": address, "later": later}
		}
		stored := encoded(tree{"status": tree{"addresses": []any{address("10.0.0.1", "one"), address("10.0.0.2", "two")}}})
		after := view.ShowMachine(decoded[v1alpha1.Machine](stored)).DeepCopy()
		after.Status.Addresses = after.Status.Addresses[1:]
		raw, err := view.RestoreMachine(stored, after)
		Expect(err).NotTo(HaveOccurred())
		Expect(decoded[tree](raw)).To(HaveValue(HaveKeyWithValue("status", HaveKeyWithValue("addresses", []any{address("10.0.0.2", "two")}))))
	})

	It("can be written where null is stored", func() {
		stored := []byte(`{"metadata":{"labels":null},"spec":{"nodeTemplate":{"spec":null}}}`)
		after := view.ShowMachine(decoded[v1alpha1.Machine](stored)).DeepCopy()
		after.Labels = map[string]string{"a": "b"}
		template(after).Spec.Taints = []corev1.Taint{foreignTaint}
		raw, err := view.RestoreMachine(stored, after)
		Expect(err).NotTo(HaveOccurred())
		is := decoded[v1alpha1.Machine](raw)
		Expect(is.Labels).To(Equal(after.Labels))
		Expect(template(is).Spec.Taints).To(Equal(template(after).Spec.Taints))
	})

	It("keeps unknown fields, at any depth and in lists (V3)", func() {
		var t tree
		Expect(json.Unmarshal(encoded(pool.Mark(plain, reserve)), &t)).To(Succeed())
		taints := t["spec"].(tree)["nodeTemplate"].(tree)["spec"].(tree)["taints"].([]any)
		for _, one := range append(taints, t, t["spec"], t["spec"].(tree)["class"], t["metadata"]) {
			one.(tree)["later"] = "kept"
		}
		stored := encoded(t)
		after := view.ShowMachine(decoded[v1alpha1.Machine](stored)).DeepCopy()
		template(after).Spec.Taints = append(template(after).Spec.Taints, corev1.Taint{Key: "new", Effect: "NoExecute"})
		after.Spec.Class.Name = "new"
		raw, err := view.RestoreMachine(stored, after)
		Expect(err).NotTo(HaveOccurred())
		var is tree
		Expect(json.Unmarshal(raw, &is)).To(Succeed())
		t["spec"].(tree)["class"].(tree)["name"] = "new"
		taints = append(taints, tree{"key": "new", "effect": "NoExecute"})
		t["spec"].(tree)["nodeTemplate"].(tree)["spec"].(tree)["taints"] = taints
		Expect(is).To(Equal(t))
	})

	DescribeTable("keeps what is not known of an owner with that owner alone (V3)", func(is types.UID, kept bool) {
		stored := encoded(tree{"metadata": tree{"ownerReferences": []any{tree{"kind": "MachineSet", "name": "pool", "uid": "1", "later": "kept"}}}})
		after := view.ShowMachine(decoded[v1alpha1.Machine](stored)).DeepCopy()
		after.OwnerReferences[0].UID, after.OwnerReferences[0].Controller = is, ptr.To(true)
		raw, err := view.RestoreMachine(stored, after)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Contains(string(raw), "later")).To(Equal(kept))
	},
		Entry("the same one", types.UID("1"), true),
		Entry("another one of its name", types.UID("2"), false),
	)

	It("shares nothing that can be changed: the controllers give many machines one template", func() {
		shared := plain.DeepCopy()
		template(shared).Spec.Taints = append(make([]corev1.Taint, 0, 8), foreignTaint)
		one, other := pool.Mark(shared, reserve), shared.DeepCopy()
		other.Spec.NodeTemplateSpec = shared.Spec.NodeTemplateSpec
		Expect(template(other).Spec.Taints[:2][1]).To(BeZero(), "our taint is in the list of another machine")
		Expect(shared.Annotations).To(BeEmpty())
		Expect(template(shared).Annotations).To(HaveLen(1))

		before := one.DeepCopy()
		view.ShowMachine(one)
		pool.Unmark(one)
		pool.Mark(one, reserve)
		Expect(one).To(Equal(before))
	})
})

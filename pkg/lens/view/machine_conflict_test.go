// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("A Machine in reserve", func() {
	plain := fixture.Machine("m", func(m *v1alpha1.Machine) {
		m.Labels = map[string]string{"name": "pool"}
		template(m).Spec.Taints = []corev1.Taint{foreignTaint}
		template(m).Annotations = map[string]string{"a": "b"}
	})

	It("gives up one of two taints of a key, and keeps the other and its time (V4)", func() {
		both := reserve
		evicting := corev1.Taint{Key: taintKey, Effect: corev1.TaintEffectNoExecute}
		both.Taints = []corev1.Taint{taint, evicting}
		theirs := corev1.Taint{Key: taintKey, Value: "theirs", Effect: corev1.TaintEffectNoSchedule}
		is := restored(pool.Mark(plain, both), func(m *v1alpha1.Machine) { template(m).Spec.Taints = []corev1.Taint{theirs} })
		Expect(template(is).Spec.Taints).To(ConsistOf(theirs, evicting))
		Expect(markOf(is).Taints).To(Equal([]corev1.Taint{evicting}))
		Expect(markOf(is).Since).To(Equal(since))
	})

	It("gives up what the template comes to carry, and shows it from then on (V4)", func() {
		is := restored(pool.Mark(plain, reserve), func(m *v1alpha1.Machine) {
			template(m).Spec.Taints = []corev1.Taint{{Key: taintKey, Value: "theirs", Effect: corev1.TaintEffectNoSchedule}, foreignTaint}
			template(m).Annotations[keep] = "true"
		})
		Expect(template(is).Spec.Taints).To(HaveLen(2), "a Node cannot have a taint twice")
		Expect(markOf(is).Taints).To(BeEmpty())
		Expect(markOf(is).Annotations).To(Equal(map[string]string{machine.ReserveAnnotation: "2026-11-21T09:30:00Z"}))
		Expect(template(view.ShowMachine(is)).Spec.Taints).To(Equal(template(is).Spec.Taints))
		Expect(template(view.ShowMachine(is)).Annotations).To(HaveKeyWithValue(keep, "true"))
	})

	It("gives up an annotation that the template comes to carry, and keeps its taints (V4)", func() {
		is := restored(pool.Mark(plain, reserve), func(m *v1alpha1.Machine) { template(m).Annotations[keep] = "true" })
		Expect(markOf(is).Annotations).To(Equal(map[string]string{machine.ReserveAnnotation: "2026-11-21T09:30:00Z"}))
		Expect(markOf(is).Taints).To(Equal(reserve.Taints))
		Expect(template(view.ShowMachine(is)).Annotations).To(HaveKeyWithValue(keep, "true"), "else it would be written for ever")
	})

	It("gives up with the next write what another has put beside it (V4)", func() {
		for _, theirs := range []corev1.Taint{taint, {Key: taintKey, Value: "theirs", Effect: corev1.TaintEffectNoSchedule}} {
			marked := pool.Mark(plain, reserve)
			template(marked).Spec.Taints = append([]corev1.Taint{theirs}, template(marked).Spec.Taints...)
			is := restored(marked, func(m *v1alpha1.Machine) { m.Spec.ProviderID = "p" })
			Expect(template(is).Spec.Taints).To(Equal([]corev1.Taint{theirs, foreignTaint}), "a Node cannot have a taint twice")
			Expect(markOf(is).Taints).To(BeEmpty())
			Expect(markOf(is).Annotations).To(Equal(reserve.Annotations))
		}
	})

	It("gives up what it had lost when the template comes to carry it (V4)", func() {
		marked := pool.Mark(plain, reserve)
		marked.Spec.NodeTemplateSpec = plain.Spec.NodeTemplateSpec
		is := restored(marked, func(m *v1alpha1.Machine) {
			m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{taint}
			m.Spec.NodeTemplateSpec.Annotations = map[string]string{keep: "true"}
		})
		Expect(template(view.ShowMachine(is))).To(Equal(template(is)))
		Expect(markOf(is).Taints).To(BeEmpty())
		Expect(markOf(is).Annotations).NotTo(HaveKey(keep))
	})
})

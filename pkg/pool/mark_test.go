// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// templated is a Machine whose node template has these annotations and taints.
func templated(annotations map[string]string, taints ...corev1.Taint) *mcm.Machine {
	return fixture.Machine("m", func(m *mcm.Machine) {
		m.Spec.NodeTemplateSpec.Annotations, m.Spec.NodeTemplateSpec.Spec.Taints = annotations, taints
	})
}

func taint(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

// entries are the pairs of key and value of a map.
func entries(pairs ...string) map[string]string { return annotated(pairs...).Annotations }

const markedAtNoon = `{"since":"2026-03-01T12:00:00Z"`

var (
	noSchedule = taint("spare", "", corev1.TaintEffectNoSchedule)
	noExecute  = taint("spare", "", corev1.TaintEffectNoExecute)
	dedicated  = taint("dedicated", "db", corev1.TaintEffectNoSchedule)
	wanted     = machine.Reserve{Since: noon, Taints: []corev1.Taint{noSchedule}, Annotations: entries("scale-down", "no")}
)

var _ = DescribeTable("A Machine that is put in reserve",
	func(want machine.Reserve, before, after *mcm.Machine, mark string) {
		is := pool.Mark(before, want)
		Expect(is.Spec.NodeTemplateSpec).To(Equal(after.Spec.NodeTemplateSpec))
		Expect(is.Annotations).To(Equal(entries(machine.ReserveAnnotation, mark)))
	},
	Entry("gets all taints and annotations, and a mark that records them",
		machine.Reserve{Since: noon, Taints: []corev1.Taint{noSchedule, noExecute}, Annotations: entries("a", "1", "b", "2")},
		templated(nil), templated(entries("a", "1", "b", "2"), noSchedule, noExecute),
		markedAtNoon+`,"taints":[{"key":"spare","effect":"NoExecute"},{"key":"spare","effect":"NoSchedule"}],"annotations":{"a":"1","b":"2"}}`),
	Entry("gets them after its own", wanted,
		templated(entries("own", "x"), dedicated), templated(entries("own", "x", "scale-down", "no"), dedicated, noSchedule),
		markedAtNoon+`,"taints":[{"key":"spare","effect":"NoSchedule"}],"annotations":{"scale-down":"no"}}`),
	Entry("keeps its own taint of the same key and effect, whatever its value", wanted,
		templated(nil, taint("spare", "own", corev1.TaintEffectNoSchedule)),
		templated(entries("scale-down", "no"), taint("spare", "own", corev1.TaintEffectNoSchedule)),
		markedAtNoon+`,"annotations":{"scale-down":"no"}}`),
	Entry("gets a taint beside one of its own with another effect", wanted,
		templated(nil, noExecute), templated(entries("scale-down", "no"), noExecute, noSchedule),
		markedAtNoon+`,"taints":[{"key":"spare","effect":"NoSchedule"}],"annotations":{"scale-down":"no"}}`),
	Entry("keeps its own annotation of the same key", wanted,
		templated(entries("scale-down", "")), templated(entries("scale-down", ""), noSchedule),
		markedAtNoon+`,"taints":[{"key":"spare","effect":"NoSchedule"}]}`),
	Entry("is marked although it has everything already", wanted,
		templated(entries("scale-down", "yes"), noSchedule), templated(entries("scale-down", "yes"), noSchedule), markedAtNoon+`}`),
	Entry("gets taints without the time that they were added",
		machine.Reserve{Since: noon, Taints: []corev1.Taint{{Key: "spare", Effect: corev1.TaintEffectNoSchedule, TimeAdded: ptr.To(metav1.NewTime(noon))}}},
		templated(nil), templated(nil, noSchedule), markedAtNoon+`,"taints":[{"key":"spare","effect":"NoSchedule"}]}`),
)

var _ = Describe("A Machine in reserve", func() {
	full := machine.Reserve{Since: noon, Taints: []corev1.Taint{noSchedule, noExecute}, Annotations: entries("scale-down", "no", "b", "2")}

	DescribeTable("is as it was once it serves again, and neither step changes the object that it is given", func(before *mcm.Machine) {
		original := before.DeepCopy()
		marked := pool.Mark(before, full)
		Expect(before).To(Equal(original))
		held := marked.DeepCopy()
		Expect(pool.Unmark(marked)).To(Equal(original))
		Expect(marked).To(Equal(held))
	},
		Entry("with nothing of its own", templated(nil)),
		Entry("with one annotation of its own", fixture.Machine("m", func(m *mcm.Machine) { m.Annotations = entries("own", "x") })),
		Entry("with taints and annotations in its template", templated(entries("own", "x"), dedicated)),
		Entry("with everything that the reserve wants", templated(entries("scale-down", "no", "b", "2"), noSchedule, noExecute)),
		Entry("with some of what the reserve wants", templated(entries("b", "3"), noExecute)),
	)

	It("gets a new mark, and loses what the new one does not want", func() {
		plain := templated(entries("own", "x"), dedicated)
		next := machine.Reserve{Since: noon.Add(time.Hour), Taints: []corev1.Taint{noExecute}, Annotations: entries("c", "3")}
		Expect(pool.Mark(pool.Mark(plain, full), next)).To(Equal(pool.Mark(plain, next)))
	})

	It("loses only its mark where that cannot be read", func() {
		m := templated(entries("scale-down", "no"), noSchedule)
		m.Annotations = entries(machine.ReserveAnnotation, "yesterday", "own", "x")
		serving := templated(entries("scale-down", "no"), noSchedule)
		serving.Annotations = entries("own", "x")
		Expect(pool.Unmark(m)).To(Equal(serving))
	})
})

var _ = DescribeTable("A node template that was edited since it was marked, without the mark,",
	func(edited, left *mcm.Machine) {
		mark := machine.Reserve{Since: noon, Taints: []corev1.Taint{noExecute, noSchedule}, Annotations: entries("scale-down", "no", "b", "")}
		edited.Annotations = entries(machine.ReserveAnnotation, mark.String())
		before := edited.DeepCopy()
		template, was := pool.WithoutMark(edited)
		Expect(template).To(Equal(left.Spec.NodeTemplateSpec))
		Expect(was).To(Equal(mark))
		Expect(edited).To(Equal(before))
	},
	Entry("lacks all that the mark records, if that is still there",
		templated(entries("scale-down", "no", "b", ""), noExecute, noSchedule), templated(nil)),
	Entry("lacks it in whatever order", templated(entries("scale-down", "no", "b", ""), noSchedule, dedicated, noExecute), templated(nil, dedicated)),
	Entry("lacks the last of two equal taints", templated(nil, noSchedule, dedicated, noSchedule), templated(nil, noSchedule, dedicated)),
	Entry("has a taint that has another value now",
		templated(nil, noExecute, taint("spare", "own", corev1.TaintEffectNoSchedule)), templated(nil, taint("spare", "own", corev1.TaintEffectNoSchedule))),
	Entry("has an annotation that has another value now",
		templated(entries("scale-down", "yes", "b", ""), noSchedule), templated(entries("scale-down", "yes"))),
	Entry("lacks one annotation of one", templated(entries("b", "")), templated(nil)),
	Entry("is as it is, if nothing of it is left", templated(entries("own", "x"), dedicated), templated(entries("own", "x"), dedicated)),
)

var _ = It("A Machine without a mark that can be read has nothing added", func() {
	m := templated(entries("scale-down", "no"), noSchedule)
	template, mark := pool.WithoutMark(m)
	Expect(template).To(Equal(m.Spec.NodeTemplateSpec))
	Expect(mark).To(BeZero())
	m.Annotations = entries(machine.ReserveAnnotation, "yesterday")
	template, mark = pool.WithoutMark(m)
	Expect(template).To(Equal(m.Spec.NodeTemplateSpec))
	Expect(mark).To(BeZero())
})

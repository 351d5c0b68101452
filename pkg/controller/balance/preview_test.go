// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// shown are the MachineDeployments of members, in the namespace of all.
func shown(members ...plan.Member) (o Objects) {
	for _, m := range members {
		m.Object.Namespace, m.Object.ResourceVersion = fixture.Namespace, "7"
		o.Deployments = append(o.Deployments, m.Object)
	}
	return o
}

// watched is a preview that sees some objects, its view and its plan.
func watched(o Objects, target bool) (*Preview, plan.View, plan.Plan) {
	GinkgoHelper()
	preview, err := NewPreview(fixture.Namespace, NewSettings(), target)
	Expect(err).NotTo(HaveOccurred())
	Expect(preview.SetObjects(o, Noon)).To(Succeed())
	v, p := preview.Plan()
	return preview, v, p
}

// inGarden is a MachineDeployment with one machine, and the bounds that a Gardener's Worker has for it.
func inGarden(low, high int64) Objects {
	o := shown(NewMember("z1", 1))
	o.Garden = true
	o.Workers = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "w", "namespace": fixture.Namespace},
		"status": map[string]any{"machineDeployments": []any{map[string]any{"name": "z1", "minimum": low, "maximum": high}}}}}}
	return o
}

var _ = Describe("A preview", func() {
	It("plans from what it is shown, and carries that out in copies until nothing is left to do", func() {
		o := shown(NewMember("z1", 1, Labelled("p"), Excess("3"), ExcessField(2)), NewMember("z2", 1, Labelled("p"), Excess("3")))
		preview, v, p := watched(o, true)
		Expect(v.Now).To(Equal(Noon))
		all, err := After(v, p)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(2))
		sum := 0
		for _, d := range all {
			n, err := v1alpha1.ParseShare(d.Annotations[v1alpha1.ShareAnnotation])
			Expect(err).NotTo(HaveOccurred())
			sum += int(n)
			Expect(d.Status.Conditions).To(ContainElement(HaveField("Type", plan.ConditionShare)))
		}
		Expect(sum).To(Equal(3))
		Expect(all[0].Annotations).To(HaveKeyWithValue(v1alpha1.OwnExcessAnnotation, "2"))
		Expect(o.Deployments[0].Annotations).To(BeEmpty(), "what was shown stays as it was")

		Expect(preview.SetObjects(Objects{Deployments: all}, Noon)).To(Succeed())
		v, p = preview.Plan()
		Expect(After(v, p)).To(BeEmpty())
	})

	It("leaves replicas alone where there are no pods to see", func() {
		for target, held := range map[bool]bool{true: true, false: false} {
			_, v, p := watched(shown(NewMember("z1", 1, ScaleUp), NewMember("z2", 1, ScaleUp)), target)
			all, err := After(v, p)
			Expect(err).NotTo(HaveOccurred())
			Expect(len(all) > 0 && all[0].Annotations[v1alpha1.AppliedReplicasAnnotation] != "").To(Equal(held))
		}
	})

	It("takes bounds of a Gardener where there is one", func() {
		_, v, p := watched(inGarden(1, 4), true)
		Expect(v.Garden.Known).To(BeTrue())
		all, err := After(v, p)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(1))
		Expect(all[0].Annotations[v1alpha1.BoundsAnnotation]).To(HavePrefix("1:4"))
		Expect(all[0].Spec.ExcessReplicas).To(Or(BeNil(), Equal(ptr.To[int32](0))))
	})

	DescribeTable("takes no bounds of a Gardener that no MachineDeployment can have", func(low, high int64) {
		_, v, p := watched(inGarden(low, high), true)
		Expect(After(v, p)).To(BeEmpty())
	},
		Entry("below 0", int64(-1), int64(4)),
		Entry("a maximum below the minimum", int64(4), int64(1)),
		Entry("a maximum beyond any number of replicas", int64(1), int64(1<<33)),
	)

	DescribeTable("learns of machines only where they matter", func(matter bool, changes ...Change) {
		preview, _, _ := watched(shown(NewMember("z1", 1), NewMember("z2", 1, changes...)), true)
		Expect(preview.Concerned()).To(Equal(matter))
	},
		Entry("not where nothing is requested", false),
		Entry("not for an excess in the field, or bounds", false, ExcessField(2), Annotate(v1alpha1.BoundsAnnotation, "1:3")),
		Entry("where replicas are kept even", true, ScaleUp),
		Entry("where they were, and replicas are still held", true, Annotate(v1alpha1.AppliedReplicasAnnotation, "1")),
		Entry("where a move is under way", true, Annotate(v1alpha1.MoveAnnotation, `{"id":"1","from":"z1"}`)),
		Entry("where a pool has an excess", true, Excess("3")),
		Entry("where that is invalid", true, Excess("x")),
		Entry("where a share is left", true, Annotate(v1alpha1.ShareAnnotation, "0")),
		Entry("where an excess in bounds may depend on capacity", true, Annotate(v1alpha1.BoundsAnnotation, "1:3:cpu=4")),
	)
})

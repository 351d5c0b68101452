// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// unfrozen has a MachineDeployment report that it is not frozen any more.
func unfrozen(m *Member) {
	m.Object.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: mcm.MachineDeploymentFrozen, Status: mcm.ConditionFalse}}
}

// available has a MachineDeployment report another condition.
func available(m *Member) {
	m.Object.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: mcm.MachineDeploymentAvailable, Status: mcm.ConditionTrue}}
}

var _ = DescribeTable("Whether growth of a MachineDeployment is split with another one",
	func(splits bool, says string, changes ...Change) {
		v := view(
			NewMember("a", 7, append([]Change{ScaleUp, Applied(3), ready(3)}, changes...)...),
			NewMember("b", 3, ScaleUp, Applied(3), ready(3)),
		)
		p := New(v)
		Expect(condition(p, "a", ConditionBalanced)).To(Equal(says))
		if splits {
			Expect(writes(p)).To(ContainSubstring(`"to":{"b":2}`))
		} else {
			Expect(writes(p)).NotTo(ContainSubstring(`"to":{"b":2}`))
		}
	},
	Entry("one like it", true, "True Even"),
	Entry("one that is frozen", false, "False Frozen", frozen),
	Entry("one that is frozen by its label", false, "False Frozen", frozenLabel),
	Entry("one that is not frozen any more", true, "True Even", unfrozen),
	Entry("one that is new and has no MachineSet yet", true, "True Even", noSet),
	Entry("one that is being updated", true, "True Even", rollout),
	Entry("one with another condition", true, "True Even", available),
	Entry("one whose annotation is invalid", false, "False Invalid", Annotate(v1alpha1.BalanceAnnotation, "sideways")),
	Entry("one whose annotation is off", false, "", Mode(v1alpha1.BalanceOff)),
)

var _ = Describe("A MachineDeployment that is frozen", func() {
	It("gives nothing that it cannot create", func() {
		Expect(writes(New(view(NewMember("a", 3, ScaleUp, Applied(3), frozen, stuck(1)), NewMember("b", 3, ScaleUp, Applied(3)))))).To(BeEmpty())
		Expect(writes(New(view(NewMember("a", 3, ScaleUp, Applied(3), stuck(1)), NewMember("b", 3, ScaleUp, Applied(3)))))).To(ContainSubstring("move"), "it would otherwise")
	})

	It("says so while the target cluster does not answer", func() {
		v := view(NewMember("a", 3, ScaleUp, Applied(3), frozen), NewMember("b", 3, ScaleUp, Applied(3)))
		v.Unreachable = "silent"
		p := New(v)
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False Frozen"))
		Expect(condition(p, "b", ConditionBalanced)).To(Equal("False " + ReasonUnreachable))
		Expect(message(p, "b", ConditionBalanced)).To(Equal("silent"))
	})

	DescribeTable("keeps its share", func(want string, changes ...Change) {
		v := view(append(poolOf("3", 3, 3), NewMember("c", 3, append(changes, frozen, Labelled("p"))...))...)
		Expect(shares(v, New(v))).To(Equal(want))
	},
		Entry("of two", "1/0/2", share(2), ready(2)),
		Entry("of none", "2/1/0", share(0)),
		Entry("of none yet", "2/1/0"),
		Entry("without what was for a move", "1/1/1", share(2), ready(2), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})),
	)
})

var _ = It("An annotation that is invalid counts as off, whatever the default is", func() {
	v := view(
		NewMember("a", 7, Applied(3), ready(3), Annotate(v1alpha1.BalanceAnnotation, "sideways")),
		NewMember("b", 3, Applied(3), ready(3)),
	)
	v.Settings.Mode = v1alpha1.BalanceScaleUp
	Expect(writes(New(v))).NotTo(ContainSubstring(`"to":{"b":2}`))
	delete(v.Members[0].Object.Annotations, v1alpha1.BalanceAnnotation)
	Expect(writes(New(v))).To(ContainSubstring(`"to":{"b":2}`))
	v.Settings.Enabled = false
	Expect(writes(New(v))).NotTo(ContainSubstring(`"to":{"b":2}`), "replicas are never changed")
})

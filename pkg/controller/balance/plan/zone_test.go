// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

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

var _ = DescribeTable("Pods are read",
	func(want bool, members ...Member) { Expect(PodsNeeded(view(members...))).To(Equal(want)) },
	Entry("not without members", false),
	Entry("not while members are even", false, NewMember("a", 3, Continuous, Applied(3)), NewMember("b", 3, Continuous, Applied(3))),
	Entry("not while members differ by one, which is even", false, NewMember("a", 3, Continuous, Applied(3)), NewMember("b", 2, Continuous, Applied(2))),
	Entry("while members differ by two", true, NewMember("a", 3, Continuous, Applied(3)), NewMember("b", 1, Continuous, Applied(1))),
	Entry("while a later member has more", true, NewMember("a", 1, Continuous, Applied(1)), NewMember("b", 2, Continuous, Applied(2)), NewMember("c", 3, Continuous, Applied(3))),
	Entry("not for one member alone, which is even by itself", false, NewMember("a", 5, Continuous, Applied(5))),
	Entry("not where no machine may move", false, NewMember("a", 5, ScaleUp, Applied(5)), NewMember("b", 1, Continuous, Applied(1))),
	Entry("while one replica is not applied", true, NewMember("a", 3, ScaleUp, Applied(2))),
	Entry("while a move is in progress", true, NewMember("a", 3, ScaleUp, Applied(3), move(v1alpha1.Move{ID: "1", From: "b", Taken: 1}))),
	Entry("while a machine cannot be created", true, NewMember("a", 1, ScaleUp, Applied(1), stuck(1))),
	Entry("not while a machine boots", false, NewMember("a", 1, ScaleUp, Applied(1), stuckBoot)),
	Entry("once it boots for too long", true, NewMember("a", 1, ScaleUp, Applied(1), func(m *Member) {
		phase(mcm.MachinePending)(&m.Machines[0])
		bornAt(Noon.Add(-10 * time.Minute))(&m.Machines[0])
	})),
)

var _ = DescribeTable("Decisions about a MachineDeployment depend",
	func(machines, pods bool, changes ...Change) {
		onMachines, onPods := Concerns(NewMember("a", 2, changes...).Object, NewSettings())
		Expect(onMachines).To(Equal(machines), "on machines")
		Expect(onPods).To(Equal(pods), "on pods")
	},
	Entry("on neither without settings", false, false),
	Entry("on both in a mode", true, true, ScaleUp),
	Entry("on both while a move ends", true, true, move(v1alpha1.Move{ID: "1", From: "b", Taken: 1})),
	Entry("on machines where applied replicas are written down", true, false, Applied(2)),
	Entry("on machines with a share", true, false, share(0)),
	Entry("on machines with an excess of the pool", true, false, Excess("0")),
	Entry("on machines with an excess of the pool that is invalid", true, false, Excess("many")),
	Entry("on machines with bounds that contain an excess", true, false, bounds("1:3:2")),
	Entry("on neither with bounds that contain none", false, false, bounds("1:3")),
	Entry("on neither with bounds that are invalid", false, false, bounds("many")),
	Entry("on neither with an excess of its own", false, false, ExcessField(2)),
)

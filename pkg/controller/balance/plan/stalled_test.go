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

// keepsFailed is a member with a preserved machine that ran and failed, so that nothing replaces it.
func keepsFailed(m *Member) {
	broken(&m.Machines[2])
	m.Machines[2].Preserved = true
}

var _ = Describe("A promised machine", func() {
	off := Mode(v1alpha1.BalanceOff)

	DescribeTable("that cannot go", func(want string, members ...Member) {
		w := newWorld(members...)
		Expect(writes(New(w.View))).To(Equal(want))
		w.carry()
		w.settle()
		Expect(writes(New(w.View))).To(BeEmpty())
	},
		Entry("since its owner scaled to 0, ends the move",
			"a: applied-replicas=0 -move",
			NewMember("a", 4, Continuous, Applied(4), promises("a", "b"), asked(0)), NewMember("b", 3, Continuous, Applied(3), took("1", "a"))),
		Entry("since its owner scaled to 0 before its replica arrived, takes the promise back",
			"a: applied-replicas=0 -move",
			NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), asked(0)), NewMember("b", 2, ScaleUp, Applied(2))),
		Entry("holds up no growth of the member that took its replica and is not balanced any more",
			"b: applied-replicas=5",
			NewMember("a", 4, Continuous, Applied(4), rollout, promises("a", "b")), NewMember("b", 5, off, Applied(3), took("1", "a"))),
		Entry("holds up no growth of a member that is not balanced any more",
			"a: applied-replicas=6",
			NewMember("a", 4, off, Applied(4), promises("a", "b"), asked(6), holding(safe("false"))), NewMember("b", 3, off, took("1", "a"))),
		Entry("holds up no growth in the group that took its replica",
			"b: applied-replicas=5",
			NewMember("a", 4, off, Applied(4), promises("a", "b"), holding(safe("false"))), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"), asked(5)), NewMember("c", 3, ScaleUp, Applied(3))),
		Entry("since its MachineDeployment is being deleted, holds up no growth in its group",
			"b: applied-replicas=5",
			NewMember("a", 4, ScaleUp, Applied(4), beingDeleted, promises("a", "b")), NewMember("b", 5, ScaleUp, Applied(3))),
		Entry("is given nothing by others",
			"c: -move",
			NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), holding(safe("false"))), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")),
			NewMember("c", 2, ScaleUp, Applied(2), asked(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"a":1}}`))),
		Entry("is given nothing by others that come before it",
			"a: -move",
			NewMember("a", 2, ScaleUp, Applied(2), asked(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"c":1}}`)),
			NewMember("b", 3, ScaleUp, Applied(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"1","from":"c","taken":1}`)),
			NewMember("c", 4, ScaleUp, Applied(4), Annotate(v1alpha1.MoveAnnotation, `{"id":"1","to":{"b":1},"machine":"c-0"}`), holding(safe("false")))),
		Entry("has its taker given nothing by others",
			"c: -move",
			NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), holding(safe("false"))), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")),
			NewMember("c", 2, ScaleUp, Applied(2), asked(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"b":1}}`))),
		Entry("holds up no growth where nothing is made in its place",
			"a: applied-replicas=6",
			NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), asked(6)), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"), stuck(1))),
		Entry("holds up no growth where the taker is frozen",
			"a: applied-replicas=6",
			NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), asked(6)), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"), stuckBoot, frozen)),
		Entry("holds up no growth where the taker is updated",
			"a: applied-replicas=6",
			NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), asked(6)), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"), stuckBoot, rollout)),
		Entry("holds up no growth where the taker keeps a machine that failed",
			"a: applied-replicas=6",
			NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), asked(6)), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"), keepsFailed)),
		Entry("since its MachineDeployment is being deleted, leaves what arrived where it is",
			"b: -move",
			NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), beingDeleted), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"))),
	)

	It("holds up no growth while the target cluster does not answer", func() {
		v := view(NewMember("a", 4, off, Applied(4), promises("a", "b"), asked(6)), NewMember("b", 3, off, took("1", "a")))
		v.Unreachable = "silent"
		p := New(v)
		Expect(writes(p)).To(Equal("a: applied-replicas=6"))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False " + ReasonUnreachable))
	})

	It("holds up no growth while many Nodes are not ready, those of its taker among them", func() {
		v := view(NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), asked(6)),
			NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"), func(m *Member) { phase(mcm.MachineUnknown)(&m.Machines[2]) }))
		v.NodesKnown, v.NodeCount, v.UnreadyCount = true, 8, 4
		Expect(writes(New(v))).To(Equal("a: applied-replicas=6"))
	})

	It("goes though growth is asked for where its replica arrived", func() {
		w := newWorld(NewMember("a", 4, Continuous, Applied(4), promises("a", "b")), NewMember("b", 3, Continuous, Applied(3), took("1", "a"), asked(5)))
		Expect(writes(New(w.View))).To(Equal("a: r=3 applied-replicas=3 -move gone=a-0"))
		w.rest()
		Expect(w.replicas()).To(Equal("4/4"))
	})
})

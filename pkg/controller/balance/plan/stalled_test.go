// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan/plantest"
)

var _ = Describe("A promised machine", func() {
	const toB, fromA = `{"id":"1","to":{"b":1},"machine":"a-0"}`, `{"id":"1","from":"a","taken":1}`
	promises := Annotate(v1alpha1.MoveAnnotation, toB)
	took := Annotate(v1alpha1.MoveAnnotation, fromA)
	off := Mode(v1alpha1.BalanceOff)
	deleted := func(m *Member) { m.Object.DeletionTimestamp = &metav1.Time{Time: Noon} }
	// pinned has a pod on each machine that must not be evicted.
	pinned := func(m *Member) {
		for i := range m.Machines {
			name := m.Machines[i].Object.Name
			hold(&m.Machines[i], pod("p-"+name, name, safe("false")))
		}
	}

	DescribeTable("that cannot go", func(want string, members ...Member) {
		w := newWorld(members...)
		Expect(writes(New(w.View))).To(Equal(want))
		w.carry()
		w.settle()
		Expect(writes(New(w.View))).To(BeEmpty())
	},
		Entry("since its owner scaled to 0, ends the move",
			"a: applied-replicas=0 -move",
			NewMember("a", 4, Continuous, Applied(4), promises, asked(0)), NewMember("b", 3, Continuous, Applied(3), took)),
		Entry("since its owner scaled to 0 before its replica arrived, takes the promise back",
			"a: applied-replicas=0 -move",
			NewMember("a", 4, ScaleUp, Applied(4), promises, asked(0)), NewMember("b", 2, ScaleUp, Applied(2))),
		Entry("holds up no growth of the member that took its replica and is not balanced any more",
			"b: applied-replicas=5",
			NewMember("a", 4, Continuous, Applied(4), rollout, promises), NewMember("b", 5, off, Applied(3), took)),
		Entry("holds up no growth of a member that is not balanced any more",
			"a: applied-replicas=6",
			NewMember("a", 4, off, Applied(4), promises, asked(6), pinned), NewMember("b", 3, off, took)),
		Entry("holds up no growth in the group that took its replica",
			"b: applied-replicas=5",
			NewMember("a", 4, off, Applied(4), promises, pinned), NewMember("b", 3, ScaleUp, Applied(3), took, asked(5)), NewMember("c", 3, ScaleUp, Applied(3))),
		Entry("since its MachineDeployment is being deleted, holds up no growth in its group",
			"b: applied-replicas=5",
			NewMember("a", 4, ScaleUp, Applied(4), deleted, promises), NewMember("b", 5, ScaleUp, Applied(3))),
		Entry("is given nothing by others",
			"c: -move",
			NewMember("a", 4, ScaleUp, Applied(4), promises, pinned), NewMember("b", 3, ScaleUp, Applied(3), took),
			NewMember("c", 2, ScaleUp, Applied(2), asked(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"a":1}}`))),
		Entry("is given nothing by others that come before it",
			"a: -move",
			NewMember("a", 2, ScaleUp, Applied(2), asked(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"c":1}}`)),
			NewMember("b", 3, ScaleUp, Applied(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"1","from":"c","taken":1}`)),
			NewMember("c", 4, ScaleUp, Applied(4), Annotate(v1alpha1.MoveAnnotation, `{"id":"1","to":{"b":1},"machine":"c-0"}`), pinned)),
		Entry("has its taker given nothing by others",
			"c: -move",
			NewMember("a", 4, ScaleUp, Applied(4), promises, pinned), NewMember("b", 3, ScaleUp, Applied(3), took),
			NewMember("c", 2, ScaleUp, Applied(2), asked(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"b":1}}`))),
		Entry("holds up no growth where nothing is made in its place",
			"a: applied-replicas=6",
			NewMember("a", 4, ScaleUp, Applied(4), promises, asked(6)), NewMember("b", 3, ScaleUp, Applied(3), took, stuck(1))),
		Entry("holds up no growth where the taker is frozen",
			"a: applied-replicas=6",
			NewMember("a", 4, ScaleUp, Applied(4), promises, asked(6)), NewMember("b", 3, ScaleUp, Applied(3), took, stuckBoot, frozen)),
		Entry("holds up no growth where the taker is updated",
			"a: applied-replicas=6",
			NewMember("a", 4, ScaleUp, Applied(4), promises, asked(6)), NewMember("b", 3, ScaleUp, Applied(3), took, stuckBoot, rollout)),
		Entry("since its MachineDeployment is being deleted, leaves what arrived where it is",
			"b: -move",
			NewMember("a", 4, ScaleUp, Applied(4), promises, deleted), NewMember("b", 3, ScaleUp, Applied(3), took)),
	)

	It("holds up no growth while the target cluster does not answer", func() {
		v := view(NewMember("a", 4, off, Applied(4), promises, asked(6)), NewMember("b", 3, off, took))
		v.Unreachable = "silent"
		p := New(v)
		Expect(writes(p)).To(Equal("a: applied-replicas=6"))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False " + ReasonUnreachable))
	})

	It("goes though growth is asked for where its replica arrived", func() {
		w := newWorld(NewMember("a", 4, Continuous, Applied(4), promises), NewMember("b", 3, Continuous, Applied(3), took, asked(5)))
		Expect(writes(New(w.View))).To(Equal("a: r=3 applied-replicas=3 -move gone=a-0"))
		w.rest()
		Expect(w.replicas()).To(Equal("4/4"))
	})
})

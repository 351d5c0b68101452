// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// beingDeleted is a member that its owner deletes.
func beingDeleted(m *Member) { m.Object.DeletionTimestamp = &metav1.Time{Time: Noon} }

// gives is a member's half of a move that gives one replica to each of these members.
func gives(id string, to ...string) Change {
	m := v1alpha1.Move{ID: id, To: map[string]int32{}}
	for _, name := range to {
		m.To[name] = 1
	}
	return move(m)
}

// promises is a member's half of a move that gives one replica together with its first machine.
func promises(name, to string) Change {
	return move(v1alpha1.Move{ID: "1", To: map[string]int32{to: 1}, Machine: name + "-0"})
}

// took is the half of a member that has taken a replica.
func took(id, from string) Change { return move(v1alpha1.Move{ID: id, From: from, Taken: 1}) }

var _ = DescribeTable("A step of a move", func(want, why string, members ...Member) {
	p := New(view(members...))
	Expect(writes(p)).To(Equal(want))
	for _, o := range p.Outcomes {
		if !o.Write.IsEmpty() {
			Expect(o.Write.Why).To(Equal(why), "in the log, for %s", o.Name)
		}
	}
},
	Entry("splits growth", `a: applied-replicas=4 move={"id":"11","to":{"b":2}}`, "split growth",
		NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2))),
	Entry("takes what is given", `b: r=3 applied-replicas=3 move={"id":"1","from":"a","taken":1}`, "take replicas from a",
		NewMember("a", 3, ScaleUp, Applied(2), gives("1", "b")), NewMember("b", 2, ScaleUp, Applied(2))),
	Entry("removes what was taken", "a: r=2 -move", "split growth",
		NewMember("a", 3, ScaleUp, Applied(2), gives("1", "b")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"))),
	Entry("leaves what is applied if replicas were lowered meanwhile", "a: -move", "split growth",
		NewMember("a", 2, ScaleUp, Applied(2), gives("1", "b")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"))),
	Entry("removes what was taken and leaves what was requested meanwhile", "a: r=4 -move", "split growth",
		NewMember("a", 6, ScaleUp, Applied(2), gives("1", "b", "c")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")), NewMember("c", 3, ScaleUp, Applied(3), took("1", "a"))),
	Entry("waits until the last member has taken its part", `c: r=3 applied-replicas=3 move={"id":"1","from":"a","taken":1}`, "take replicas from a",
		NewMember("a", 4, ScaleUp, Applied(2), gives("1", "b", "c")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")), NewMember("c", 2, ScaleUp, Applied(2))),
	Entry("leaves out a member that does not exist", `a: move={"id":"1","to":{"b":1}}`, "",
		NewMember("a", 4, ScaleUp, Applied(2), gives("1", "b", "gone")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"))),
	Entry("leaves out a member that is being deleted", `a: move={"id":"1","to":{"b":1}}`, "",
		NewMember("a", 4, ScaleUp, Applied(2), gives("1", "b", "c")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")), NewMember("c", 2, ScaleUp, Applied(2), beingDeleted)),
	Entry("leaves out a member whose bounds have become invalid, since its max is unknown", `a: move={"id":"1","to":{"b":1}}`, "",
		NewMember("a", 4, ScaleUp, Applied(2), gives("1", "b", "c")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")), NewMember("c", 2, ScaleUp, Applied(2), bounds("many"))),
	Entry("takes a promise back from a member that is being deleted with its replica", "a: -move", "",
		continuous("a", 4, promises("a", "b")), continuous("b", 3, beingDeleted, took("1", "a"))),
	Entry("does not hand a replica over that was to go to another member", "b: -move", "",
		continuous("a", 3), continuous("b", 3, took("1", "a"))),
	Entry("hands a replica over", "a: r=3 applied-replicas=3 -move gone=a-0", "hand a replica over",
		continuous("a", 4, promises("a", "b")), continuous("b", 3, took("1", "a"))),
	Entry("hands a replica over and leaves growth to be split", "a: r=5 applied-replicas=3 -move gone=a-0", "hand a replica over",
		NewMember("a", 6, Continuous, Applied(4), promises("a", "b")), continuous("b", 3, took("1", "a"))),
	Entry("hands the last applied replica over", "a: r=0 applied-replicas=0 -move gone=a-0", "hand a replica over",
		continuous("a", 1, promises("a", "b")), continuous("b", 1, took("1", "a"))),
	Entry("ends where nothing is left to delete", "a: -move", "end a move from a MachineDeployment that was scaled to 0",
		continuous("a", 0, promises("a", "b")), continuous("b", 3, took("1", "a"))),
	Entry("ends for the member that took, once the other has ended it", "b: -move", "",
		NewMember("a", 3, ScaleUp, Applied(3)), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"))),
	Entry("ends for the member that took, once the other does not exist", "b: -move", "",
		NewMember("b", 3, ScaleUp, Applied(3), took("1", "gone"))),
	Entry("ends for the member that took, once the other has another move, and only then goes on", "b: -move", "",
		NewMember("a", 4, ScaleUp, Applied(3), gives("2", "b")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"))),
	Entry("ends for the member that took, once the other takes something itself", "b: -move", "",
		NewMember("a", 3, ScaleUp, Applied(3), took("1", "c"), stuck(1)), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")),
		NewMember("c", 4, ScaleUp, Applied(4), promises("c", "a"))),
	Entry("ends for a member that took and names a machine, which only one that gives may do", "b: -move", "",
		NewMember("b", 3, ScaleUp, Applied(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"1","from":"gone","taken":1,"machine":"b-0"}`))),
	Entry("goes on where the member that gives was frozen meanwhile", `b: r=3 applied-replicas=3 move={"id":"1","from":"a","taken":1}`, "take replicas from a",
		NewMember("a", 3, ScaleUp, Applied(2), gives("1", "b"), frozen), NewMember("b", 2, ScaleUp, Applied(2))),
	Entry("does not wait for members that are not balanced", `c: applied-replicas=4 move={"id":"11","to":{"d":1}}`, "split growth",
		NewMember("a", 3), NewMember("b", 3), NewMember("c", 5, ScaleUp, Applied(3)), NewMember("d", 3, ScaleUp, Applied(3))),
	Entry("does not wait for a member that took and is being deleted", `a: applied-replicas=3 move={"id":"11","to":{"c":1}}`, "split growth",
		NewMember("a", 4, ScaleUp, Applied(2)), NewMember("b", 3, ScaleUp, Applied(3), beingDeleted, took("1", "x")), NewMember("c", 2, ScaleUp, Applied(2))),
	Entry("does not wait for a member that gives and is being deleted", `a: applied-replicas=3 move={"id":"11","to":{"c":1}}`, "split growth",
		NewMember("a", 4, ScaleUp, Applied(2)), NewMember("b", 3, ScaleUp, Applied(2), beingDeleted, gives("1", "gone")), NewMember("c", 2, ScaleUp, Applied(2))),
)

var _ = Describe("Replicas that moved", func() {
	It("are counted, one for each machine", func() {
		Expect(of(New(view(continuous("a", 4, promises("a", "b")), continuous("b", 3, took("1", "a")))), "a").Moves).To(Equal(1))
	})

	It("are counted, all that were split", func() {
		v := view(NewMember("a", 4, ScaleUp, Applied(2), gives("1", "b", "c")),
			NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")), NewMember("c", 3, ScaleUp, Applied(3), took("1", "a")))
		Expect(of(New(v), "a").Moves).To(Equal(2))
	})

	It("are not counted before they have arrived", func() {
		Expect(of(New(view(NewMember("a", 3, ScaleUp, Applied(2), gives("1", "b")), NewMember("b", 2, ScaleUp, Applied(2)))), "a").Moves).To(BeZero())
	})
})

var _ = DescribeTable("The condition during a move says", func(says, text string, members ...Member) {
	p := New(view(members...))
	Expect(condition(p, "a", ConditionBalanced)).To(Equal("False " + says))
	Expect(message(p, "a", ConditionBalanced)).To(Equal(text))
},
	Entry("that the replacement does not accept pods yet", "Moving", "waiting until the machine in b accepts pods",
		continuous("a", 4, promises("a", "b")), continuous("b", 3, stuckBoot, took("1", "a"))),
	Entry("that the replacement cannot be created", "Waiting", "waiting until the machine in b accepts pods",
		continuous("a", 4, promises("a", "b")), continuous("b", 3, stuck(1), took("1", "a"))),
	Entry("that its member is being updated", "Waiting", "a is being updated",
		continuous("a", 4, rollout, promises("a", "b")), continuous("b", 3, took("1", "a"))),
	Entry("that replicas are being moved, of another member of the group", "Moving", "replicas are being moved",
		continuous("a", 3), continuous("b", 4, promises("b", "c")), created("c", 2)),
)

var _ = Describe("A machine that was named for deletion and still exists", func() {
	named := func(changes ...Change) View {
		return view(NewMember("a", 3, append(changes,
			Annotate(machineutils.TriggerDeletionByMCM, "a-0~2026-03-01T11:59:45Z"),
			Annotate(machineutils.LastDeploymentReplicaChangeByScalerTime, "2026-03-01T11:59:44Z"))...))
	}

	It("is deleted after all", func() {
		Expect(of(New(named(ScaleUp)), "a").Write.Annotations).To(HaveKeyWithValue(machineutils.LastDeploymentReplicaChangeByScalerTime, "2026-03-01T12:00:00Z"))
	})

	It("is left to others where the mode is off", func() {
		Expect(of(New(named()), "a").Write.IsEmpty()).To(BeTrue())
	})
})

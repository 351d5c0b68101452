// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

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

// declined is what a member records that takes nothing in a move.
func declined(id string) Change { return Annotate(v1alpha1.DeclinedMoveAnnotation, id) }

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
	Entry("leaves out a member that does not exist", `a: move={"id":"1","to":{"b":1}}`, "keep what gone does not take",
		NewMember("a", 4, ScaleUp, Applied(2), gives("1", "b", "gone")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"))),
	Entry("leaves out a member that is being deleted", `a: move={"id":"1","to":{"b":1}}`, "keep what c does not take",
		NewMember("a", 4, ScaleUp, Applied(2), gives("1", "b", "c")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")), NewMember("c", 2, ScaleUp, Applied(2), beingDeleted)),
	Entry("has a member decline whose bounds have become invalid, since its max is unknown", "c: declined-move=1", "decline replicas from a",
		NewMember("a", 4, ScaleUp, Applied(2), gives("1", "b", "c")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")), NewMember("c", 2, ScaleUp, Applied(2), bounds("many"))),
	Entry("leaves out a member that has declined, even if it has room again", `a: move={"id":"1","to":{"b":1}}`, "keep what c does not take",
		NewMember("a", 4, ScaleUp, Applied(2), gives("1", "b", "c")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")), NewMember("c", 2, ScaleUp, Applied(2), declined("1"))),
	Entry("counts what a member has taken, even if it declines", "a: r=2 -move", "split growth",
		NewMember("a", 3, ScaleUp, Applied(2), gives("1", "b")), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a"), declined("1"))),
	Entry("forgets what a member has declined once nobody offers it", "b: -declined-move", "forget a move that it declined",
		NewMember("a", 3, ScaleUp, Applied(3)), NewMember("b", 2, ScaleUp, Applied(2), declined("1"))),
	Entry("has a member decline one move at a time", `b: move={"id":"2","to":{"c":1}}`, "keep what d does not take",
		NewMember("a", 3, ScaleUp, Applied(2), gives("1", "d")), NewMember("b", 4, ScaleUp, Applied(2), gives("2", "c", "d")), NewMember("c", 2, ScaleUp, Applied(2), took("2", "b")),
		NewMember("d", 2, ScaleUp, Applied(2), bounds("0:2"), declined("2"))),
	Entry("takes a promise back from a member that is being deleted with its replica", "a: -move", "keep what b does not take",
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
			"a: declined-move=2",
			NewMember("a", 4, ScaleUp, Applied(4), promises("a", "b"), holding(safe("false"))), NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")),
			NewMember("c", 2, ScaleUp, Applied(2), asked(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"a":1}}`))),
		Entry("is given nothing by others that come before it",
			"c: declined-move=2",
			NewMember("a", 2, ScaleUp, Applied(2), asked(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"2","to":{"c":1}}`)),
			NewMember("b", 3, ScaleUp, Applied(3), Annotate(v1alpha1.MoveAnnotation, `{"id":"1","from":"c","taken":1}`)),
			NewMember("c", 4, ScaleUp, Applied(4), Annotate(v1alpha1.MoveAnnotation, `{"id":"1","to":{"b":1},"machine":"c-0"}`), holding(safe("false")))),
		Entry("has its taker given nothing by others",
			"b: declined-move=2",
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

// Each write is guarded by the version of one MachineDeployment. So where leadership changes, or the answer to a write is lost,
// two members of a group can begin to give.
var _ = Describe("Two moves in one group", func() {
	DescribeTable("let each replica arrive once", func(want, end string, members ...Member) {
		w := newWorld(members...)
		Expect(writes(New(w.View))).To(Equal(want))
		w.rest()
		Expect(w.replicas()).To(Equal(end))
	},
		Entry("one takes from one giver at a time",
			`b: r=4 applied-replicas=4 move={"id":"1","from":"a","taken":1}`, "3/5/3",
			NewMember("a", 4, ScaleUp, Applied(3), gives("1", "b")),
			NewMember("b", 3, ScaleUp, Applied(3)),
			NewMember("c", 4, ScaleUp, Applied(3), gives("2", "b"))),
		Entry("one takes again only when its first giver has seen that it took",
			"a: r=3 -move", "3/4/3",
			NewMember("a", 4, ScaleUp, Applied(3), gives("1", "b")),
			NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")),
			NewMember("c", 4, ScaleUp, Applied(3), gives("2", "b"))),
		Entry("one takes again only when it has forgotten the first time",
			"b: -move", "3/4/3",
			NewMember("a", 4, ScaleUp, Applied(3), gives("2", "b")),
			NewMember("b", 3, ScaleUp, Applied(3), took("1", "c")),
			NewMember("c", 3, ScaleUp, Applied(3))),
		Entry("one that took from one giver did not take from another of the same move",
			"a: r=3 applied-replicas=3 -move gone=a-0", "3/4/3",
			NewMember("a", 4, Continuous, Applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 3, Continuous, Applied(3), took("1", "a")),
			NewMember("c", 4, Continuous, Applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "c-0"}))),
		Entry("one that waited for a machine takes the replica, and does not drop the move, when it is balanced no more",
			`b: r=3 -share move={"id":"1","from":"a","taken":1}`, "3/3/3",
			NewMember("a", 4, Continuous, Applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 2, Mode(v1alpha1.BalanceOff), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})),
			NewMember("c", 3, Continuous, Applied(3))),
		Entry("one that waited for a machine takes the replica, and no other move begins, when the giver is balanced no more",
			`b: r=3 applied-replicas=3 -share move={"id":"1","from":"a","taken":1}`, "3/3/4",
			NewMember("a", 4, Mode(v1alpha1.BalanceOff), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 2, Continuous, Applied(2), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})),
			NewMember("c", 4, Continuous, Applied(4))),
		Entry("one that waited for a machine takes the replica while another asks for growth",
			`b: r=3 applied-replicas=3 -share move={"id":"1","from":"a","taken":1}`, "3/4/4",
			NewMember("a", 4, Mode(v1alpha1.BalanceOff), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 2, ScaleUp, Applied(2), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})),
			NewMember("c", 5, ScaleUp, Applied(3))),
		Entry("one forgets what it declined once only others are offered it",
			`b: r=3 applied-replicas=3 move={"id":"1","from":"a","taken":1}; c: -declined-move`, "2/3/2",
			NewMember("a", 3, ScaleUp, Applied(2), gives("1", "b")),
			NewMember("b", 2, ScaleUp, Applied(2)),
			NewMember("c", 2, ScaleUp, Applied(2), declined("1"))),
		Entry("none waits for one that waits for it",
			"b: declined-move=2; c: declined-move=1", "4/4/4",
			NewMember("a", 5, ScaleUp, Applied(3), gives("1", "b", "c")),
			NewMember("b", 4, ScaleUp, Applied(4), took("1", "a")),
			NewMember("c", 4, ScaleUp, Applied(3), gives("2", "b"))),
	)
})

var _ = Describe("Moves, by law", func() {
	// Replicas change, zones fail and come back, plans are carried out in part, and memory is lost.
	It("1, 4, 5 and 9: conserve replicas, take no machine before another serves, and come to rest", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			n := rapid.IntRange(2, 4).Draw(t, "zones")
			total, m := 0, []Change{ScaleUp, Continuous}[rapid.IntRange(0, 1).Draw(t, "mode")]
			var members []Member
			for i := range n {
				r := rapid.IntRange(0, 6).Draw(t, "replicas")
				members = append(members, NewMember(string(rune('a'+i)), r, m, Applied(r)))
				total += r
			}
			w := newWorld(members...)
			w.draining = time.Duration(rapid.IntRange(0, 5).Draw(t, "minutes to drain")) * time.Minute
			w.wrote = func(name string, change Write) {
				if change.Gone == "" {
					return
				}
				for _, m := range w.Members {
					if text := m.Object.Annotations[v1alpha1.MoveAnnotation]; strings.Contains(text, `"from":"`+name+`"`) && w.serves(m) < int(m.Object.Spec.Replicas) {
						t.Fatalf("%s goes, and %s has only %d of %d", change.Gone, m.Object.Name, w.serves(m), m.Object.Spec.Replicas)
					}
					for _, x := range m.Machines {
						if x.Object.DeletionTimestamp != nil {
							t.Fatalf("%s goes, and so does %s", change.Gone, x.Object.Name)
						}
					}
				}
			}
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				at := rapid.IntRange(0, n-1).Draw(t, "at")
				name := w.Members[at].Object.Name
				switch rapid.IntRange(0, 5).Draw(t, "what") {
				case 0:
					if !strings.Contains(w.each(func(m Member) string { return m.Object.Annotations[v1alpha1.MoveAnnotation] }), "id") {
						more := rapid.IntRange(0, 5).Draw(t, "more")
						total += more
						w.ask(name, int(w.Members[at].Object.Spec.Replicas)+more)
					}
				case 1:
					w.out[name] = !w.out[name]
				case 2:
					w.Memory = Memory{}
				case 3:
					w.half(rapid.IntRange(0, n).Draw(t, "cut"))
				case 4:
					w.set(name, []Change{Mode(v1alpha1.BalanceOff), ScaleUp, Continuous}[rapid.IntRange(0, 2).Draw(t, "mode")])
				case 5:
					w.tick(7) // a machine boots
				}
				w.tick(1)
			}
			w.out = map[string]bool{}
			for i := range w.Members {
				w.set(w.Members[i].Object.Name, m)
			}
			w.pass(6 * time.Hour)
			if got := Sum(w.replicas()); got != total {
				t.Fatalf("%d replicas of %d: %s", got, total, w.replicas())
			}
			if counts := Numbers(w.replicas()); members[0].Object.Annotations[v1alpha1.BalanceAnnotation] == "Continuous" {
				for _, a := range counts {
					for _, b := range counts {
						if a > b+1 {
							t.Fatalf("%v is not even", counts)
						}
					}
				}
			}
		})
	})
})

// serves is how many machines of a member serve and are ready.
func (w *world) serves(m Member) int {
	n := 0
	for _, x := range m.Machines {
		if !pendingTaker(x) && x.Object.Status.CurrentStatus.Phase == "Running" && x.Object.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// half carries only the first writes of a plan out.
func (w *world) half(cut int) {
	p := New(w.View)
	for i, o := range p.Outcomes {
		if i < cut && !o.Write.IsEmpty() {
			w.write(&w.Members[i], o.Write)
		}
	}
}

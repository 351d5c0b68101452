// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	machinepool "github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// zones are three that are alike, each with so many replicas.
func zones(m Change, replicas ...int) []Member {
	var all []Member
	for i, r := range replicas {
		all = append(all, NewMember(string(rune('a'+i)), r, m, Applied(r)))
	}
	return all
}

// poolOfNodes names the pool in the labels that nodes get.
func poolOfNodes(name string) Change {
	return func(m *Member) {
		m.Object.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{PoolLabel: name}
	}
}

var _ = Describe("A member that was asked to grow", func() {
	It("takes note of what it has first", func() {
		p := New(view(NewMember("a", 2, ScaleUp), NewMember("b", 5)))
		Expect(writes(p)).To(Equal("a: applied-replicas=2"))
	})

	It("hands growth over in four writes, each replica once", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.ask("a", 8)
		id := w.Members[0].Object.ResourceVersion
		Expect(writes(New(w.View))).To(Equal(`a: applied-replicas=4 move={"id":"` + id + `","to":{"b":2,"c":2}}`))
		w.carry()
		Expect(writes(New(w.View))).To(Equal(
			`b: r=4 applied-replicas=4 move={"id":"` + id + `","from":"a","taken":2}; c: r=4 applied-replicas=4 move={"id":"` + id + `","from":"a","taken":2}`))
		w.carry()
		p := New(w.View)
		Expect(writes(p)).To(Equal("a: r=4 -move"))
		Expect(of(p, "a").Events).To(Equal([]Event{{EventMoved, "Moved 4 of the requested replicas to b (2), c (2)"}}))
		Expect(of(p, "a").Moves).To(Equal(4))
		w.carry()
		Expect(writes(New(w.View))).To(Equal("b: -move; c: -move"))
		w.carry()
		Expect(writes(New(w.View))).To(BeEmpty())
		Expect(w.replicas()).To(Equal("4/4/4"))
		w.rest()
		Expect(w.made).To(Equal(6))
	})

	DescribeTable("ends as even as it can", func(want, ask string, members ...Member) {
		w := newWorld(members...)
		for i, n := range Numbers(ask) {
			w.ask(w.Members[i].Object.Name, n)
		}
		w.settle()
		Expect(w.replicas()).To(Equal(want))
	},
		Entry("from 2/2/2", "4/4/4", "8/2/2", zones(ScaleUp, 2, 2, 2)[0], zones(ScaleUp, 2, 2, 2)[1], zones(ScaleUp, 2, 2, 2)[2]),
		Entry("all at once", "5/5/5", "8/5/2", zones(ScaleUp, 2, 2, 2)[0], zones(ScaleUp, 2, 2, 2)[1], zones(ScaleUp, 2, 2, 2)[2]),
		Entry("one by one", "3/2/2", "3/2/2", zones(ScaleUp, 2, 2, 2)[0], zones(ScaleUp, 2, 2, 2)[1], zones(ScaleUp, 2, 2, 2)[2]),
		Entry("where most is", "4/4/5", "2/3/8", zones(ScaleUp, 2, 3, 5)[0], zones(ScaleUp, 2, 3, 5)[1], zones(ScaleUp, 2, 3, 5)[2]),
		Entry("within the max of others", "6/3", "7/2", NewMember("a", 2, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), bounds("1:3"))),
		Entry("beyond the max of all, since a user asked", "7/3", "8/2", NewMember("a", 2, ScaleUp, Applied(2), bounds("1:3")), NewMember("b", 2, ScaleUp, Applied(2), bounds("1:3"))),
		Entry("within its own, since others have room", "3/6", "7/2", NewMember("a", 2, ScaleUp, Applied(2), bounds("1:3")), NewMember("b", 2, ScaleUp, Applied(2))),
		Entry("not over another named pool", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(2), Labelled("p")), NewMember("b", 2, ScaleUp, Applied(2), Labelled("q"))),
		Entry("not over those of no pool", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(2), Labelled("p")), NewMember("b", 2, ScaleUp, Applied(2))),
		Entry("over the same named pool", "4/4", "6/2", NewMember("a", 2, ScaleUp, Applied(2), Labelled("p")), NewMember("b", 2, ScaleUp, Applied(2), Labelled("p"))),
		Entry("over the same pool, which one names in the node template alone", "4/4", "6/2", NewMember("a", 2, ScaleUp, Applied(2), Labelled("p")), NewMember("b", 2, ScaleUp, Applied(2), poolOfNodes("p"))),
		Entry("not over those whose machines keep pods away", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(2), Tainted), NewMember("b", 2, ScaleUp, Applied(2))),
		Entry("not over those that are off", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(2)), NewMember("b", 2)),
		Entry("not over those that differ", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), nodeLabel("x", "y"))),
		Entry("over those that are paused, since they scale", "4/4", "6/2", NewMember("a", 2, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), paused)),
		Entry("if it is paused itself, since it scales", "4/4", "6/2", NewMember("a", 2, ScaleUp, Applied(2), paused), NewMember("b", 2, ScaleUp, Applied(2))),
		Entry("not over those that are paused before they have a MachineSet", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), paused, noSet)),
		Entry("not over those that are paused in a rollout", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), paused, rollout)),
		Entry("not over those that are frozen", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), frozen)),
		Entry("not over those that fail", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), machines(NewMachine("b-r", inReserve, exhausted)))),
		Entry("by the mode of the flag", "4/4", "6/2", NewMember("a", 2, Continuous, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2))),
		Entry("with what was applied by others left alone", "6/2", "6/2", NewMember("a", 2, ScaleUp, Applied(6)), NewMember("b", 2, ScaleUp, Applied(2))),
	)

	DescribeTable("is not kept waiting where nothing is given to it or taken from it", func(want string, changes ...Change) {
		w := newWorld(NewMember("a", 2, append(changes, ScaleUp, Applied(2))...), NewMember("b", 2, ScaleUp, Applied(2)))
		w.ask("a", 6)
		p := New(w.View)
		Expect(writes(p)).To(Equal("a: applied-replicas=6"))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal(want))
	},
		Entry("paused before it has a MachineSet", "False Paused", paused, noSet),
		Entry("paused in a rollout", "False Paused", paused, rollout),
		Entry("frozen", "False Frozen", frozen),
		Entry("frozen by its label", "False Frozen", frozenLabel),
	)

	It("is not kept waiting by a move of others where it is frozen", func() {
		w := newWorld(NewMember("a", 2, ScaleUp, Applied(2), frozen), NewMember("b", 6, ScaleUp, Applied(2)), NewMember("c", 2, ScaleUp, Applied(2)))
		w.carry()
		Expect(w.moves()).To(ContainSubstring("to"))
		w.ask("a", 4)
		Expect(of(New(w.View), "a").Write.Annotations).To(HaveKeyWithValue(v1alpha1.AppliedReplicasAnnotation, "4"))
	})

	It("is split as workload where replicas include the reserve, which stays where it is", func() {
		included := Annotate(v1alpha1.AppliedExcessAnnotation, "2,counted=2,replicas=4")
		w := newWorld(NewMember("a", 4, ScaleUp, Applied(2), included), NewMember("b", 4, ScaleUp, Applied(2), included))
		w.ask("a", 8)
		for range 9 {
			w.carry()
		}
		for _, name := range []string{"a", "b"} {
			d := w.member(name).Object
			Expect(d.Spec.Replicas).To(BeEquivalentTo(6), name)
			Expect(machinepool.Workload(d, d.Spec.Replicas)).To(BeEquivalentTo(4), name)
			Expect(d.Annotations).To(HaveKeyWithValue(v1alpha1.AppliedExcessAnnotation, "2,counted=2,replicas=6"), name)
		}
	})

	It("gives to a hundred others at most in one move, and to the rest in the next", func() {
		var members []Member
		for i := range 103 {
			members = append(members, NewMember(fmt.Sprintf("z%03d", i), 1, ScaleUp, Applied(1)))
		}
		w := newWorld(members...)
		w.ask("z000", 3*103-102)
		move, err := v1alpha1.ParseMove(of(New(w.View), "z000").Write.Annotations[v1alpha1.MoveAnnotation])
		Expect(err).NotTo(HaveOccurred())
		Expect(move.To).To(HaveLen(100))
		w.settle()
		Expect(w.replicas()).To(Equal("3" + strings.Repeat("/3", 102)))
	})

	It("has nothing split that is lowered", func() {
		w := newWorld(zones(ScaleUp, 4, 4, 4)...)
		w.ask("a", 1)
		Expect(writes(New(w.View))).To(Equal("a: applied-replicas=1"))
	})

	DescribeTable("gives nothing to one whose bounds are invalid, since its max is unknown", func(mode Change) {
		w := newWorld(zones(mode, 2, 2, 2)...)
		for i, text := range []string{"1:4", "1:4", "1:many"} {
			bounds(text)(&w.Members[i])
		}
		w.ask("a", 11)
		w.rest()
		Expect(w.replicas()).To(Equal("9/4/2"))
		Expect(condition(New(w.View), "c", ConditionShare)).To(Equal("False Invalid"))
		w.ask("c", 4)
		w.rest()
		Expect(w.replicas()).To(Equal("9/4/4"), "what is requested there stays there")
	}, Entry("by a split", ScaleUp), Entry("by a move", Continuous))

	It("is released whole when its mode goes", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		for i := range w.Members {
			Mode(v1alpha1.BalanceOff)(&w.Members[i])
		}
		w.ask("a", 8)
		Expect(writes(New(w.View))).To(Equal("a: -applied-replicas; b: -applied-replicas; c: -applied-replicas"))
	})

	It("is off for all by one setting", func() {
		v := view(zones(Continuous, 2, 2, 8)...)
		v.Settings.Enabled = false
		Expect(writes(New(v))).To(Equal("a: -applied-replicas; b: -applied-replicas; c: -applied-replicas"))
	})

	It("is told so in an unknown mode", func() {
		p := New(view(NewMember("a", 2, Mode("Sideways"))))
		Expect(writes(p)).To(BeEmpty())
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False Invalid"))
		Expect(condition(p, "a", ConditionShare)).To(BeEmpty())
	})

	It("hands what cannot be made to others, and takes it not back by itself", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.out["c"] = true
		w.ask("a", 8)
		w.rest()
		Expect(w.replicas()).To(Equal("5/5/2"))
		Expect(w.running(false)).To(Equal("5/5/2"))
		w.out["c"] = false
		w.rest()
		Expect(w.replicas()).To(Equal("5/5/2"))
		w.ask("a", 7)
		w.rest()
		w.ask("a", 9)
		w.rest()
		Expect(w.replicas()).To(Equal("6/6/5"))
	})

	It("keeps what a user lowers meanwhile", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.ask("a", 8)
		w.carry()
		w.carry()
		w.ask("a", 3)
		w.settle()
		Expect(w.replicas()).To(Equal("3/4/4"))
	})

	It("splits what a user adds meanwhile", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.ask("a", 8)
		w.carry()
		w.ask("a", 11)
		w.settle()
		Expect(w.replicas()).To(Equal("5/5/5"))
	})

	It("keeps what was for one that reaches its max meanwhile", func() {
		gives := move(v1alpha1.Move{ID: "2", To: map[string]int32{"b": 1}})
		w := newWorld(NewMember("a", 3, ScaleUp, Applied(2), gives), NewMember("b", 3, ScaleUp, Applied(3), bounds("0:3")))
		for _, want := range []string{"b: declined-move=2", "a: -move", "a: applied-replicas=3; b: -declined-move", ""} {
			Expect(writes(New(w.View))).To(Equal(want))
			w.carry()
		}
		Expect(w.replicas()).To(Equal("3/3"))
	})

	It("keeps what was for one that is gone meanwhile", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.ask("a", 8)
		w.carry()
		w.Members = w.Members[:2]
		w.settle()
		Expect(w.replicas()).To(Equal("5/5"))
	})
})

var _ = Describe("A zone that fails", func() {
	It("gets no growth, then one to try, and all when that is ready", func() {
		w := newWorld(zones(ScaleUp, 3, 3)...)
		w.out["b"] = true
		w.ask("a", 5)
		w.pass(30 * time.Second)
		Expect(w.replicas()).To(Equal("5/3"), "what b could not make went back to a")
		w.ask("a", 6)
		w.settle()
		Expect(w.replicas()).To(Equal("6/3"))
		w.out["b"] = false
		w.pass(5 * time.Minute)
		w.ask("a", 9)
		w.settle()
		Expect(w.replicas()).To(Equal("8/4"), "one to try")
		w.rest()
		w.ask("a", 12)
		w.rest()
		Expect(w.replicas()).To(Equal("8/8"))
	})
})

// ng returns a group like those of cluster-autoscaler's own tests, which are named ng1 and so on.
func ng(number, replicas, limit int) Group {
	return Group{Name: fmt.Sprint("ng", number), Replicas: replicas, Max: limit}
}

// text is what became of groups, as in 4/4/5/5, and what is left.
func text(sizes []int, left int) string {
	var words []string
	for _, n := range sizes {
		words = append(words, fmt.Sprint(n))
	}
	if left > 0 {
		words = append(words, fmt.Sprint("left ", left))
	}
	return strings.Join(words, "/")
}

// These are the rows of cluster-autoscaler's balancing, one by one.
var _ = DescribeTable("Growth over groups", func(want string, more int, groups ...Group) {
	sizes, left := SplitEvenly(groups, more, groups[0].Name)
	Expect(text(sizes, left)).To(Equal(want))
},
	Entry("one alone, 1", "2", 1, ng(1, 1, 10)),
	Entry("one alone, 4", "5", 4, ng(1, 1, 10)),
	Entry("1 to the smallest", "2/3/5/5", 1, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("2 to the smallest", "3/3/5/5", 2, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("4 to the two smallest", "4/4/5/5", 4, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("5, either way", "5/4/5/5", 5, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("10 to all", "6/6/6/6", 10, ng(1, 1, 10), ng(2, 3, 10), ng(3, 5, 10), ng(4, 5, 10)),
	Entry("at its max", "1/left 1", 1, ng(1, 1, 1)),
	Entry("one at its max, 1", "1/2", 1, ng(1, 1, 1), ng(2, 1, 3)),
	Entry("one at its max, 5", "1/3/left 3", 5, ng(1, 1, 1), ng(2, 1, 3)),
	Entry("two with different max", "3/5", 4, ng(2, 1, 3), ng(3, 3, 10)),
	Entry("three with different max, 9", "3/8/7", 9, ng(2, 1, 3), ng(3, 3, 10), ng(4, 5, 7)),
	Entry("three with different max, 900", "3/10/7/left 889", 900, ng(2, 1, 3), ng(3, 3, 10), ng(4, 5, 7)),
	Entry("one above its max", "2/6", 1, ng(2, 1, 3), ng(5, 6, 3)),
	Entry("the proposal's example: 1", "2/3/6", 1, ng(1, 1, 10), ng(2, 3, 10), ng(3, 6, 10)),
	Entry("the proposal's example: 4", "4/4/6", 4, ng(1, 1, 10), ng(2, 3, 10), ng(3, 6, 10)),
)

var _ = Describe("Growth over groups, by law", func() {
	It("takes from none, passes no max, wastes nothing, and leaves nothing less even than it must", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			n := rapid.IntRange(1, 6).Draw(t, "groups")
			var groups []Group
			for i := range n {
				groups = append(groups, ng(i, rapid.IntRange(0, 9).Draw(t, "replicas"), rapid.IntRange(0, 12).Draw(t, "max")))
			}
			more := rapid.IntRange(0, 40).Draw(t, "more")
			sizes, left := SplitEvenly(groups, more, groups[rapid.IntRange(0, n-1).Draw(t, "favoured")].Name)
			grown := left
			for i, g := range groups {
				if sizes[i] < g.Replicas || sizes[i] > max(g.Max, g.Replicas) {
					t.Fatalf("%v became %v", groups, sizes)
				}
				grown += sizes[i] - g.Replicas
				for j, h := range groups {
					if sizes[i] > g.Replicas && sizes[j] < h.Max && sizes[j] < sizes[i]-1 {
						t.Fatalf("%v became %v: %d should have grown before %d", groups, sizes, j, i)
					}
				}
				if left > 0 && sizes[i] < g.Max {
					t.Fatalf("%v became %v with %d left", groups, sizes, left)
				}
			}
			if grown != more {
				t.Fatalf("%d of %d", grown, more)
			}
		})
	})
})

var _ = Describe("Growth over groups, in a tie,", func() {
	It("goes to the favoured one", func() {
		sizes, left := SplitEvenly([]Group{ng(1, 1, 10), ng(2, 1, 10)}, 1, "ng2")
		Expect(text(sizes, left)).To(Equal("1/2"))
	})

	It("goes to the first by name where none is favoured", func() {
		sizes, left := SplitEvenly([]Group{ng(2, 1, 10), ng(1, 1, 10)}, 1, "")
		Expect(text(sizes, left)).To(Equal("1/2"))
	})
})

var _ = It("Groups that share a name get no growth", func() {
	sizes, left := SplitEvenly([]Group{ng(1, 1, 10), ng(1, 2, 10)}, 3, "ng1")
	Expect(text(sizes, left)).To(Equal("1/2/left 3"))
})

var _ = Describe("A member that asks for no growth", func() {
	It("is not blocked by its pods while another grows", func() {
		v := view(NewMember("a", 2, ScaleUp, Applied(2), holding(InZone("a"))), NewMember("b", 5, ScaleUp, Applied(2)))
		p := New(v)
		Expect(writes(p)).To(ContainSubstring(`"to":{"a":1}`))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("True Even"))
		Expect(p.Blocks).To(BeEmpty())
	})
})

var _ = It("No machine moves while growth is split", func() {
	p := New(view(NewMember("a", 6, Continuous, Applied(2)), continuous("b", 2)))
	Expect(writes(p)).To(ContainSubstring(`"to":{"b":2}`))
	Expect(condition(p, "b", ConditionBalanced)).To(Equal("True Even"), "it does not wait for growth either")
})

func rankedAs(priority string) func(*Machine) {
	return func(m *Machine) { m.Object.Annotations["machinepriority.machine.sapcloud.io"] = priority }
}

func markedAt(t string) func(*Machine) {
	return func(m *Machine) { m.Object.Annotations[machineutils.MarkedForDeletionTime] = t }
}

var _ = DescribeTable("Growth goes", func(want string, members ...Member) {
	Expect(writes(New(view(members...)))).To(Equal(want))
},
	Entry("to the members where its pods can run, past one where they cannot", `a: applied-replicas=3 move={"id":"11","to":{"c":1}}`,
		NewMember("a", 4, ScaleUp, Applied(2), holding(InZone("c"))), NewMember("b", 2, ScaleUp, Applied(2)), NewMember("c", 2, ScaleUp, Applied(2))),
	Entry("to others from a later member, where that of an earlier one stays",
		`a: applied-replicas=4; c: applied-replicas=3 move={"id":"11","to":{"b":1}}`,
		NewMember("a", 4, ScaleUp, Applied(2), holding(InZone("a"))), NewMember("b", 2, ScaleUp, Applied(2)), NewMember("c", 4, ScaleUp, Applied(2))),
	Entry("to others as far as machines cannot be created", `a: applied-replicas=2 move={"id":"11","to":{"b":1}}`,
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1)), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that failed after it ran, also if it is preserved for a while", "",
		NewMember("a", 3, ScaleUp, Applied(3), func(m *Member) { broken(&m.Machines[2]) }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that could not be created and is preserved: others would be deleted first", "",
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), func(m *Member) { m.Machines[2].Preserved = true }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that cannot be created and that a user ranked: others would be deleted first", "",
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), func(m *Member) { rankedAs("4")(&m.Machines[2]) }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that takes too long, while one that does not report would be deleted first", "",
		NewMember("a", 3, ScaleUp, Applied(3), func(m *Member) { phase(mcm.MachineUnknown)(&m.Machines[0]); phase(mcm.MachinePending)(&m.Machines[2]) }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that cannot be created, while one that was once marked for deletion would be deleted first", "",
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), func(m *Member) { rankedAs("3")(&m.Machines[0]); markedAt("2026-02-01T12:00:00Z")(&m.Machines[0]) }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("elsewhere for a machine that cannot be created and was marked for deletion before one that works", `a: applied-replicas=2 move={"id":"11","to":{"b":1}}`,
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), func(m *Member) {
			markedAt("2026-02-01T12:00:01Z")(&m.Machines[0])
			markedAt("2026-02-01T12:00:00Z")(&m.Machines[2])
		}), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that cannot be created in a rollout: one of the old template would be deleted", "",
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), rollout), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("as evenly as ever to a member with such a machine", "a: applied-replicas=4; b: applied-replicas=3",
		NewMember("a", 4, ScaleUp, Applied(3), func(m *Member) { broken(&m.Machines[2]) }), NewMember("b", 3, ScaleUp, Applied(2))),
	Entry("not to a member that is being deleted", "a: applied-replicas=6",
		NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), beingDeleted)),
	Entry("nowhere if machines in reserve cannot be created", "",
		NewMember("a", 3, ScaleUp, Applied(3), failingReserve), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere if other machines stand in for those that cannot be created", "",
		NewMember("a", 3, ScaleUp, Applied(3), machines(NewMachine("a-x", exhausted))), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("to a promised machine's member only as what it applies, once it is not balanced",
		`a: applied-replicas=6; b: r=4 applied-replicas=4 move={"id":"1","from":"a","taken":1}`,
		NewMember("a", 6, Mode(v1alpha1.BalanceOff), Applied(4), promises("a", "b")), continuous("b", 3)),
)

var _ = Describe("Growth over a member that failed to create machines, and may try one,", func() {
	// trying is a view in which a grows by one and b has fewer replicas, with changes of b.
	trying := func(changes ...Change) View {
		v := view(NewMember("a", 5, ScaleUp, Applied(4)), NewMember("b", 2, append([]Change{ScaleUp, Applied(2)}, changes...)...))
		v.Memory.Failing = map[string]Failure{"b": {Since: Noon.Add(-2 * time.Minute), Failures: 1, Until: Noon.Add(-time.Minute), Probing: true}}
		return v
	}

	It("goes there for one machine", func() {
		Expect(writes(New(trying()))).To(Equal(`a: move={"id":"11","to":{"b":1}}`))
	})

	It("goes there for one machine beside one that is preserved", func() {
		Expect(writes(New(trying(func(m *Member) { broken(&m.Machines[1]); m.Machines[1].Preserved = true })))).To(Equal(`a: move={"id":"11","to":{"b":1}}`))
	})

	It("stays where it is requested until that machine is created", func() {
		Expect(writes(New(trying(func(m *Member) { m.Machines = m.Machines[:1] })))).To(Equal("a: applied-replicas=5"))
	})

	It("stays where it is requested until that machine is ready", func() {
		Expect(writes(New(trying(func(m *Member) { phase(mcm.MachinePending)(&m.Machines[1]); bornAt(Noon)(&m.Machines[1]) })))).To(Equal("a: applied-replicas=5"))
	})
})

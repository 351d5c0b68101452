// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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
		Expect(writes(New(w.View))).To(Equal("a: -move"))
		w.settle()
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

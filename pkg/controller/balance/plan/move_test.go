// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("What is uneven", func() {
	It("is evened out one machine at a time by way of the reserve", func() {
		w := newWorld(zones(Continuous, 4, 2)...)
		first := w.Members[1].Object.ResourceVersion
		Expect(writes(New(w.View))).To(Equal(`b: share=1 move={"id":"` + first + `","from":"a","reserve":1}`))
		w.carry()
		Expect(writes(New(w.View))).To(BeEmpty(), "the machine is not ready")
		w.pass(30 * time.Second)
		Expect(w.replicas()).To(Equal("4/2"))
		for w.readyReserve() != "0/1" {
			Expect(w.carry()).To(BeFalse())
			w.Now = w.Now.Add(tick)
			w.mcm(&w.Members[1])
		}
		Expect(writes(New(w.View))).To(Equal(`a: move={"id":"` + first + `","to":{"b":1},"machine":"a-0"}`))
		w.carry()
		Expect(writes(New(w.View))).To(Equal(`b: r=3 applied-replicas=3 -share move={"id":"` + first + `","from":"a","taken":1}`))
		w.carry()
		Expect(writes(New(w.View))).To(BeEmpty(), "the machine does not serve yet")
		w.mcm(&w.Members[1])
		p := New(w.View)
		Expect(writes(p)).To(Equal("a: r=3 applied-replicas=3 -move gone=a-0"))
		Expect(of(p, "a").Events).To(Equal([]Event{{EventMoved, "Machine a-0 is deleted because its replica moved to b (1)"}}))
		w.carry()
		Expect(writes(New(w.View))).To(Equal("b: -move"))
		w.rest()
		Expect(w.replicas()).To(Equal("3/3"))
		Expect(w.running(false)).To(Equal("3/3"))
		Expect(w.shares()).To(Equal("-/-"))
		Expect(condition(New(w.View), "a", ConditionBalanced)).To(Equal("True Even"))
	})

	DescribeTable("comes to", func(want string, members ...Member) {
		w := newWorld(members...)
		total := Sum(w.replicas())
		w.watch = func() { Expect(Sum(w.running(false))).To(BeNumerically(">=", total)) }
		w.pass(2 * time.Hour)
		Expect(w.replicas()).To(Equal(want))
		Expect(w.running(false)).To(Equal(want))
	},
		Entry("even numbers", "4/3/3", zones(Continuous, 6, 3, 1)[0], zones(Continuous, 6, 3, 1)[1], zones(Continuous, 6, 3, 1)[2]),
		Entry("what it is, if that is even", "3/3/2", zones(Continuous, 3, 3, 2)[0], zones(Continuous, 3, 3, 2)[1], zones(Continuous, 3, 3, 2)[2]),
		Entry("within bounds", "4/2", NewMember("a", 5, Continuous, bounds("4:9")), NewMember("b", 1, Continuous)),
		Entry("within max", "4/2", NewMember("a", 5, Continuous), NewMember("b", 1, Continuous, bounds("0:2"))),
		Entry("nothing else between named pools", "5/1", NewMember("a", 5, Continuous, Labelled("p")), NewMember("b", 1, Continuous, Labelled("q"))),
		Entry("nothing else between a dedicated pool and another", "5/1", NewMember("a", 5, Continuous, Tainted), NewMember("b", 1, Continuous)),
		Entry("nothing else in ScaleUp", "5/1", NewMember("a", 5, Continuous), NewMember("b", 1, ScaleUp)),
		Entry("nothing else among those that differ", "5/1", NewMember("a", 5, Continuous), NewMember("b", 1, Continuous, nodeLabel("x", "y"))),
		Entry("even numbers with one that is paused, since it scales", "3/3", NewMember("a", 5, Continuous), NewMember("b", 1, Continuous, paused)),
		Entry("nothing else with one that is paused before it has a MachineSet", "5/1", NewMember("a", 5, Continuous), NewMember("b", 1, Continuous, paused, noSet)),
		Entry("nothing else with one that is frozen", "5/1", NewMember("a", 5, Continuous), NewMember("b", 1, Continuous, frozen)),
		Entry("even numbers, whatever is in reserve", "3/3", NewMember("a", 3, Continuous, ExcessField(3), ready(3)), NewMember("b", 3, Continuous)),
		Entry("even numbers, whatever their own reserve", "3/3", NewMember("a", 5, Continuous, ExcessField(1), ready(1)), NewMember("b", 1, Continuous, ExcessField(1), ready(1))),
		Entry("even numbers at the max, with what is in reserve", "3/3", NewMember("a", 5, Continuous), NewMember("b", 1, Continuous, bounds("1:3"), ExcessField(2), ready(2))),
	)

	It("uses no more machines than it moves, and leaves fields for excess as they were", func() {
		w := newWorld(NewMember("a", 6, Continuous, ExcessField(1), ready(1)), NewMember("b", 2, Continuous, ExcessField(2), ready(2)))
		w.pass(2 * time.Hour)
		Expect(w.replicas()).To(Equal("4/4"))
		Expect(w.made).To(Equal(2))
		Expect(*w.Members[1].Object.Spec.ExcessReplicas).To(BeEquivalentTo(2))
		Expect(w.readyReserve()).To(Equal("1/2"))
	})

	It("has a pool's excess spread all the while", func() {
		var members []Member
		for i, r := range []int{6, 3, 1} {
			members = append(members, NewMember(string(rune('a'+i)), r, Continuous, Labelled("p"), Excess("3"), share(1), ready(1)))
		}
		w := newWorld(members...)
		w.watch = func() { Expect(Sum(w.readyReserve())).To(BeNumerically(">=", 3-1), "one may be handed over at a time") }
		w.pass(2 * time.Hour)
		Expect(w.replicas()).To(Equal("4/3/3"))
		Expect(w.shares()).To(Equal("1/1/1"))
	})

	DescribeTable("waits", func(want string, members ...Member) {
		p := New(newWorld(members...).View)
		Expect(writes(p)).NotTo(ContainSubstring("move"))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal(want))
	},
		Entry("for what leaves", "False Waiting", NewMember("a", 4, Continuous, machines(NewMachine("old", leaving))), NewMember("b", 1, Continuous)),
		Entry("for what leaves elsewhere in the group", "False Waiting", NewMember("a", 4, Continuous), NewMember("b", 1, Continuous), NewMember("c", 3, Continuous, machines(NewMachine("old", leaving)))),
		Entry("for repair", "False Waiting", NewMember("a", 4, Continuous, stuckBoot), NewMember("b", 1, Continuous)),
		Entry("not for updates", "True Even", NewMember("a", 4, Continuous, func(m *Member) { m.Rollout.Spread = true }), NewMember("b", 1, Continuous)),
	)

	It("is left alone by growth until that is done, and does not hold it up", func() {
		w := newWorld(zones(Continuous, 4, 1)...)
		w.carry()
		w.ask("b", 5)
		w.settle()
		Expect(Sum(w.replicas())).To(Equal(9))
		w.rest()
		Expect(w.replicas()).To(Or(Equal("4/5"), Equal("5/4")))
	})

	It("is left alone when its mode goes before anything was promised", func() {
		w := newWorld(zones(Continuous, 4, 1)...)
		w.carry()
		for i := range w.Members {
			Mode(v1alpha1.BalanceOff)(&w.Members[i])
		}
		w.rest()
		Expect(w.replicas()).To(Equal("4/1"))
		Expect(w.shares()).To(Equal("-/-"))
		Expect(w.member("b").Object.Annotations).NotTo(HaveKey(v1alpha1.MoveAnnotation))
	})

	It("is ended when its mode goes after that", func() {
		w := newWorld(zones(Continuous, 4, 1)...)
		for w.replicas() != "4/2" {
			w.carry()
			w.Now = w.Now.Add(tick)
			w.mcm(&w.Members[1])
		}
		for i := range w.Members {
			Mode(v1alpha1.BalanceOff)(&w.Members[i])
		}
		w.rest()
		Expect(w.replicas()).To(Equal("3/2"))
		Expect(w.member("a").Object.Annotations).NotTo(HaveKey(v1alpha1.AppliedReplicasAnnotation))
	})

	It("waits some minutes before it requests a machine again where none could be released", func() {
		w := newWorld(zones(Continuous, 3, 1)...)
		for i, name := range []string{"a-0", "a-1", "a-2"} {
			w.put("a", i, pod(name, name, app("q")))
			w.Nodes = append(w.Nodes, fit.Node{Object: node(name), Pods: w.Members[0].Machines[i].Workload})
		}
		w.Budgets = []pool.Budget{budget("q", 1)}
		w.carry()
		Expect(w.moves()).To(ContainSubstring("reserve"))
		w.Budgets = []pool.Budget{budget("q", 0)}
		w.carry()
		Expect(w.moves()).To(Equal("-/-"), "no machine may go any more")
		w.Budgets = []pool.Budget{budget("q", 1)}
		w.Now = w.Now.Add(4 * time.Minute)
		Expect(w.carry()).To(BeFalse())
		w.Now = w.Now.Add(2 * time.Minute)
		Expect(w.carry()).To(BeTrue())
		Expect(w.moves()).To(ContainSubstring("reserve"))
	})

	It("tries a zone that fails once, and later again", func() {
		w := newWorld(zones(Continuous, 4, 1)...)
		w.out["b"] = true
		w.pass(4 * time.Hour)
		Expect(w.replicas()).To(Equal("4/1"))
		w.out["b"] = false
		w.pass(2 * time.Hour)
		Expect(w.replicas()).To(Equal("3/2"))
	})

	DescribeTable("waits while many Nodes of the cluster are not ready", func(changes ...Change) {
		w := newWorld(zones(Continuous, 4, 2)...)
		for i := range w.Members {
			changes[i](&w.Members[i])
		}
		w.NodesKnown, w.NodeCount, w.UnreadyCount = true, 8, 4
		p := New(w.View)
		Expect(writes(p)).To(BeEmpty())
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False Waiting"))
		w.UnreadyCount = 3
		Expect(writes(New(w.View))).NotTo(BeEmpty())
	},
		Entry("before it asks for a machine", func(*Member) {}, func(*Member) {}),
		Entry("before it hands the replica over", func(*Member) {}, func(m *Member) {
			m.Machines = append(m.Machines, NewMachine("b-r", inReserve))
			share(1)(m)
			move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})(m)
		}),
		Entry("before it names the old machine",
			move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"}), move(v1alpha1.Move{ID: "1", From: "a", Taken: 1})),
	)

	It("returns to a zone after its outage", func() {
		w := newWorld(zones(Continuous, 2, 2, 2)...)
		w.out["c"] = true
		w.ask("a", 8)
		w.pass(10 * time.Minute)
		Expect(w.replicas()).To(Equal("5/5/2"))
		w.out["c"] = false
		w.pass(2 * time.Hour)
		Expect(w.replicas()).To(Equal("4/4/4"))
	})
})

func stuckBoot(m *Member) {
	phase("Pending")(&m.Machines[0])
	bornAt(Noon.Add(-time.Minute))(&m.Machines[0])
}

func node(name string) *corev1.Node {
	node, err := target.Strip(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("110")}},
	})
	if err != nil {
		panic(err)
	}
	return node.(*corev1.Node)
}

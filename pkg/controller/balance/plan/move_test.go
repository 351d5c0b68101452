// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strconv"
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
		Expect(of(p, "a").Events).To(Equal([]Event{{EventMoved, "Deleting machine a-0, because its replica moved to b (1)"}}))
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

// continuous is a member whose replicas are applied and may move.
func continuous(name string, replicas int, changes ...Change) Member {
	return NewMember(name, replicas, append([]Change{Continuous, Applied(replicas)}, changes...)...)
}

// created is a member with a ready machine that was created for a move from a.
func created(name string, replicas int, changes ...Change) Member {
	return continuous(name, replicas, append([]Change{share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})}, changes...)...)
}

// kept is the excess that its field contained before a share took its place.
func kept(n int) Change { return Annotate(v1alpha1.OwnExcessAnnotation, strconv.Itoa(n)) }

// cordoned is a machine whose Node accepts no pods.
func cordoned(m *Machine) { m.Node = &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}} }

var _ = Describe("A machine that was created for a move", func() {
	DescribeTable("leads to", func(want string, members ...Member) {
		Expect(writes(New(view(members...)))).To(Equal(want))
	},
		Entry("a promise, though another member lacks more replicas",
			`a: move={"id":"1","to":{"c":1},"machine":"a-0"}`, continuous("a", 6), continuous("b", 1), created("c", 2)),
		Entry("a promise by the member that has too many now",
			`b: move={"id":"1","from":"c","reserve":1}; c: move={"id":"1","to":{"b":1},"machine":"c-0"}`, continuous("a", 2), created("b", 1), continuous("c", 3)),
		Entry("nothing before it is ready", "",
			continuous("a", 3), created("b", 1, func(m *Member) { phase("Pending")(&m.Machines[1]); bornAt(Noon)(&m.Machines[1]) })),
		Entry("nothing before the reserve of its member is complete, too", "",
			continuous("a", 3), created("b", 1, share(3), ready(1), kept(2))),
		Entry("nothing before what a Reserve requests is ready, too", "",
			continuous("a", 3), created("b", 1, share(3), ready(1), requested(2))),
		Entry("a promise as soon as it is",
			`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`, continuous("a", 3), created("b", 1, share(3), ready(2), kept(2))),
		Entry("a promise of a machine without pods, though no node template is known",
			`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`, continuous("a", 3), created("b", 1, func(m *Member) { m.Fresh = nil })),
		Entry("a promise though another machine in reserve is cordoned",
			`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`, continuous("a", 3), created("b", 1, share(2), kept(1), machines(NewMachine("b-x", inReserve, cordoned)))),
		Entry("a return to the reserve where no member may give a replica", "b: -share -move", continuous("a", 2, bounds("2:9")), created("b", 0)),
		Entry("a return to the reserve once members are even", "b: -share -move", continuous("a", 3), created("b", 3)),
		Entry("a return to the reserve once members are even by one", "b: -share -move", continuous("a", 3), created("b", 2)),
		Entry("a return to the reserve once its member has enough, though another lacks some",
			"c: -share -move", continuous("a", 5), continuous("b", 1), created("c", 3)),
		Entry("a return to the reserve where its member fails to create machines, though another lacks some",
			"c: -share -move", continuous("a", 6), continuous("b", 1), created("c", 1, machines(NewMachine("c-x", inReserve, exhausted)))),
		Entry("a return to the reserve where its member is updated", "b: -share -move", continuous("a", 4), created("b", 1, rollout)),
		Entry("a return to the reserve where its member was frozen", "b: -share -move", continuous("a", 4), created("b", 1, frozen)),
		Entry("a return to the reserve where that of its member is drained", "b: -share -move", continuous("a", 4), created("b", 1, drained)),
		Entry("a return to the reserve where that of its member stays as it is, because it is not known whether to drain it",
			"b: -share -move", continuous("a", 4), created("b", 1, Annotate(v1alpha1.DrainReserveAnnotation, "yes"))),
		Entry("a return to the reserve where that of its member stays as it is, because it is not known how to count it",
			"b: -share -move", continuous("a", 4), created("b", 1, Annotate(v1alpha1.AccountingAnnotation, "Both"))),
		Entry("a return to the reserve where its member has no one to be even with", "b: -share -move", NewMember("a", 4, ScaleUp, Applied(4)), created("b", 1)),
	)

	It("leads to a return to the reserve while all reserves are drained", func() {
		v := view(continuous("a", 4), created("b", 1))
		v.Settings.Drain = true
		Expect(writes(New(v))).To(Equal("b: -share -move"))
		v.Members[1] = continuous("b", 1)
		Expect(writes(New(v))).To(BeEmpty(), "no other one is requested")
	})

	It("leads to a promise though its member fails, if it was the probe", func() {
		v := view(continuous("a", 4), created("b", 1))
		v.Memory.Failing = map[string]Failure{"b": {Since: Noon.Add(-time.Minute), Failures: 1, Until: Noon, Probing: true}}
		for i := range v.Members[1].Machines {
			v.Members[1].Machines[i].Object.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(Born)
		}
		Expect(writes(New(v))).To(Equal(`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`))
	})

	It("leads to a promise though its member was paused after an earlier one", func() {
		v := view(continuous("a", 4), created("b", 1))
		v.Memory.Paused = map[string]time.Time{"b": Noon.Add(time.Minute)}
		Expect(writes(New(v))).To(Equal(`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`))
	})

	It("keeps its member from another one for five minutes after it was dropped", func() {
		p := New(view(continuous("a", 3), created("b", 3)))
		Expect(p.Memory.Paused).To(Equal(map[string]time.Time{"b": Noon.Add(5 * time.Minute)}))
		v := view(continuous("a", 4), continuous("b", 1))
		v.Memory = p.Memory
		p = New(v)
		Expect(writes(p)).To(BeEmpty())
		Expect(message(p, "a", ConditionBalanced)).To(Equal("the last machine for a move to b did not become ready"))
		Expect(p.Memory.Paused).To(Equal(v.Memory.Paused))
		v.Now = v.Now.Add(5 * time.Minute)
		p = New(v)
		Expect(writes(p)).To(ContainSubstring("move"))
		Expect(p.Memory.Paused).To(BeEmpty())
	})

	It("is dropped for growth, which does not wait for it", func() {
		p := New(view(NewMember("a", 5, Continuous, Applied(4)), created("b", 1)))
		Expect(writes(p)).To(Equal("b: -share -move"))
		Expect(of(p, "b").Write.Why).To(Equal("drop a move"))
	})

	It("does not hold up growth while its member is being deleted, which can take hours", func() {
		p := New(view(NewMember("a", 5, Continuous, Applied(4)), created("b", 1, beingDeleted), continuous("c", 2)))
		Expect(writes(p)).To(Equal(`a: move={"id":"11","to":{"c":1}}`))
	})
})

var _ = Describe("A machine for a move", func() {
	DescribeTable("is requested", func(want string, members ...Member) {
		Expect(writes(New(view(members...)))).To(Equal(want))
	},
		Entry("where most replicas are lacking, from where most are too many",
			`c: share=1 move={"id":"11","from":"b","reserve":1}`, continuous("a", 3), continuous("b", 5), continuous("c", 1), continuous("d", 2)),
		Entry("at the first by name of those that lack as many, from the first that has as many too many",
			`c: share=1 move={"id":"11","from":"a","reserve":1}`, continuous("a", 4), continuous("b", 4), continuous("c", 1), continuous("d", 1)),
		Entry("beside the member's own reserve",
			`b: share=3 move={"id":"11","from":"a","reserve":1} own-excess=2`, continuous("a", 4), continuous("b", 1, ExcessField(2), ready(2))),
		Entry("beside the reserve of the member's bounds",
			`b: share=3 move={"id":"11","from":"a","reserve":1}`, continuous("a", 4), continuous("b", 1, bounds("0:9:2"), ready(2))),
		Entry("beside what a Reserve requests",
			`b: share=3 move={"id":"11","from":"a","reserve":1}`, continuous("a", 4), continuous("b", 1, requested(2), ready(2))),
		Entry("beside what a Reserve requests, where the share of the pool's excess is less",
			`b: share=4 move={"id":"11","from":"a","reserve":3}`, continuous("a", 4, Labelled("p"), Excess("1"), share(0)), continuous("b", 1, Labelled("p"), Excess("1"), share(1), requested(3), ready(3))),
		Entry("beside the share of the pool's excess, where a Reserve requests less",
			`b: share=3 move={"id":"11","from":"a","reserve":1}`, continuous("a", 4, Labelled("p"), Excess("3"), share(1)), continuous("b", 1, Labelled("p"), Excess("3"), share(2), requested(2), ready(2))),
		Entry("from what a Reserve requests beyond the share, where max has no room for another",
			`b: move={"id":"11","from":"a"}`, continuous("a", 4, Labelled("p"), bounds("0:4"), Excess("1"), share(0)), continuous("b", 1, Labelled("p"), bounds("0:4"), Excess("1"), share(1), requested(3), ready(3))),
		Entry("from what a Reserve requests where max has no room for another",
			`b: move={"id":"11","from":"a"}`, continuous("a", 4), continuous("b", 1, requested(2), ready(2), bounds("0:3"))),
		Entry("as far as max has room for it beside the reserve",
			`b: share=3 move={"id":"11","from":"a","reserve":1} own-excess=2`, continuous("a", 4), continuous("b", 1, ExcessField(2), ready(2), bounds("0:4"))),
		Entry("from the reserve where max has no room for another",
			`b: move={"id":"11","from":"a"}`, continuous("a", 4), continuous("b", 1, ExcessField(2), ready(2), bounds("0:3"))),
		Entry("from the share where max has no room for another",
			`b: move={"id":"11","from":"a"}`, continuous("a", 4, Labelled("p"), bounds("0:4"), Excess("2"), share(0)), continuous("b", 1, Labelled("p"), bounds("0:3"), Excess("2"), share(2), ready(2))),
	)

	It("is explained to whoever reads the log", func() {
		p := New(view(continuous("a", 4), continuous("b", 1)))
		Expect(of(p, "b").Write.Why).To(Equal("create a machine for a move from a"))
		p = New(view(continuous("a", 4), created("b", 1)))
		Expect(of(p, "a").Write.Why).To(Equal("name a machine to move"))
	})
})

var _ = Describe("The condition of uneven members", func() {
	DescribeTable("says what they wait for", func(want string, members ...Member) {
		p := New(view(members...))
		Expect(writes(p)).NotTo(ContainSubstring("move"))
		Expect(condition(p, "b", ConditionBalanced)).To(Equal("False Waiting"))
		Expect(message(p, "b", ConditionBalanced)).To(Equal(want))
		Expect(p.Blocks).NotTo(HaveKey("b"), "no one has to act")
	},
		Entry("a machine that leaves", "a machine of c is leaving", continuous("a", 4), continuous("b", 1), continuous("c", 3, machines(NewMachine("old", leaving)))),
		Entry("a machine that is not ready", "not all machines of a are ready", continuous("a", 4, stuckBoot), continuous("b", 1)),
		Entry("a machine that is not ready where one is to go", "not all machines of b are ready", continuous("a", 4), continuous("b", 1, stuckBoot)),
		Entry("a machine in reserve that is cordoned: pods could not move there", "the machines in reserve of b are cordoned",
			continuous("a", 4), created("b", 1, func(m *Member) { cordoned(&m.Machines[1]) })),
		Entry("growth that stays where it is requested", "a is growing",
			NewMember("a", 6, Continuous, Applied(5), func(m *Member) {
				for i := range m.Machines {
					hold(&m.Machines[i], pod("p", m.Machines[i].Object.Name, InZone("a")))
				}
			}), continuous("b", 1)),
	)

	It("says that many Nodes are not ready", func() {
		v := view(zones(Continuous, 4, 1)...)
		v.NodesKnown, v.NodeCount, v.UnreadyCount = true, 8, 4
		Expect(message(New(v), "a", ConditionBalanced)).To(Equal("too many Nodes of the cluster are not ready"))
	})

	It("says which machine moves", func() {
		p := New(view(zones(Continuous, 4, 1)...))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False Moving"))
		Expect(message(p, "b", ConditionBalanced)).To(Equal("a machine is being moved from a to b"))
	})

	DescribeTable("of a frozen one stays what it is, while others", func(others string, members ...Member) {
		p := New(view(append(members, continuous("c", 3, frozen))...))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal(others))
		Expect(condition(p, "c", ConditionBalanced)).To(Equal("False Frozen"))
	},
		Entry("are evened out", "False Moving", continuous("a", 4), continuous("b", 1)),
		Entry("wait to be evened out", "False Waiting", continuous("a", 4, stuckBoot), continuous("b", 1)),
		Entry("have a move in progress", "False Moving",
			continuous("a", 4, move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})), created("b", 1)),
	)

	It("names the reason for which a person must act, in the metric, too", func() {
		v := view(continuous("a", 3), created("b", 1))
		for i := range v.Members[0].Machines {
			v.Members[0].Machines[i].Preserved = true
		}
		p := New(v)
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False NoMachineEligible"))
		Expect(message(p, "a", ConditionBalanced)).To(Equal("no machine of a can be removed"))
		Expect(p.Blocks).To(Equal(map[string]string{"a": "NoMachineEligible"}))
	})
})

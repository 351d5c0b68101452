// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan/plantest"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

func aged(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(Noon.Add(-d)) }
}

func safe(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": text}
	}
}

func alone(p *corev1.Pod) { p.OwnerReferences = nil }

func app(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": name} }
}

// budget of the pods of an app.
func budget(app string, allowed int) Budget {
	return Budget{Namespace: "default", Name: app, Selector: labels.SelectorFromSet(labels.Set{"app": app}), Allowed: allowed}
}

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

	It("has no machine made in vain again at once", func() {
		w := newWorld(zones(Continuous, 3, 1)...)
		for i, name := range []string{"a-0", "a-1", "a-2"} {
			w.put("a", i, pod(name, name, app("q")))
			w.Nodes = append(w.Nodes, fit.Node{Object: node(name), Pods: w.Members[0].Machines[i].Workload})
		}
		w.Budgets = []Budget{budget("q", 1)}
		w.carry()
		Expect(w.moves()).To(ContainSubstring("reserve"))
		w.Budgets = []Budget{budget("q", 0)}
		w.carry()
		Expect(w.moves()).To(Equal("-/-"), "nobody may go any more")
		w.Budgets = []Budget{budget("q", 1)}
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
		for i := range 4 {
			w.Nodes = append(w.Nodes, fit.Node{Object: unready("stranger-" + strconv.Itoa(i))})
		}
		p := New(w.View)
		Expect(writes(p)).To(BeEmpty())
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False Waiting"))
		w.Nodes = w.Nodes[1:]
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

var _ = Describe("The machine that goes", func() {
	// gone is the machine that a would lose to b, or why there is none.
	gone := func(v View) string {
		w := newWorld(v.Members...)
		w.Nodes, w.Budgets = v.Nodes, v.Budgets
		w.Members[1].Machines = append(w.Members[1].Machines, NewMachine("b-r", inReserve))
		share(1)(&w.Members[1])
		move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})(&w.Members[1])
		p := New(w.View)
		if text := of(p, "a").Write.Annotations[v1alpha1.MoveAnnotation]; text != "" {
			m, err := v1alpha1.ParseMove(text)
			Expect(err).NotTo(HaveOccurred())
			return m.Machine
		}
		Expect(writes(p)).To(Equal("b: -share -move"), "what was made for it is given up")
		Expect(p.Blocks).To(HaveKey("a"))
		return p.Blocks["a"]
	}
	// three are the pods of a-0, a-1 and a-2.
	three := func(pods ...[]*fit.Pod) View {
		v := view(zones(Continuous, 3, 1)...)
		for i, of := range pods {
			m := &v.Members[0].Machines[i]
			hold(m, of...)
			v.Nodes = append(v.Nodes, fit.Node{Object: node(m.Object.Name), Pods: of})
		}
		return v
	}
	some := func(pods ...*fit.Pod) []*fit.Pod { return pods }

	DescribeTable("is", func(want string, v View, budgets ...Budget) {
		v.Budgets = budgets
		Expect(gone(v)).To(Equal(want))
	},
		Entry("the emptiest", "a-1", three(some(pod("x", "a-0")), some(), some(pod("y", "a-2")))),
		Entry("the one with fewest pods", "a-2", three(some(pod("x", "a-0"), pod("y", "a-0")), some(pod("z", "a-1"), pod("u", "a-1")), some(pod("v", "a-2")))),
		Entry("the one whose pods have run longest", "a-1", three(some(pod("x", "a-0", aged(time.Minute))), some(pod("y", "a-1", aged(time.Hour))), some(pod("z", "a-2", aged(time.Second))))),
		Entry("not one with a pod that is not to be evicted", "a-1", three(some(pod("x", "a-0", safe("false"))), some(pod("y", "a-1")), some(pod("z", "a-2")))),
		Entry("not one with a pod that nobody makes again", "a-1", three(some(pod("x", "a-0", alone)), some(pod("y", "a-1")), some(pod("z", "a-2")))),
		Entry("one with such a pod that may go", "a-0", three(some(pod("x", "a-0", alone, safe("true"))), some(pod("y", "a-1")), some(pod("z", "a-2")))),
		Entry("one whose pods could run there", "a-2", three(some(pod("x", "a-0", InZone("a"))), some(pod("y", "a-1", InZone("a"))), some(pod("z", "a-2", InZone("b"))))),
		Entry("not one whose pods have no room together", "a-1", three(some(pod("x", "a-0", Large), pod("y", "a-0", Large)), some(pod("u", "a-1"), pod("v", "a-1")), some(pod("z", "a-2", InZone("a"))))),
		Entry("one that a budget lets go", "a-1", three(some(pod("x", "a-0", app("q"))), some(pod("y", "a-1", app("s"))), some(pod("z", "a-2", app("q")))), budget("q", 0), budget("s", 1)),
		Entry("none where no budget lets one go", "PodDisruptionBudget", three(some(pod("x", "a-0", app("q"))), some(pod("y", "a-1", app("q"))), some(pod("z", "a-2", app("q")))), budget("q", 0)),
		Entry("none where a budget lets one pod go of two", "PodDisruptionBudget", three(some(pod("x", "a-0", app("q")), pod("u", "a-0", app("q"))), some(pod("y", "a-1", app("q")), pod("v", "a-1", app("q"))), some(pod("z", "a-2", app("q")), pod("w", "a-2", app("q")))), budget("q", 1)),
		Entry("none where none could run there", "PodsBound", three(some(pod("x", "a-0", InZone("a"))), some(pod("y", "a-1", InZone("a"))), some(pod("z", "a-2", InZone("a"))))),
		Entry("none where none is to be evicted", "NotSafeToEvict", three(some(pod("x", "a-0", safe("false"))), some(pod("y", "a-1", safe("false"))), some(pod("z", "a-2", safe("false"))))),
	)

	It("is none that may have pods which cannot be seen", func() {
		v := three(some(), some(pod("x", "a-1")), some(pod("y", "a-2"), pod("z", "a-2")))
		v.Members[0].Machines[0].Unseen = true
		Expect(gone(v)).To(Equal("a-1"))
	})

	It("is no machine that somebody ranked or preserves", func() {
		v := three(some(), some(), some(pod("x", "a-2")))
		v.Members[0].Machines[0].Object.Annotations["machinepriority.machine.sapcloud.io"] = "4" // 3 is the default
		v.Members[0].Machines[1].Preserved = true
		Expect(gone(v)).To(Equal("a-2"))
	})

	// arrived is a view in which the replica of a-0 has arrived in b.
	arrived := func(pods ...[]*fit.Pod) View {
		v := three(pods...)
		move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})(&v.Members[0])
		move(v1alpha1.Move{ID: "1", From: "a", Taken: 1})(&v.Members[1])
		return v
	}
	ranked := func(m *Machine) { m.Object.Annotations["machinepriority.machine.sapcloud.io"] = "7" }
	preserved := func(m *Machine) {
		m.Preserved = true
	}

	DescribeTable("is another where it may not go any more once its replica has arrived", func(change func(*Machine), first ...*fit.Pod) {
		v := arrived(first, some(pod("y", "a-1"), pod("u", "a-1")), some(pod("z", "a-2"), pod("v", "a-2"), pod("w", "a-2")))
		change(&v.Members[0].Machines[0])
		Expect(writes(New(v))).To(Equal(`a: move={"id":"1","to":{"b":1},"machine":"a-1"}`))
	},
		Entry("since a pod must not be evicted", func(*Machine) {}, pod("x", "a-0", safe("false"))),
		Entry("since nobody would make a pod again", func(*Machine) {}, pod("x", "a-0", alone)),
		Entry("since a pod is bound to its zone", func(*Machine) {}, pod("x", "a-0", InZone("a"))),
		Entry("since it is preserved", preserved),
		Entry("since somebody ranked it", ranked),
		Entry("since it is in reserve", inReserve),
		Entry("since it leaves", leaving),
		Entry("since it is not ready", phase(mcm.MachineUnknown)),
		Entry("since it is gone", func(m *Machine) { m.Object.Name = "other"; leaving(m) }),
	)

	named := func(v View) string { return of(New(v), "a").Write.Annotations[machineutils.TriggerDeletionByMCM] }
	changed := func(v View) string {
		return of(New(v), "a").Write.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime]
	}

	It("is named later than replicas were changed, whoever's clock that was by, so that the number alone makes it go", func() {
		v := arrived()
		Expect(named(v)).To(Equal("a-0~2026-03-01T12:00:00Z"))
		Expect(changed(v)).To(Equal("2026-03-01T11:59:59Z"), "there was none, and machine-controller-manager would take the present")
		Annotate(machineutils.LastDeploymentReplicaChangeByScalerTime, "2026-03-01T12:30:00Z")(&v.Members[0])
		Expect(named(v)).To(Equal("a-0~2026-03-01T12:30:01Z"))
		Expect(changed(v)).To(BeEmpty())
	})

	It("is named with the time where machine-controller-manager sees as many machines as before", func() {
		v := arrived()
		Annotate(v1alpha1.AppliedExcessAnnotation, v1alpha1.AppliedExcess{Machines: 2, Max: new(int32(3))}.String())(&v.Members[0])
		Expect(named(v)).To(Equal("a-0~2026-03-01T12:00:00Z"))
		Expect(changed(v)).To(Equal("2026-03-01T12:00:00Z"))
	})

	It("is deleted by the time where replicas were raised before it went", func() {
		v := view(zones(Continuous, 3, 3)...)
		Annotate(machineutils.TriggerDeletionByMCM, "a-0~2026-03-01T11:59:55Z")(&v.Members[0])
		Annotate(machineutils.LastDeploymentReplicaChangeByScalerTime, "2026-03-01T11:59:54Z")(&v.Members[0])
		p := New(v)
		Expect(of(p, "a").Write.IsEmpty()).To(BeTrue())
		Expect(p.Again).To(Equal(5 * time.Second))
		v.Now = v.Now.Add(p.Again)
		Expect(of(New(v), "a").Write.Annotations).To(Equal(map[string]string{machineutils.LastDeploymentReplicaChangeByScalerTime: "2026-03-01T12:00:05Z"}))
		leaving(&v.Members[0].Machines[0])
		Expect(of(New(v), "a").Write.IsEmpty()).To(BeTrue())
	})

	It("waits for the end of a rollout, in which a smaller number would take others", func() {
		v := arrived()
		v.Members[0].Rollout.Spread = true
		p := New(v)
		Expect(writes(p)).To(BeEmpty())
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False Waiting"))
	})

	It("is the one that was promised, though an emptier one may go, too", func() {
		p := New(arrived(some(pod("x", "a-0")), some(), some(pod("z", "a-2"))))
		Expect(of(p, "a").Write.Gone).To(Equal("a-0"))
	})

	It("keeps nobody's growth waiting while it has to stay", func() {
		v := arrived(some(pod("x", "a-0", safe("false"))), some(pod("y", "a-1", safe("false"))), some(pod("z", "a-2", safe("false"))))
		v.Members = append(v.Members, NewMember("c", 4, Continuous, Applied(2)))
		v.Members[0].Object.Spec.Replicas = 5
		Expect(writes(New(v))).To(Equal("a: applied-replicas=5; c: applied-replicas=4"))
	})

	It("stays, and its replica too, while none may go", func() {
		v := three(some(pod("x", "a-0", safe("false"))), some(pod("y", "a-1", safe("false"))), some(pod("z", "a-2", safe("false"))))
		move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})(&v.Members[0])
		move(v1alpha1.Move{ID: "1", From: "a", Taken: 1})(&v.Members[1])
		p := New(v)
		Expect(writes(p)).To(BeEmpty())
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False NotSafeToEvict"))
	})
})

func unready(name string) *corev1.Node {
	n := node(name)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	return n
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

var _ = Describe("Moves, by law", func() {
	// Somebody changes replicas, zones fail and come back, plans are carried out in part, and memory is lost.
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
			if left := writes(New(w.View)); left != "" {
				t.Fatalf("not at rest: %s", left)
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

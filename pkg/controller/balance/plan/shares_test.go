// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// poolOf is three zones of replicas with an excess.
func poolOf(text string, replicas ...int) []Member {
	var all []Member
	for i, r := range replicas {
		all = append(all, NewMember(string(rune('a'+i)), r, Labelled("p"), Excess(text)))
	}
	return all
}

func with(members []Member, at int, changes ...Change) []Member {
	for _, c := range changes {
		c(&members[at])
	}
	return members
}

var _ = Describe("A pool's excess", func() {
	DescribeTable("is spread over its zones", func(want string, members []Member) {
		v := view(members...)
		p := New(v)
		Expect(shares(v, p)).To(Equal(want))
	},
		Entry("evenly", "2/2/2", poolOf("6", 3, 3, 3)),
		Entry("with the odd one where least is", "1/1/2", poolOf("4", 3, 3, 2)),
		Entry("with one whose bounds are invalid as it is, since its reserve stays so", "1/2/1", with(poolOf("4", 3, 3, 3), 0, bounds("many"), share(1))),
		Entry("with none for one whose bounds are invalid and that has none", "0/2/2", with(poolOf("4", 3, 3, 3), 0, bounds("many"))),
		Entry("not with the first by accident", "0/1/0", poolOf("1", 3, 2, 3)),
		Entry("with the first by name where all are the same", "2/1/1", poolOf("4", 3, 3, 3)),
		Entry("with the one that has it, though another has as few machines", "0/1/0", with(poolOf("1", 3, 3, 3), 1, share(1), ready(1))),
		Entry("with the one that has it, though another has one machine less", "0/1/0", with(poolOf("1", 3, 4, 3), 1, share(1), ready(1))),
		Entry("with another that has two machines less, and until that one is ready with both", "1/1/0", with(poolOf("1", 3, 5, 3), 1, share(1), ready(1))),
		Entry("with the first that has it, though others have one machine less", "1/0/0", with(poolOf("1", 4, 3, 3), 0, share(1), ready(1))),
		Entry("with another that has two machines less than the first", "1/1/0", with(poolOf("1", 5, 3, 3), 0, share(1), ready(1))),
		Entry("with the odd one where it is", "1/2/1", with(with(with(poolOf("4", 3, 3, 3), 0, share(1), ready(1)), 1, share(2), ready(2)), 2, share(1), ready(1))),
		Entry("with the odd one where it is, which is no machine for a move", "0/0/1", with(with(poolOf("1", 3, 3, 3), 1, share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})), 2, share(1), ready(1))),
		Entry("without regard to a machine in reserve that belongs to no share", "1/0", with(with(poolOf("1", 3, 3), 0, share(1)), 1, share(0), ready(1))),
		Entry("over those that stay, beside a member that is being deleted", "1/1/1", with(poolOf("2", 3, 3, 3), 0, beingDeleted, share(1), ready(1))),
		Entry("in percent of the pool's replicas, once", "1/0/0", poolOf("10%", 3, 3, 3)),
		Entry("in resources, by what a machine has for pods", "1/1/1", poolOf("cpu=9", 1, 1, 1)),
		Entry("in the percentage of a resource", "1/1/1", poolOf("cpu=25%", 3, 3, 4)),
		Entry("none", "0/0/0", poolOf("0", 3, 3, 3)),
		Entry("within bounds", "0/2/2", with(poolOf("4", 3, 3, 3), 0, bounds("1:3"))),
		Entry("as far as there is room", "0/1/2", with(with(with(poolOf("9", 3, 3, 3), 0, bounds("1:2")), 1, bounds("0:4")), 2, bounds("0:5"))),
		Entry("over all members, though one says nothing", "1/1/1", append(poolOf("3", 3, 3), NewMember("c", 3, Labelled("p")))),
		Entry("the largest that they name", "2/1/1", append(poolOf("1", 3, 3), NewMember("c", 3, Labelled("p"), Excess("4")))),
		Entry("that stays where one is frozen", "2/1/1", with(poolOf("4", 9, 3, 3), 0, frozen, share(2), ready(2))),
		Entry("over one that is paused, since it scales", "2/1/1", with(poolOf("4", 3, 3, 3), 0, paused)),
		Entry("over all members of the pool, though their machines differ", "1/1/1", with(poolOf("3", 3, 3, 3), 1, nodeLabel("x", "y"))),
		Entry("of similar ones, without a pool's label", "2/1/1", []Member{NewMember("a", 1, Excess("4")), NewMember("b", 1, Excess("4")), NewMember("c", 1)}),
		Entry("not over others", "3/-", []Member{NewMember("a", 1, Excess("3")), NewMember("b", 1, nodeLabel("x", "y"))}),
		Entry("of one alone", "5", poolOf("5", 3)),
		Entry("of a MachineDeployment whose machines are unknown", "2", []Member{NewMember("a", 1, Excess("2"), unknownTemplate)}),
		Entry("where none is requested", "-/-/-", []Member{NewMember("a", 1), NewMember("b", 1), NewMember("c", 0)}),
	)

	It("is right in percent at every number of replicas", func() {
		for r := range 51 {
			for _, replicas := range [][]int{{r, 0, 0}, {r / 3, r / 3, r - 2*(r/3)}, {0, r / 2, r - r/2}} {
				v := view(poolOf("10%", replicas...)...)
				p := New(v)
				Expect(Sum(shares(v, p))).To(Equal((r+9)/10), "%v", replicas)
			}
		}
	})

	DescribeTable("is handed on by a zone that cannot make machines", func(want string, members []Member) {
		v := view(members...)
		p := New(v)
		Expect(shares(v, p)).To(Equal(want))
	},
		Entry("at once", "2/2/0", with(with(with(poolOf("4", 2, 2, 2), 0, share(2), ready(2)), 1, share(1), ready(1)), 2, share(1), machines(NewMachine("c-r", inReserve, exhausted)))),
		Entry("but for what it has", "2/2/1", with(with(with(poolOf("5", 2, 2, 2), 0, share(2), ready(2)), 1, share(1), ready(1)), 2, share(2), ready(1), machines(NewMachine("c-r", inReserve, exhausted)))),
		Entry("also where it is workload that is stuck", "2/2/0", with(with(with(poolOf("4", 2, 2, 2), 0, share(2), ready(2)), 1, share(1), ready(1)), 2, share(1), stuck(1))),
		Entry("also where a machine takes too long", "2/2/0", with(with(with(poolOf("4", 2, 2, 2), 0, share(2), ready(2)), 1, share(1), ready(1)), 2, share(1), machines(NewMachine("c-r", inReserve, phase("Pending"))))),
		Entry("not where it only boots", "2/1/1", with(with(with(poolOf("4", 2, 2, 2), 0, share(2), ready(2)), 1, share(1), ready(1)), 2, share(1), machines(NewMachine("c-r", inReserve, phase("Pending"), bornAt(Noon.Add(-time.Minute)))))),
	)

	It("comes back step by step, and is never less than was asked", func() {
		w := newWorld(poolOf("4", 2, 2, 2)...)
		w.rest()
		Expect(w.shares()).To(Equal("2/1/1"))
		w.out["c"] = true
		w.kill("c", true)
		w.rest()
		Expect(w.shares()).To(HavePrefix("2/2/"))
		Expect(w.readyReserve()).To(Equal("2/2/0"))
		w.out["c"] = false
		w.watch = func() { Expect(Sum(w.readyReserve())).To(BeNumerically(">=", 4)) }
		w.pass(time.Hour)
		Expect(w.shares()).To(Or(Equal("2/1/1"), Equal("1/2/1"), Equal("1/1/2")))
		Expect(Sum(w.readyReserve())).To(Equal(4))
	})

	It("is no excuse to give up what is ready, if what stands in has no room any more", func() {
		v := view(with(with(poolOf("2", 3, 3, 3), 1, share(2), ready(2)), 2, share(1), ready(1), bounds("1:3"))...)
		Expect(shares(v, New(v))).To(Equal("1/2/0"), "the one in c serves, so it stands in for none")
	})

	It("survives a restart during an outage without giving up what stands in", func() {
		w := newWorld(poolOf("4", 2, 2, 2)...)
		w.rest()
		w.out["c"] = true
		w.kill("c", true)
		w.rest()
		Expect(w.readyReserve()).To(Equal("2/2/0"))
		w.watch = func() { Expect(Sum(w.readyReserve())).To(Equal(4)) }
		for range 5 {
			w.Memory = Memory{}
			w.pass(3 * time.Minute)
		}
	})

	It("asks a zone that fails for one machine now and then, later each time", func() {
		w := newWorld(poolOf("4", 2, 2, 2)...)
		w.rest()
		w.out["c"] = true
		w.kill("c", true)
		tries, before := 0, 0
		w.watch = func() {
			now := w.count("c")
			if now > before {
				tries++
			}
			Expect(now-2).To(BeNumerically("<=", 1), "more than one to try")
			before = now
		}
		w.pass(4 * time.Hour)
		Expect(tries).To(BeNumerically(">=", 8))
		Expect(tries).To(BeNumerically("<=", 24))
	})

	It("is 0 while the cluster is hibernated, for an excess of its own in devices, too", func() {
		for _, devices := range []int64{0, 2} {
			w := newWorld(NewMember("a", 1, bounds("0:9:devices.gpu=6"), func(m *Member) {
				m.Devices = corev1.ResourceList{"devices.gpu": *resource.NewQuantity(devices, resource.DecimalSI)}
			}))
			w.Garden.Hibernated = true
			w.rest()
			Expect(w.shares()).To(Equal(map[int64]string{0: "-", 2: "0"}[devices]))
		}
	})

	It("is 0 while the cluster is hibernated, and back after that", func() {
		w := newWorld(append(poolOf("3", 1, 1, 1), NewMember("d", 1, nodeLabel("x", "y"), ExcessField(2)))...)
		w.rest()
		Expect(w.shares()).To(Equal("1/1/1/-"))
		w.Garden.Hibernated = true
		w.rest()
		Expect(w.shares()).To(Equal("0/0/0/0"))
		Expect(condition(New(w.View), "a", ConditionShare)).To(Equal("True Hibernated"))
		w.Garden.Hibernated = false
		w.rest()
		Expect(w.shares()).To(Equal("1/1/1/-"))
		Expect(*w.Members[3].Object.Spec.ExcessReplicas).To(BeEquivalentTo(2), "the field is what it was")
	})

	It("is spread over the pool of the first label that a member has", func() {
		v := view(with(poolOf("2", 3, 3), 1, nodeLabel("x", "y"))...)
		v.Settings.PoolLabels = []string{"first", PoolLabel, "last"}
		v.Members[1].Object.Labels["last"] = "q"
		Expect(shares(v, New(v))).To(Equal("1/1"))
		v.Members[1].Object.Labels["first"] = "q"
		Expect(shares(v, New(v))).To(Equal("2/2"))
	})

	It("asks a zone that fails for one machine at most, whatever its part is", func() {
		v := view(with(poolOf("9", 2, 2, 2), 2, share(0))...)
		v.Memory.Failing = map[string]Failure{"c": {Since: Noon.Add(-time.Minute), Failures: 1, Until: Noon}}
		Expect(shares(v, New(v))).To(Equal("5/4/1"))
		v.Memory.Failing = map[string]Failure{"c": {Since: Noon.Add(-time.Minute), Failures: 1, Until: Noon.Add(time.Second)}}
		Expect(shares(v, New(v))).To(Equal("5/4/0"))
	})

	It("that cannot be counted leaves shares as they are, without what was for a move that ended", func() {
		v := view(NewMember("a", 3, Labelled("p"), Excess("licence=1"), share(2), move(v1alpha1.Move{ID: "1", From: "b", Reserve: 1})), NewMember("b", 3, Labelled("p"), share(1)), NewMember("c", 3, Labelled("p")))
		Expect(shares(v, New(v))).To(Equal("1/1/-"))
		for _, less := range []int{1, 0} { // all of it was for the move, or a client has lowered it since
			share(less)(&v.Members[0])
			Expect(shares(v, New(v))).To(Equal("0/1/-"))
		}
		share(2)(&v.Members[0])
		Continuous(&v.Members[0])
		Continuous(&v.Members[1])
		v.Members[0].Machines, v.Members[0].Object.Spec.Replicas = v.Members[0].Machines[:1], 1
		Expect(shares(v, New(v))).To(Equal("2/1/-"), "the move goes on")
	})

	It("is the same for members in any order", func() {
		v := view(with(with(with(poolOf("4", 3, 3, 3), 1, failingReserve), 2, failingReserve), 0, bounds("1:4"))...)
		want := message(New(v), "a", ConditionShare)
		Expect(want).To(HaveSuffix("in b, c"))
		slices.Reverse(v.Members)
		Expect(message(New(v), "a", ConditionShare)).To(Equal(want))
	})

	It("tells how it is", func() {
		p := New(view(with(poolOf("4", 3, 3, 3), 0, share(2))...))
		Expect(condition(p, "a", ConditionShare)).To(Equal("True Spread"))
		p = New(view(with(with(poolOf("4", 3), 0, bounds("1:5")), 0)...))
		Expect(condition(p, "a", ConditionShare)).To(Equal("False NoRoom"))
		p = New(view(poolOf("two", 3, 3, 3)...))
		Expect(condition(p, "a", ConditionShare)).To(Equal("False Invalid"))
		p = New(view(NewMember("a", 3, Excess("cpu=3"), unknownTemplate, share(2))))
		Expect(condition(p, "a", ConditionShare)).To(Equal("False ExcessUnknown"))
		Expect(writes(p)).To(BeEmpty(), "what cannot be told stays")
		Expect(condition(New(view(NewMember("a", 3))), "a", ConditionShare)).To(BeEmpty())
	})
})

var _ = Describe("Shares, by law", func() {
	draw := func(t *rapid.T) (View, int) {
		n := rapid.IntRange(1, 5).Draw(t, "zones")
		total := rapid.IntRange(0, 12).Draw(t, "total")
		var members []Member
		for i := range n {
			m := NewMember(string(rune('a'+i)), rapid.IntRange(0, 6).Draw(t, "r"), Labelled("p"), Excess(fmt.Sprint(total)))
			if rapid.Bool().Draw(t, "shared") {
				s := rapid.IntRange(0, 5).Draw(t, "share")
				share(s)(&m)
				ready(rapid.IntRange(0, s).Draw(t, "ready"))(&m)
			}
			members = append(members, m)
		}
		return view(members...), total
	}

	It("6 and 7: add up, are even, and the odd ones are where least is", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v, total := draw(t)
			for i := range v.Members {
				delete(v.Members[i].Object.Annotations, "evenkeel.machine.sapcloud.io/share")
			}
			p := New(v)
			if got := Sum(shares(v, p)); got != total {
				t.Fatalf("%s is not %d", shares(v, p), total)
			}
			counts := Numbers(shares(v, p))
			for i, a := range counts {
				for j, b := range counts {
					if a > b+1 {
						t.Fatalf("%v is not even", counts)
					}
					if a > b && v.Members[i].Object.Spec.Replicas > v.Members[j].Object.Spec.Replicas {
						t.Fatalf("%v: %d has more than %d, and more replicas", counts, i, j)
					}
				}
			}
		})
	})

	It("7: do not depend on order", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v, _ := draw(t)
			p := New(v)
			other := v
			other.Members = rapid.Permutation(v.Members).Draw(t, "order")
			q := New(other)
			for _, o := range p.Outcomes {
				if fmt.Sprint(o.Write) != fmt.Sprint(of(q, o.Name).Write) {
					t.Fatalf("%v and %v", o, of(q, o.Name))
				}
			}
		})
	})

	It("6: come to rest, with the sum exact, and ready machines do not become fewer than wanted", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v, total := draw(t)
			w := newWorld(v.Members...)
			least := min(total, Sum(w.readyReserve()))
			w.watch = func() {
				if n := Sum(w.readyReserve()); n < least {
					t.Fatalf("%d ready, were %d", n, least)
				}
			}
			w.rest()
			if Sum(w.shares()) != total {
				t.Fatalf("%s is not %d", w.shares(), total)
			}
		})
	})
})

var _ = It("asks for as many machines as a quantity needs of the smallest kind", func() {
	for smallest := range 2 {
		members := poolOf("cpu=8", 1, 1)
		members[smallest].Template.Allocatable = members[smallest].Template.Allocatable.DeepCopy()
		members[smallest].Template.Allocatable["cpu"] = resource.MustParse("3900m")
		v := view(members...)
		Expect(Sum(shares(v, New(v)))).To(Equal(3))
	}
})

var _ = Describe("Hibernation without the right to read the Cluster", func() {
	asleep := func(v View) string { return condition(New(v), "ns-p-z1", ConditionShare) }
	reserve := says(v1alpha1.BoundsAnnotation, "0:9:2")
	condemn := func(members []Member) []Member {
		for _, m := range members {
			for i := range m.Machines {
				m.Machines[i].Object.Labels["force-deletion"] = "True"
			}
		}
		return members
	}

	DescribeTable("is recognized (law 13)", func(want string, v View) { Expect(asleep(v)).To(Equal(want)) },
		Entry("by replicas of 0", "True Hibernated", stockRights(view(shoot(reserve, 0, 0)...))),
		Entry("by replicas of 0 of the only zone", "True Hibernated", stockRights(view(shoot(reserve, 0)...))),
		Entry("not while a zone runs", "True Spread", stockRights(view(shoot(reserve, 0, 1)...))),
		Entry("by machines that are to be deleted by force", "True Hibernated", stockRights(view(condemn(shoot(reserve, 1, 1))...))),
		Entry("by replicas of 0 of all that stay", "True Hibernated", stockRights(view(with(shoot(reserve, 0, 0, 2), 2, beingDeleted)...))),
		Entry("by replicas of 0 of all that Gardener created", "True Hibernated", stockRights(view(append(shoot(reserve, 0, 0), NewMember("other", 3))...))),
		Entry("not by some of them", "True Spread", stockRights(view(append(condemn(shoot(reserve, 1)), shoot(reserve, 1, 1)[1])...))),
	)

	It("is not recognized where Gardener created no MachineDeployment", func() {
		members := append(shoot(reserve, 0), NewMember("other", 0))
		v := stockRights(view(members...))
		v.Members[0].Object.Labels = nil
		Expect(asleep(v)).To(Equal("True Spread"))
	})

	It("is not recognized by machines where there are none", func() {
		v := stockRights(view(shoot(reserve, 1, 1)...))
		for i := range v.Members {
			v.Members[i].Machines = nil
		}
		Expect(asleep(v)).To(Equal("True Spread"))
	})

	It("leaves those without a reserve as they are", func() {
		v := stockRights(view(shoot(nil, 0, 0)...))
		Expect(writes(New(v))).To(BeEmpty())
		Expect(asleep(v)).To(BeEmpty())
	})

	It("leaves those as they are whose reserve cannot be counted", func() {
		v := view(NewMember("ns-p-z1", 1, bounds("1:9:max(2,cpu=4)"), unknownTemplate))
		v.Garden.Hibernated = true
		Expect(writes(New(v))).To(BeEmpty())
	})

	It("is what the Cluster says where that can be read", func() {
		v := view(shoot(reserve, 0, 0)...)
		v.Garden = Garden{Known: true, Here: true, ClusterKnown: true, Bounds: map[string]v1alpha1.Bounds{"ns-p-z1": between(0, 5)}}
		Expect(asleep(v)).To(Equal("True Spread"))
		v.Garden.Hibernated = true
		Expect(asleep(v)).To(Equal("True Hibernated"))
	})

	DescribeTable("neither begins nor ends a reserve while it will soon be known", func(g Garden) {
		v := view(shoot(reserve, 0, 0)...)
		bounds("0:5:2")(&v.Members[0])
		share(2)(&v.Members[0])
		bounds("0:5:0")(&v.Members[1])
		share(0)(&v.Members[1])
		v.Garden = g
		v.Garden.Bounds = map[string]v1alpha1.Bounds{"ns-p-z1": between(0, 5), "ns-p-z2": between(0, 5)}
		for i := range v.Members {
			annotate := v.Members[i].Object.Annotations
			annotate[v1alpha1.GivenBoundsAnnotation] = annotate[v1alpha1.BoundsAnnotation]
			v.Members[i].Object.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: ConditionShare, Status: "True", Reason: "Spread", Message: "it was"}}
		}
		Expect(writes(New(v))).To(BeEmpty())
		Expect(asleep(v)).To(Equal("True Spread"))
		Expect(message(New(v), "ns-p-z1", ConditionShare)).To(Equal("it was"))
	},
		Entry("whether there is a Gardener", Garden{}),
		Entry("what its Cluster says", Garden{Known: true, Here: true, ClusterAwaited: true}),
	)

	DescribeTable("ends the reserve also when the process has just started, and Nodes do not show yet what machines offer", func(key, value string) {
		v := stockRights(starting(shoot(says(key, value), 0, 0)...))
		for i := range v.Members {
			share(1)(&v.Members[i])
			settling(&v.Members[i])
		}
		Expect(asleep(v)).To(Equal("True Hibernated"))
	},
		Entry("of bounds", v1alpha1.BoundsAnnotation, "0:9:cpu=8"),
		Entry("of a pool's excess", v1alpha1.PoolExcessAnnotation, "cpu=8"),
	)

	It("is nothing that clusters without a Gardener know", func() {
		v := view(shoot(reserve, 0, 0)...)
		Expect(asleep(v)).To(Equal("True Spread"))
	})

	It("ends the reserve, and brings it back", func() {
		w := newWorld(shoot(reserve, 1, 1)...)
		w.Garden = stockRights(w.View).Garden
		w.settle()
		Expect(w.shares()).To(Equal("1/1"))
		for i := range w.Members {
			w.Members[i].Object.Spec.Replicas = 0
		}
		w.settle()
		Expect(w.shares()).To(Equal("0/0"))
		for i := range w.Members {
			w.Members[i].Object.Spec.Replicas = 1
		}
		w.settle()
		Expect(w.shares()).To(Equal("1/1"))
	})
})

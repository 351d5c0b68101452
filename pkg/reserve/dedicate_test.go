// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// dedicated has so many machines be kept for the pods of an owner.
func dedicated(owner machine.Owner, n int32) func(*world) {
	return func(w *world) {
		w.view.Dedicated = append(w.view.Dedicated, machine.Dedication{Owner: owner, Machines: n})
	}
}

func claimed(name string) func(*world) {
	return func(w *world) { w.machine(name).Claimed = true }
}

// kept are machines that are dedicated and not claimed, by name.
func kept(v View) map[string]bool {
	all := map[string]bool{}
	for i, owner := range Dedicate(v.Machines, v.Dedicated) {
		all[v.Machines[i].Name] = owner != "" && !v.Machines[i].Claimed
	}
	return all
}

// settled worlds have d, e and f in reserve.
var _ = DescribeTable("Machines are dedicated (12)",
	func(do func(*world), want string) {
		w := settled(3, 3, Unbounded)
		do(w)
		var words []string
		for i, owner := range Dedicate(w.view.Machines, w.view.Dedicated) {
			if owner != "" {
				words = append(words, fmt.Sprintf("%s=%s", w.view.Machines[i].Name, owner))
			}
		}
		Expect(strings.Join(words, " ")).To(Equal(want))
	},
	Entry("to nobody", func(*world) {}, ""),
	Entry("the oldest first", dedicated("shop", 2), "d=shop e=shop"),
	Entry("the oldest first, whatever its name", all(born("f", start.Add(-24*time.Hour)), dedicated("shop", 1)), "f=shop"),
	Entry("to several owners", all(dedicated("ci", 1), dedicated("shop", 1)), "d=ci e=shop"),
	Entry("as many as there are", dedicated("shop", 9), "d=shop e=shop f=shop"),
	Entry("ready ones first", all(phase("d", mcm.MachinePending), dedicated("shop", 2)), "e=shop f=shop"),
	Entry("such as boot before sick ones", all(phase("d", mcm.MachineUnknown), phase("e", mcm.MachinePending), dedicated("shop", 2)), "e=shop f=shop"),
	Entry("as before", all(dedicated("ci", 1), dedicated("shop", 1), func(w *world) { w.machine("f").Owner, w.machine("d").Owner = "ci", "shop" }), "d=shop f=ci"),
	Entry("not as before where the machine is sick", all(dedicated("shop", 1), func(w *world) { w.machine("d").Owner, w.machine("d").Phase = "shop", mcm.MachineUnknown }), "e=shop"),
	Entry("not as before where the owner has enough", all(dedicated("shop", 1), func(w *world) { w.machine("e").Owner, w.machine("f").Owner = "shop", "shop" }), "e=shop"),
	Entry("not as before where a client wants it deleted first", all(dedicated("shop", 1), func(w *world) { w.machine("d").Owner, w.machine("d").First = "shop", true }), "e=shop"),
	Entry("one last that a client wants deleted first", all(dedicated("shop", 1), first("d")), "e=shop"),
	Entry("the first by name of one age", all(dedicated("shop", 1), func(w *world) {
		w.view.Machines[3], w.view.Machines[5] = w.view.Machines[5], w.view.Machines[3]
		for i := range w.view.Machines {
			w.view.Machines[i].Created = start
		}
	}), "d=shop"),
	Entry("one whose Node is cordoned after one that boots", all(phase("f", mcm.MachinePending), cordoned("d"), dedicated("shop", 2)), "e=shop f=shop"),
	Entry("not as before where its Node is cordoned and there is another", all(dedicated("shop", 1), cordoned("f"), func(w *world) { w.machine("f").Owner = "shop" }), "d=shop"),
	Entry("as before where all their Nodes are cordoned", all(dedicated("ci", 1), dedicated("shop", 1), cordoned("d", "e", "f"), func(w *world) { w.machine("f").Owner, w.machine("d").Owner = "ci", "shop" }), "d=shop f=ci"),
	Entry("none that serves, and none that leaves", all(dedicated("shop", 1), func(w *world) { w.machine("a").Owner, w.machine("d").Deleted = "shop", true }), "e=shop"),
)

var _ = DescribeTable("Dedicated machines can be claimed (12)",
	func(do func(*world), want map[machine.Owner][]string) {
		w := settled(3, 3, Unbounded)
		do(w)
		Expect(DedicatedOrder(w.view)).To(Equal(want))
	},
	Entry("by no owner", func(*world) {}, nil),
	Entry("by their owners", all(dedicated("shop", 2), dedicated("ci", 1)), map[machine.Owner][]string{"ci": {"f"}, "shop": {"d", "e"}}),
	Entry("while no pod has taken them", all(dedicated("shop", 2), claimed("d")), map[machine.Owner][]string{"shop": {"e"}}),
	Entry("once they are ready", all(dedicated("shop", 3), phase("d", mcm.MachinePending)), map[machine.Owner][]string{"shop": {"e", "f"}}),
)

var _ = DescribeTable("A plan with dedicated machines moves (12)",
	func(do func(*world), want ...Move) {
		w := settled(3, 3, Unbounded)
		do(w)
		Expect(Decide(w.view).Moves).To(HaveExactElements(want))
	},
	Entry("the others when R rises", all(dedicated("shop", 2), replicas(4)), Move{"f", false, Released}),
	Entry("no more than the others", all(dedicated("shop", 2), replicas(6)), Move{"f", false, Released}),
	Entry("none of them in the place of a sick machine", all(dedicated("shop", 3), phase("a", mcm.MachineUnknown))),
	Entry("none of them in the place of one that boots", all(dedicated("shop", 3), func(w *world) {
		w.machine("c").Phase, w.machine("c").Pods = mcm.MachinePending, 0
	})),
	Entry("the one that is claimed, before all others", all(dedicated("shop", 1), claimed("f"), func(w *world) { w.machine("f").Owner = "shop" }, replicas(4)), Move{"f", false, Released}),
	Entry("the one that is claimed, and then the others", all(dedicated("shop", 2), claimed("e"), replicas(6)), Move{"e", false, Released}, Move{"f", false, Released}),
	Entry("nothing for a claim while R machines serve", all(dedicated("shop", 2), claimed("e"))),
)

var _ = Describe("A dedicated reserve", func() {
	serving := func(w *world) string {
		var names []string
		for _, m := range w.view.Machines {
			if !m.Reserve {
				names = append(names, m.Name)
			}
		}
		return strings.Join(names, "")
	}

	It("stays when R rises, and a new machine serves (12)", func() {
		w := settled(3, 2, Unbounded)
		dedicated("shop", 2)(w)
		_, rests := w.settle()
		Expect(rests).To(BeTrue())
		w.view.Replicas = 4
		plan, rests := w.settle()
		Expect(rests).To(BeTrue())
		Expect(w.broken).NotTo(HaveOccurred())
		Expect(serving(w)).To(Equal("abcf"))
		Expect(plan.Summary.Reason).To(Equal(Complete))
		Expect(w.machine("d").Owner).To(BeEquivalentTo("shop"))
		Expect(w.machine("f").Owner).To(BeEmpty())
	})

	It("is refilled after a claim, and the new machine is dedicated (12)", func() {
		w := settled(3, 2, Unbounded)
		dedicated("shop", 2)(w)
		_, rests := w.settle()
		Expect(rests).To(BeTrue())
		claimed("d")(w)
		w.view.Replicas = 4
		_, rests = w.settle()
		Expect(rests).To(BeTrue())
		Expect(serving(w)).To(Equal("abcd"))
		Expect(w.machine("d").Owner).To(BeEmpty(), "it serves")
		Expect(w.machine("f").Owner).To(BeEquivalentTo("shop"))
	})

	law("12: no dedicated machine leaves the reserve unless it is claimed", func(t *rapid.T, v View, p Plan) {
		owners := Dedicate(v.Machines, v.Dedicated)
		for _, move := range p.Moves {
			i := slices.IndexFunc(v.Machines, func(m Machine) bool { return m.Name == move.Name })
			if !move.Reserve && owners[i] != "" && !v.Machines[i].Claimed {
				t.Fatalf("%s leaves, which is dedicated to %s: %+v", move.Name, owners[i], p)
			}
		}
	})

	law("12: no owner has more machines than are dedicated to it, and none that serves or leaves", func(t *rapid.T, v View, p Plan) {
		has := map[machine.Owner]int32{}
		after := carriedOut(v, p)
		for i, owner := range Dedicate(after.Machines, v.Dedicated) {
			if m := after.Machines[i]; owner != "" && (!m.Reserve || m.Leaving()) {
				t.Fatalf("%+v is dedicated to %s", m, owner)
			}
			has[owner]++
		}
		for _, d := range v.Dedicated {
			if has[d.Owner] > d.Machines {
				t.Fatalf("%s has %d of %d", d.Owner, has[d.Owner], d.Machines)
			}
		}
	})
})

var _ = DescribeTable("A plan writes owners (12)",
	func(do func(*world), want ...Ownership) {
		w := settled(3, 3, Unbounded)
		dedicated("shop", 3)(w)
		do(w)
		Expect(Decide(w.view).Owners).To(HaveExactElements(want))
	},
	Entry("by name", func(w *world) {
		for i := range w.view.Machines[3:] {
			w.view.Machines[3+i].Created = start.Add(-time.Duration(i) * time.Hour)
		}
	}, Ownership{"d", "shop"}, Ownership{"e", "shop"}, Ownership{"f", "shop"}),
	Entry("where they are new", func(w *world) { w.machine("d").Owner, w.machine("f").Owner = "shop", "ci" }, Ownership{"e", "shop"}, Ownership{"f", "shop"}),
	Entry("not while Nodes are not known", func(w *world) { w.view.NodesUnknown = true }),
	Entry("not to a machine without a provider id", func(w *world) { w.machine("d").HasProviderID = false }, Ownership{"e", "shop"}, Ownership{"f", "shop"}),
	Entry("not to a machine that leaves", func(w *world) { w.machine("d").Deleted, w.machine("d").Owner = true, "ci" }, Ownership{"e", "shop"}, Ownership{"f", "shop"}),
)

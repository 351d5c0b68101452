// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// one plan for a settled world of three that serve and three in reserve, d, e and f, to which something happens.
var _ = DescribeTable("A plan moves",
	func(do func(*world), want ...Move) {
		w := settled(3, 3, Unbounded)
		do(w)
		Expect(NewPlan(w.view).Moves).To(HaveExactElements(want))
	},
	Entry("nothing at rest", func(*world) {}),
	Entry("the oldest first (2)", replicas(4), Move{"d", false, Released}),
	Entry("the oldest first, whatever its priority, unless it is that of a victim (2)", all(func(w *world) {
		w.machine("d").Priority, w.machine("d").SeenPriority = PriorityVictim+1, PriorityVictim+1
	}, replicas(4)), Move{"d", false, Released}),
	Entry("by name where ages are equal (2)", func(w *world) {
		for i := range w.view.Machines {
			w.view.Machines[i].Created = start
		}
		w.view.Machines[3], w.view.Machines[5] = w.view.Machines[5], w.view.Machines[3]
		w.setReplicas(5)
	}, Move{"d", false, Released}, Move{"e", false, Released}),
	Entry("the current revision before the oldest (2)", func(w *world) {
		w.machine("d").Set, w.view.Rollout = old, true
		w.setReplicas(4)
	}, Move{"e", false, Released}),
	Entry("those whose release has begun first (2)", all(func(w *world) { w.machine("f").Open, w.machine("e").Claimed = true, true }, replicas(5)),
		Move{"f", false, Released}, Move{"e", false, Released}),
	Entry("those whose Nodes are cordoned last (2)", all(cordoned("d"), replicas(5)), Move{"e", false, Released}, Move{"f", false, Released}),
	Entry("one whose Node is cordoned where no other is left (2)", all(cordoned("d", "e", "f"), replicas(4)), Move{"d", false, Released}),
	Entry("those on which pods run after those that are empty (2)", all(busy("d"), replicas(5)), Move{"e", false, Released}, Move{"f", false, Released}),
	Entry("ready ones before such as boot, though they are older (2)", all(phase("d", mcm.MachinePending), replicas(6)),
		Move{"e", false, Released}, Move{"f", false, Released}, Move{"d", false, Released}),
	Entry("never a sick one into service (2)", all(phase("d", mcm.MachineUnknown), phase("e", mcm.MachineFailed), replicas(6)),
		Move{"f", false, Released}),
	Entry("nothing that is not made yet (14)", func(w *world) {
		for _, name := range []string{"d", "e", "f"} {
			w.machine(name).Phase, w.machine(name).HasProviderID = "", false
		}
		w.setReplicas(4)
	}),
	Entry("one that leaves out of all counts (2)", func(w *world) {
		w.machine("d").Deleted = true
		w.machine("a").Named = true
	}, Move{"e", false, Released}),
	Entry("a ready one in the place of one that boots (3)", func(w *world) {
		w.machine("c").Phase, w.machine("c").Pods = mcm.MachinePending, 0
	}, Move{"d", false, Swapped}, Move{"c", true, Swapped}),
	Entry("none whose Node is cordoned in the place of one that boots (3)", all(phase("c", mcm.MachinePending), empty("c"), cordoned("d", "e", "f"))),
	Entry("half a swap while the one that boots is not made (3, 14)", func(w *world) {
		w.machine("c").Phase, w.machine("c").Pods, w.machine("c").HasProviderID = "", 0, false
	}, Move{"d", false, Swapped}),
	Entry("half a swap where the one that boots holds a pod already (3, 4)", phase("c", mcm.MachinePending), Move{"d", false, Swapped}),
	Entry("no busy machine into reserve (4)", func(w *world) { w.machine("f").Reserve, w.machine("f").Pods = false, 1 }),
	Entry("an empty one into reserve, the newest (4)", func(w *world) {
		w.machine("f").Reserve = false
		empty("a", "b")(w)
		w.machine("f").Pods = 1
	}, Move{"b", true, Retired}),
	Entry("first into reserve the one that may be there already (4)", func(w *world) {
		w.machine("f").Reserve = false
		empty("a", "b")(w)
		w.machine("a").Doubtful = true
	}, Move{"a", true, Retired}),
	Entry("none into reserve in place of one that may be there already, and is busy now (4)", func(w *world) {
		w.machine("f").Reserve = false
		w.machine("a").Doubtful = true
	}),
	Entry("one more into reserve than may be there already (4)", func(w *world) {
		w.machine("e").Reserve, w.machine("f").Reserve = false, false
		w.machine("e").Doubtful = true
	}, Move{"e", true, Retired}, Move{"f", true, Retired}),
	Entry("one into reserve where one that may be there already is being deleted, which does not count (4)", func(w *world) {
		w.machine("e").Reserve, w.machine("f").Reserve = false, false
		w.machine("a").Doubtful, w.machine("a").Phase = true, mcm.MachineTerminating
	}, Move{"f", true, Retired}),
	Entry("none into reserve in place of one that may be there already while another boots (3, 4)", func(w *world) {
		w.machine("f").Reserve = false
		all(empty("a", "b", "c"), phase("c", mcm.MachinePending))(w)
		w.machine("a").Doubtful = true
	}),
	Entry("none into reserve that a user wants deleted (4)", func(w *world) {
		w.machine("f").Reserve, w.machine("f").Priority = false, 1
	}),
	Entry("one that was to be drained into reserve, as soon as it is empty (4, 5)", func(w *world) {
		w.machine("f").Reserve, w.machine("f").Priority, w.machine("f").SeenPriority = false, PriorityVictim, PriorityVictim
	}, Move{"f", true, Retired}),
	Entry("an empty one of an old revision into reserve, before the newest (4)", func(w *world) {
		w.machine("f").Reserve, w.machine("f").Pods, w.machine("a").Set = false, 1, old
		empty("a", "b")(w)
	}, Move{"a", true, Retired}),
	Entry("none into reserve while MCM deletes a sick machine first (4)", func(w *world) {
		w.machine("f").Reserve = false
		w.add(running(false)).Phase = mcm.MachineUnknown
	}),
	Entry("what cannot be made last (2)", func(w *world) {
		for _, name := range []string{"d", "e", "f"} {
			w.machine(name).Phase = mcm.MachinePending
		}
		w.machine("d").Failing = true
		w.setReplicas(4)
	}, Move{"e", false, Released}),
	Entry("none into reserve while MCM has deletions to do (4)", all(replicas(2), empty("c"))),
	Entry("none that MCM may be about to delete, because its store still shows it as a victim (9)", func(w *world) {
		w.machine("d").SeenPriority = PriorityVictim
		w.view.SetReplicas = 5
		w.setReplicas(6)
	}, Move{"e", false, Released}, Move{"f", false, Released}),
	Entry("a victim last, and only while no one is about to delete it (9)", func(w *world) {
		w.machine("d").Priority, w.machine("d").SeenPriority = PriorityVictim, PriorityVictim
		w.setReplicas(5)
	}, Move{"e", false, Released}, Move{"f", false, Released}),
)

var _ = DescribeTable("The victims of a smaller X are",
	func(x int, do func(*world), want ...Victim) {
		w := settled(3, 3, Unbounded)
		do(w)
		w.setWish(x)
		Expect(NewPlan(w.view).Victims).To(HaveExactElements(want))
	},
	Entry("the newest", 1, func(*world) {}, Victim{"e", Shrunk}, Victim{"f", Shrunk}),
	Entry("the newest, whatever its name", 2, born("d", start.Add(time.Minute)), Victim{"d", Shrunk}),
	Entry("not ready first", 2, phase("d", mcm.MachinePending), Victim{"d", Shrunk}),
	Entry("those whose Nodes are cordoned before the newest", 2, cordoned("d"), Victim{"d", Shrunk}),
	Entry("those whose Nodes are cordoned after those that are not ready", 2, all(cordoned("d"), phase("e", mcm.MachinePending)), Victim{"e", Shrunk}),
	Entry("those whose Nodes are cordoned after those that are empty", 2, all(cordoned("d"), func(w *world) { w.machine("d").Pods = 1 }), Victim{"f", Shrunk}),
	Entry("busy last", 1, func(w *world) { w.machine("f").Pods = 1 }, Victim{"d", Shrunk}, Victim{"e", Shrunk}),
	Entry("those that were victims before", 2, func(w *world) { w.machine("d").Priority = PriorityVictim }, Victim{"d", Shrunk}),
	Entry("those that go first anyway", 2, func(w *world) { w.machine("e").Priority = 1 }, Victim{"e", Shrunk}),
	Entry("none that are preserved or ranked by another client", 0, func(w *world) {
		w.machine("f").Preserved = true
		w.machine("e").Priority = 10
	}, Victim{"d", Shrunk}),
	Entry("none while a rollout runs", 0, func(w *world) { w.view.Rollout = true }),
)

var _ = Describe("The gate (6)", func() {
	gated := func(do func(*world)) Plan {
		w := settled(3, 3, Unbounded)
		w.setWish(1)
		w.carryOut(NewPlan(w.view))
		do(w)
		return NewPlan(w.view)
	}

	It("opens when the store shows the victims' priority", func() {
		Expect(gated(func(*world) {}).Applied.Excess).To(Equal(1))
	})
	It("opens as far as it shows it", func() {
		Expect(gated(func(w *world) { w.machine("e").SeenPriority = 5 }).Applied.Excess).To(Equal(2))
	})
	It("stays shut while the store may show any moment that a machine that serves goes as early as the victims", func() {
		Expect(gated(func(w *world) { w.machine("a").Priority = PriorityVictim }).Applied.Excess).To(Equal(3))
	})
	It("stays shut while the store is behind", func() {
		Expect(gated(func(w *world) { w.view.Behind = true }).Applied.Excess).To(Equal(3))
	})
	It("stays shut during a rollout", func() {
		Expect(gated(func(w *world) { w.view.Rollout = true }).Applied.Excess).To(Equal(3))
	})
	It("opens in part for a lower max, under the old one", func() {
		w := settled(3, 3, 6)
		w.view.Max = 4
		w.setReplicas(3)
		w.carryOut(NewPlan(w.view))
		w.machine("e").SeenPriority = 5
		Expect(NewPlan(w.view).Applied).To(Equal(Applied{Excess: 2, Max: 6}))
		w.machine("e").SeenPriority = PriorityVictim
		Expect(NewPlan(w.view).Applied).To(Equal(Applied{Excess: 1, Max: 4}))
	})
	It("stays shut for a lower max during a rollout", func() {
		w := settled(3, 2, 5)
		for _, name := range []string{"d", "e"} {
			w.machine(name).Priority, w.machine(name).SeenPriority = PriorityVictim, PriorityVictim
		}
		w.view.Max, w.view.Rollout = 4, true
		w.setReplicas(3)
		Expect(NewPlan(w.view).Applied).To(Equal(Applied{Excess: 2, Max: 5}))
		w.view.Rollout = false
		Expect(NewPlan(w.view).Applied).To(Equal(Applied{Excess: 1, Max: 4}))
	})
	It("does not trust in a phase that may change: a booting victim may run a moment later", func() {
		plan := gated(func(w *world) {
			for _, name := range []string{"e", "f"} {
				m := w.machine(name)
				m.Phase, m.HasProviderID, m.Priority, m.SeenPriority = mcm.MachinePending, false, 3, 3
			}
		})
		Expect(plan.Applied.Excess).To(Equal(3))
		Expect(plan.Summary.Reason).To(Equal(Shrinking))
	})
	It("need not wait for machines that are not there", func() {
		Expect(gated(func(w *world) { w.view.Machines = w.view.Machines[:3] }).Applied.Excess).To(Equal(1))
	})
	It("records nothing where there is no excess, bounds or not", func() {
		w := settled(3, 0, 5)
		w.view.Applied.Max = Unbounded
		Expect(NewPlan(w.view).AtRest(w.view)).To(BeTrue())
		w.setWish(1)
		Expect(NewPlan(w.view).Applied).To(Equal(Applied{Excess: 1, Max: 5}))
	})
	It("records a new max where that takes nothing away", func() {
		w := settled(3, 1, Unbounded)
		w.view.Max = 5
		Expect(NewPlan(w.view).Applied).To(Equal(Applied{Excess: 1, Max: 5}))
	})
})

var _ = DescribeTable("A victim that serves now, while machine-controller-manager has a machine to delete (9),",
	func(do func(*world), want ...Priority) {
		w := settled(3, 1, Unbounded)
		w.setWish(0)
		w.carryOut(NewPlan(w.view))
		w.view.Applied, w.view.SetReplicas = Applied{Max: Unbounded}, 3
		w.machine("a").Priority, w.machine("a").SeenPriority = PriorityVictim, PriorityVictim
		do(w)
		Expect(NewPlan(w.view).Priorities).To(ConsistOf(want))
	},
	Entry("is one no more if no more serve than are needed, so that the other one goes", func(*world) {}, Priority{Name: "a", Priority: PriorityServing}),
	Entry("stays one while more serve", func(w *world) { w.setReplicas(2) }),
	Entry("stays one in a rollout", func(w *world) { w.view.Rollout = true }),
	Entry("stays one while it is unhealthy", func(w *world) { w.machine("a").Phase = mcm.MachineUnknown }),
)

var _ = DescribeTable("Growth (8) waits",
	func(do func(*world), want int, reason Reason) {
		w := settled(3, 0, 6)
		w.setWish(2)
		do(w)
		plan := NewPlan(w.view)
		Expect(plan.Applied.Excess).To(Equal(want))
		Expect(plan.Summary.Reason).To(Equal(reason))
	},
	Entry("for nothing at rest", func(*world) {}, 2, Growing),
	Entry("for a rollout", func(w *world) { w.view.Rollout = true }, 0, RollingOut),
	Entry("for a surplus to go", func(w *world) { w.add(running(false)).Pods = 1 }, 0, SurplusServing),
	Entry("for what leaves, within max", func(w *world) { w.add(running(false)).Deleted = true; w.add(running(false)).Deleted = true }, 1, AwaitingDeletion),
	Entry("for what leaves, with no room at all", func(w *world) {
		w.view.FreezeMargin = 0
		for range 3 {
			w.add(running(false)).Phase = mcm.MachineTerminating
		}
	}, 0, AwaitingDeletion),
	Entry("for what leaves, lest MCM freezes", func(w *world) {
		w.view.Max = Unbounded
		for range 3 {
			w.add(running(false)).Phase = mcm.MachineTerminating
		}
	}, 0, AwaitingDeletion),
)

var update = flag.Bool("update", false, "write testdata/plans.jsonl anew")

// The file contains views, and the plan for each, without zero values. They were chosen among thousands of drawn
// views, because for each of them some change of one place in the rule, which no other spec sees, makes another plan.
// Where a change is meant, write the plans anew with -update, and read what differs.
var _ = It("Plans for views that few changes of the rule leave alone are as they were", func() {
	path := filepath.Join("testdata", "plans.jsonl")
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var written bytes.Buffer
	for line := range bytes.Lines(text) {
		var known struct{ View, Plan json.RawMessage }
		Expect(json.Unmarshal(line, &known)).To(Succeed())
		var view View
		Expect(json.Unmarshal(known.View, &view)).To(Succeed())
		plan := withoutZeros(NewPlan(view))
		if !*update {
			Expect(plan).To(MatchJSON(known.Plan), "for %s", known.View)
		}
		written.WriteString(`{"view":` + string(known.View) + `,"plan":` + plan + "}\n")
	}
	if *update {
		Expect(os.WriteFile(path, written.Bytes(), 0o644)).To(Succeed())
		return
	}
	Expect(written.Bytes()).To(Equal(text))
})

// withoutZeros is JSON without what is zero or empty.
func withoutZeros(value any) string {
	GinkgoHelper()
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	var tree any
	Expect(json.Unmarshal(text, &tree)).To(Succeed())
	text, err = json.Marshal(prune(tree))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func prune(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		for key, value := range t {
			if t[key] = prune(value); t[key] == nil {
				delete(t, key)
			}
		}
		if len(t) == 0 {
			return nil
		}
	case []any:
		for i := range t {
			t[i] = prune(t[i])
		}
		if len(t) == 0 {
			return nil
		}
	case bool, string, float64:
		if t == false || t == "" || t == 0.0 || t == "0001-01-01T00:00:00Z" {
			return nil
		}
	}
	return tree
}

var _ = DescribeTable("A machine is born (1)",
	func(inFlight, replicas int, serving bool) {
		w := settled(2, 1, Unbounded)
		w.view.Replicas = replicas
		Expect(ServesOnCreation(w.view, inFlight)).To(Equal(serving))
	},
	Entry("in reserve where R serve", 0, 2, false),
	Entry("in reserve where a ready one will serve", 0, 3, false),
	Entry("serving where none could", 0, 4, true),
	Entry("in reserve once another one that could is on its way", 1, 4, false),
	Entry("serving where that is not enough", 1, 5, true),
)

var _ = It("A machine is born serving though some cannot: sick, leaving or victims (1)", func() {
	for _, do := range []func(*Machine){
		func(m *Machine) { m.Phase = mcm.MachineUnknown },
		func(m *Machine) { m.Phase = mcm.MachineFailed },
		func(m *Machine) { m.Deleted = true },
		func(m *Machine) { m.Priority = PriorityVictim },
		func(m *Machine) { m.Priority = PriorityVictim - 1 },
	} {
		w := settled(2, 1, Unbounded)
		do(w.machine("c"))
		w.view.Replicas = 3
		Expect(ServesOnCreation(w.view, 0)).To(BeTrue())
	}
})

var _ = It("A machine is born in reserve where one could serve that is not a victim, though its priority is not that of the reserve yet (1)", func() {
	w := settled(2, 1, Unbounded)
	w.machine("c").Priority = PriorityServing
	w.view.Replicas = 3
	Expect(ServesOnCreation(w.view, 0)).To(BeFalse())
})

var _ = It("A machine is born in reserve where one that serves will be drained only (1)", func() {
	w := settled(2, 0, Unbounded)
	w.machine("b").Priority = PriorityVictim
	Expect(ServesOnCreation(w.view, 0)).To(BeFalse())
})

var _ = DescribeTable("Shown",
	func(r, a, most, want int) {
		Expect(pool.VisibleReplicas(r, Applied{Excess: a, Max: most})).To(Equal(want))
	},
	Entry("without bounds", 3, 2, Unbounded, 5),
	Entry("R raised under the max recorded: nothing goes", 4, 2, 5, 5),
	Entry("R at max", 5, 2, 5, 5),
	Entry("R above max", 7, 2, 5, 7),
	Entry("nothing at all", 0, 0, 0, 0),
)

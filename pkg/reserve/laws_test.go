// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"reflect"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// law runs a property over drawn views.
func law(name string, holds func(t *rapid.T, v View, p Plan)) {
	It(name, func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			holds(t, v, NewPlan(v))
		})
	})
}

var _ = Describe("laws", func() {
	law("2: which machines would be released does not depend on the pods of those that serve", func(t *rapid.T, v View, _ Plan) {
		n := rapid.IntRange(0, 12).Draw(t, "replicas")
		want, wantDedicated := ReleaseOrder(v, n), DedicatedOrder(v)
		v.Machines = slices.Clone(v.Machines)
		for i := range v.Machines {
			if m := &v.Machines[i]; !m.Reserve {
				m.Pods, m.Pinned = 0, ""
			}
		}
		if got := ReleaseOrder(v, n); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v with pods, %v without: %+v", want, got, v)
		}
		if got := DedicatedOrder(v); !reflect.DeepEqual(got, wantDedicated) {
			t.Fatalf("%v with pods, %v without: %+v", wantDedicated, got, v)
		}
	})

	It("order-free, and the view is left alone", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			before := slices.Clone(v.Machines)
			p := NewPlan(v)
			if !slices.Equal(before, v.Machines) {
				t.Fatalf("the view was changed")
			}
			shuffled := v
			shuffled.Machines = rapid.Permutation(v.Machines).Draw(t, "shuffled")
			if again := NewPlan(shuffled); !reflect.DeepEqual(again, p) {
				t.Fatalf("%+v\n%+v", p, again)
			}
		})
	})

	law("bounded: A stays between 0 and the larger of A and X, and the max recorded is the old or the new one", func(t *rapid.T, v View, p Plan) {
		if a := p.Applied; a.Excess < 0 || a.Excess > max(v.Applied.Excess, v.Excess) || a.Max != v.Max && a.Max != v.Applied.Max {
			t.Fatalf("%+v", p)
		}
		if p.Again < 0 {
			t.Fatalf("again %s", p.Again)
		}
	})

	It("15: while Nodes and pods cannot be seen nothing rests on them, and nobody goes but what was never made", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			v.NodesUnknown = true
			p := NewPlan(v)
			if len(p.Moves)+len(p.Priorities) > 0 || !p.SurplusSince.IsZero() {
				t.Fatalf("%+v", p)
			}
			for _, victim := range p.Victims {
				if m := find(v, victim.Name); m.HasProviderID {
					t.Fatalf("%+v is to go", m)
				}
			}
			// In a rollout each set may be asked for all of it, and machines beyond that are the rollout's business.
			shown := pool.VisibleReplicas(p.Replicas, p.Applied)
			if !v.Rollout && shown < pool.VisibleReplicas(p.Replicas, v.Applied) {
				for _, m := range deletions(v, v, shown) {
					if m.HasProviderID && !m.Leaving() {
						t.Fatalf("%+v goes: %+v", m, p)
					}
				}
			}
			other := v
			other.Machines = slices.Clone(v.Machines)
			for i := range other.Machines {
				other.Machines[i].Pods = rapid.IntRange(0, 3).Draw(t, "other pods")
				other.Machines[i].Pinned = drawPin(t)
			}
			if again := NewPlan(other); !reflect.DeepEqual(again, p) {
				t.Fatalf("with other pods %+v instead of %+v", again, p)
			}
		})
	})

	law("2, 3, 14: moves are of machines that live, are made and carry the other mark, each once", func(t *rapid.T, v View, p Plan) {
		seen := map[string]bool{}
		for _, move := range p.Moves {
			m := find(v, move.Name)
			if seen[move.Name] || m.Leaving() || !m.HasProviderID || m.Unhealthy() || m.Reserve == move.Reserve {
				t.Fatalf("%+v of %+v", move, m)
			}
			seen[move.Name] = true
		}
	})

	law("2: fewer than R serve only if nothing can be released that is not dedicated", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		kept := kept(after)
		serving, live, _ := count(after)
		if p.Applied != v.Applied {
			// A victim may be on its way back, which the next plan knows.
			return
		}
		for _, m := range after.Machines {
			able := m.Reserve && m.HasProviderID && !m.Leaving() && !m.Unhealthy() && min(m.Priority, m.SeenPriority) > PriorityVictim
			if serving < p.Replicas && able && !kept[m.Name] {
				t.Fatalf("%d of %d serve, %+v stays in reserve, %d live: %+v", serving, p.Replicas, m, live, p)
			}
		}
	})

	law("3: a ready machine that is not dedicated waits only if R machines run", func(t *rapid.T, v View, p Plan) {
		if p.Applied != v.Applied {
			return
		}
		after := carriedOut(v, p)
		kept := kept(after)
		var run int
		for _, m := range after.Machines {
			if !m.Reserve && m.Ready() && !m.Leaving() {
				run++
			}
		}
		for _, m := range after.Machines {
			if run < p.Replicas && m.Reserve && m.Ready() && !m.Leaving() && !kept[m.Name] && min(m.Priority, m.SeenPriority) > PriorityVictim {
				t.Fatalf("%d of %d run, %+v waits: %+v", run, p.Replicas, m, p)
			}
		}
	})

	law("4: only empty machines are put into reserve, never below R, wherever those are that may be there, and none while the store is behind", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		for i, m := range v.Machines {
			after.Machines[i].Reserve = after.Machines[i].Reserve || m.Doubtful
		}
		serving, _, _ := count(after)
		for _, move := range p.Moves {
			if move.Reserve && (find(v, move.Name).Busy() || serving < p.Replicas || v.Behind) {
				t.Fatalf("%+v: %+v", move, p)
			}
		}
	})

	law("6: A falls only when all that MCM would delete for it may go", func(t *rapid.T, v View, p Plan) {
		if pool.VisibleReplicas(p.Replicas, p.Applied) >= pool.VisibleReplicas(p.Replicas, v.Applied) || v.Rollout {
			return
		}
		if v.Behind {
			t.Fatalf("the store is behind: %+v", p)
		}
		for _, m := range deletions(v, carriedOut(v, p), pool.VisibleReplicas(p.Replicas, p.Applied)) {
			named := slices.ContainsFunc(p.Victims, func(victim Victim) bool { return victim.Name == m.Name })
			first := m.SeenPriority <= PriorityVictim && (named || m.Reserve) && !(m.Reserve && m.Open && (m.Ready() || !m.Failing && v.Now.Sub(m.Created) < v.BootPatience))
			if !first && !m.Leaving() && !neverMade(m) {
				t.Fatalf("%+v would go: %+v", m, p)
			}
		}
	})

	law("7: what is kept is no victim, and A does not fall below it", func(t *rapid.T, v View, p Plan) {
		var kept int
		for _, m := range carriedOut(v, p).Machines {
			if m.Reserve && !m.Leaving() && (m.Preserved || m.Priority == 4) {
				kept++
			}
		}
		for _, victim := range p.Victims {
			if m := find(v, victim.Name); m.Preserved || m.Priority == 4 {
				t.Fatalf("victim %+v", m)
			}
		}
		if p.Applied.Excess < v.Applied.Excess && p.Applied.Excess < kept {
			t.Fatalf("%d kept: %+v", kept, p)
		}
	})

	law("8: beyond what is in reserve A grows only without surplus and rollout, within max and the freeze threshold", func(t *rapid.T, v View, p Plan) {
		was, shown := pool.VisibleReplicas(p.Replicas, v.Applied), pool.VisibleReplicas(p.Replicas, p.Applied)
		serving, live, leaving := count(carriedOut(v, p))
		var reserve int
		for _, m := range carriedOut(v, p).Machines {
			if m.Reserve && !m.Leaving() {
				reserve++
			}
		}
		if shown <= was || !v.Rollout && shown <= p.Replicas+reserve {
			return
		}
		crowded := shown > live && (shown+leaving > v.Max || v.FreezeMargin > 0 && leaving >= v.FreezeMargin)
		if v.Rollout || serving > p.Replicas || shown > max(p.Replicas, v.Max) || crowded {
			t.Fatalf("%d -> %d with %d serving, %d live, %d leaving: %+v", was, shown, serving, live, leaving, p)
		}
	})

	law("9: a victim is taken back only when as many are wanted as there are, or if it serves and is needed", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		serving, _, _ := count(after)
		var present int
		for _, m := range v.Machines {
			if m.Phase != mcm.MachineTerminating {
				present++
			}
		}
		for _, q := range p.Priorities {
			wanted := min(v.SetReplicas, pool.VisibleReplicas(p.Replicas, p.Applied))
			m := find(after, q.Name)
			needed := !v.Rollout && serving <= p.Replicas && !m.Reserve && !m.Unhealthy()
			if find(v, q.Name).Priority == PriorityVictim && wanted < present && !needed {
				t.Fatalf("%+v with %d of %d wanted: %+v", q, wanted, present, p)
			}
		}
	})

	law("11: nobody else's priority is touched, and a busy machine is ranked below empty ones only as surplus", func(t *rapid.T, v View, p Plan) {
		for _, q := range p.Priorities {
			m := find(v, q.Name)
			ours := m.Priority == 2 || m.Priority == 3 || m.Priority == 5
			if !ours || m.Leaving() || !m.HasProviderID || q.Priority == m.Priority {
				t.Fatalf("%+v of %+v", q, m)
			}
			i := slices.IndexFunc(p.Victims, func(victim Victim) bool { return victim.Name == q.Name })
			if (q.Priority == PriorityVictim) != (i >= 0) {
				t.Fatalf("%+v, victims %+v", q, p.Victims)
			}
			if i >= 0 && !m.Reserve && !slices.Contains(p.Moves, Move{m.Name, true, Retired}) && !slices.Contains(p.Moves, Move{m.Name, true, Swapped}) &&
				(p.Victims[i].Why != Surplus || start.Sub(v.SurplusSince) < v.Patience) {
				t.Fatalf("%+v serves: %+v", m, p)
			}
		}
	})

	law("5: a machine that holds a pod that must not be evicted is no surplus", func(t *rapid.T, v View, p Plan) {
		for _, victim := range p.Victims {
			if m := find(v, victim.Name); m.Pinned != "" && victim.Why == Surplus {
				t.Fatalf("%+v is to go: %+v", m, p)
			}
		}
	})

	law("5: budgets allow the evictions of a surplus together", func(t *rapid.T, v View, p Plan) {
		for _, b := range v.Budgets {
			evicted := 0
			for _, victim := range p.Victims {
				if victim.Why == Surplus {
					evicted += b.Pods[victim.Name]
				}
			}
			if evicted > max(0, b.Allowed) {
				t.Fatalf("%+v loses %d: %+v", b, evicted, p)
			}
		}
	})

	law("5: while too many Nodes are not ready nothing is drained as surplus, and patience does not run", func(t *rapid.T, v View, p Plan) {
		surplus := func(victim Victim) bool { return victim.Why == Surplus }
		if v.Unhealthy && (slices.ContainsFunc(p.Victims, surplus) || !p.SurplusSince.IsZero()) {
			t.Fatalf("%+v", p)
		}
	})

	law("12: R is given back for named reserve machines only, once, and not above what serves or begins to", func(t *rapid.T, v View, p Plan) {
		most := func(v View) int {
			serving, _, _ := count(v)
			for _, m := range v.Machines {
				if m.Reserve && m.Open && m.Ready() && !m.Leaving() {
					serving++
				}
			}
			return max(serving, v.Replicas)
		}
		if gone := p.Replicas - v.Replicas - len(p.Returned); gone < 0 || gone > v.NamedGone || p.Replicas > most(v) {
			t.Fatalf("at most %d: %+v", most(v), p)
		}
		for _, name := range p.Returned {
			if m := find(v, name); !m.Named || !m.Reserve {
				t.Fatalf("%+v", m)
			}
		}
		after := carriedOut(v, p)
		if again := NewPlan(after); len(p.Returned) > 0 && len(again.Returned) > 0 && again.Replicas > most(after) {
			t.Fatalf("%+v", again)
		}
	})

	law("at rest after being carried out, and no mark goes back", func(t *rapid.T, v View, p Plan) {
		moved := map[string]bool{}
		for range 8 {
			if p.AtRest(v) {
				return
			}
			for _, move := range p.Moves {
				if moved[move.Name] {
					t.Fatalf("%s moves again: %+v", move.Name, p)
				}
				moved[move.Name] = true
			}
			if p.Applied != v.Applied {
				// With it victims may be taken back, and those serve better than what boots.
				clear(moved)
			}
			v = carriedOut(v, p)
			p = NewPlan(v)
		}
		t.Fatalf("no rest: %+v", p)
	})
})

var phases = []mcm.MachinePhase{"", mcm.MachinePending, mcm.MachineAvailable, mcm.MachineRunning, mcm.MachineRunning, mcm.MachineRunning,
	mcm.MachineTerminating, mcm.MachineUnknown, mcm.MachineFailed, mcm.MachineCrashLoopBackOff,
	mcm.MachineInPlaceUpdating, mcm.MachineInPlaceUpdateSuccessful, mcm.MachineInPlaceUpdateFailed}

func drawMachine(t *rapid.T, name string) Machine {
	often := rapid.Custom(func(t *rapid.T) bool { return rapid.IntRange(0, 9).Draw(t, "of ten") > 0 })
	m := Machine{
		Name:      name,
		Created:   start.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * 10 * time.Minute),
		Phase:     rapid.SampledFrom(phases).Draw(t, "phase"),
		Set:       current,
		Reserve:   rapid.Bool().Draw(t, "reserve"),
		Failing:   !often.Draw(t, "not failing"),
		Priority:  rapid.SampledFrom([]int{3, 3, 5, 5, 2, 2, 1, 4, 0, -1}).Draw(t, "priority"),
		Named:     !often.Draw(t, "not named"),
		Deleted:   !often.Draw(t, "not deleted"),
		Preserved: !often.Draw(t, "not preserved"),
		Pods:      rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "pods"),
	}
	m.Doubtful = !m.Reserve && !often.Draw(t, "certain")
	if m.Pods > 0 {
		m.Pinned = drawPin(t)
	}
	m.SeenPriority = m.Priority
	if !often.Draw(t, "seen") {
		m.SeenPriority = 3
	}
	m.HasProviderID = m.Ready() || m.Unhealthy() || often.Draw(t, "made")
	m.Open = m.Reserve && !m.Unhealthy() && rapid.Bool().Draw(t, "open")
	m.Registered = m.Ready() || m.Unhealthy() || m.HasProviderID && rapid.Bool().Draw(t, "registered")
	return m
}

func drawPin(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "NotSafeToEvict: pod a/b must not be evicted"}).Draw(t, "pinned")
}

func drawView(t *rapid.T) View {
	v := View{
		Replicas:     rapid.IntRange(0, 4).Draw(t, "R"),
		Wish:         rapid.IntRange(0, 3).Draw(t, "wish"),
		Max:          rapid.SampledFrom([]int{Unbounded, Unbounded, 5, 4, 2}).Draw(t, "max"),
		CurrentSet:   current,
		SetReplicas:  rapid.IntRange(0, 6).Draw(t, "wanted"),
		Behind:       rapid.IntRange(0, 9).Draw(t, "behind") == 0,
		FreezeMargin: rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "margin"),
		Unhealthy:    rapid.IntRange(0, 4).Draw(t, "unhealthy") == 0,
		NamedGone:    max(0, rapid.IntRange(-5, 2).Draw(t, "named and gone")),
		Rollout:      rapid.IntRange(0, 4).Draw(t, "rollout") == 0,
		Now:          start, Patience: 10 * time.Minute, BootPatience: 20 * time.Minute,
	}
	v.Excess = max(0, min(v.Wish, v.Max-v.Replicas))
	v.Applied = Applied{Excess: rapid.IntRange(0, 3).Draw(t, "A"), Max: rapid.SampledFrom([]int{v.Max, v.Max, Unbounded, 5}).Draw(t, "recorded max")}
	if rapid.Bool().Draw(t, "overstays") {
		v.SurplusSince = start.Add(-rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "for"))
	}
	if rapid.IntRange(0, 3).Draw(t, "retries") == 0 {
		v.Retry = Retry{Failures: rapid.IntRange(1, 9).Draw(t, "failures"), Until: start.Add(rapid.SampledFrom([]time.Duration{-time.Minute, time.Minute}).Draw(t, "until")),
			Try: rapid.IntRange(0, 2).Draw(t, "try")}
	}
	if rapid.IntRange(0, 2).Draw(t, "dedicates") == 0 {
		shop := rapid.IntRange(0, v.Excess).Draw(t, "for shop")
		v.Dedicated = []machine.Dedication{{Owner: "shop", Machines: int32(shop)}, {Owner: "ci", Machines: int32(v.Excess - shop)}}
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "number") {
		m := drawMachine(t, string(rune('a'+i)))
		if v.Rollout && rapid.Bool().Draw(t, "old") {
			m.Set = old
		}
		m.Owner, m.Claimed = rapid.SampledFrom([]machine.Owner{"", "", "shop", "ci"}).Draw(t, "owner"), rapid.IntRange(0, 4).Draw(t, "claimed") == 0
		v.Machines = append(v.Machines, m)
	}
	if rapid.Bool().Draw(t, "budgets") {
		b := pool.SharedBudget{Allowed: rapid.IntRange(-1, 4).Draw(t, "allowed"), Pods: map[string]int{}}
		for _, m := range v.Machines {
			b.Pods[m.Name] = rapid.IntRange(0, m.Pods).Draw(t, "of the budget")
		}
		v.Budgets = []pool.SharedBudget{b}
	}
	return v
}

// carriedOut is the view after a plan, in a world in which nothing else happens.
func carriedOut(v View, p Plan) View {
	w := world{view: v}
	w.view.Machines = slices.Clone(v.Machines)
	w.carryOut(p)
	return w.view
}

func find(v View, name string) Machine {
	return v.Machines[slices.IndexFunc(v.Machines, func(m Machine) bool { return m.Name == name })]
}

// count says how many machines serve without being sick, and how many are there, alive or leaving.
func count(v View) (serving, live, leaving int) {
	for _, m := range v.Machines {
		switch {
		case m.Leaving():
			leaving++
			continue
		case !m.Reserve && !m.Unhealthy():
			serving++
		}
		live++
	}
	return serving, live, leaving
}

// deletions are the machines that MCM would delete to have so many left, as its store shows them before the plan is
// carried out. The marks are those after it.
func deletions(before, after View, left int) []Machine {
	var present []*Machine
	after.Machines = slices.Clone(after.Machines)
	for i := range after.Machines {
		m := &after.Machines[i]
		m.Priority, m.SeenPriority = before.Machines[i].SeenPriority, before.Machines[i].SeenPriority
		if m.Phase != mcm.MachineTerminating {
			present = append(present, m)
		}
	}
	// Those that are not expected to go stand first among equals: a machine that boots may run a moment later.
	slices.SortStableFunc(present, func(a, b *Machine) int {
		a, b = settledPhase(a), settledPhase(b)
		a.Created, b.Created, a.Name, b.Name = start, start, "", ""
		if order := deletedFirst(a, b); order != 0 || a.Reserve == b.Reserve {
			return order
		}
		if b.Reserve {
			return -1
		}
		return 1
	})
	var gone []Machine
	for _, m := range present[:max(0, len(present)-left)] {
		gone = append(gone, *m)
	}
	return gone
}

// neverMade is a machine without a VM, which machine-controller-manager lets go before any that runs.
func neverMade(m Machine) bool {
	return m.Phase == mcm.MachineCrashLoopBackOff && m.Failing && !m.HasProviderID
}

// settledPhase is the machine in the phase it may have by the time it is compared with others.
func settledPhase(m *Machine) *Machine {
	settled := *m
	inPlace := []mcm.MachinePhase{mcm.MachineInPlaceUpdating, mcm.MachineInPlaceUpdateSuccessful, mcm.MachineInPlaceUpdateFailed}
	if m.Phase != mcm.MachineFailed && !neverMade(*m) && (m.Reserve || !slices.Contains(inPlace, m.Phase)) {
		settled.Phase = mcm.MachineRunning
	}
	return &settled
}

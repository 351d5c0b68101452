// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

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

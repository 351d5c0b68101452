// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"
	"slices"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Ownership is whose machine one is, as far as that is to be written.
type Ownership struct {
	Name string
	// Owner is empty if the machine is for all pods.
	Owner machine.Owner
}

// Dedicate returns whom each machine in reserve is dedicated to, by index; empty if it is for all
// pods (law 12). A machine keeps its owner while that has a right to it. Otherwise, ready machines
// come before others, and older ones before newer ones. Machines whose Nodes are cordoned come last,
// also those that have an owner.
func Dedicate(machines []Machine, all []machine.Dedication) []machine.Owner {
	owners := make([]machine.Owner, len(machines))
	if len(all) == 0 {
		return owners
	}
	left := map[machine.Owner]int{}
	for _, d := range all {
		left[d.Owner] += int(d.Machines)
	}
	order := dedicationOrder(machines)
	give := func(i int, owner machine.Owner) {
		if left[owner] > 0 && owners[i] == "" {
			owners[i] = owner
			left[owner]--
		}
	}
	for _, some := range splitCordoned(machines, order) {
		for _, i := range some {
			if m := machines[i]; m.Owner != "" && !m.Unhealthy() && !m.First {
				give(i, m.Owner)
			}
		}
		for _, d := range all {
			for _, i := range some {
				give(i, d.Owner)
			}
		}
	}
	return owners
}

// splitCordoned returns the indices of the machines whose Nodes accept pods, and then those of the
// others.
func splitCordoned(machines []Machine, order []int) (split [2][]int) {
	for _, i := range order {
		which := 0
		if machines[i].Cordoned {
			which = 1
		}
		split[which] = append(split[which], i)
	}
	return split
}

// dedicationOrder returns the indices of machines in reserve that stay, the best to dedicate first.
func dedicationOrder(machines []Machine) []int {
	var order []int
	for i, m := range machines {
		if m.Reserve && !m.Leaving() {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := machines[i], machines[j]
		return cmp.Or(
			compareFalseFirst(a.First, b.First),
			compareFalseFirst(!a.Ready(), !b.Ready()),
			compareFalseFirst(a.Unhealthy(), b.Unhealthy()),
			a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name),
		)
	})
	return order
}

// DedicatedOrder returns the ready machines that are dedicated to each owner, in the order in which
// they can be claimed. Those that are claimed already are not among them.
func DedicatedOrder(v View) map[machine.Owner][]string {
	if len(v.Dedicated) == 0 {
		return nil
	}
	r := newRound(v)
	all := map[machine.Owner][]string{}
	for _, i := range r.selectMachines(func(m Machine) bool { return m.releasable() && m.kept }, r.releaseOrder) {
		all[r.machines[i].Owner] = append(all[r.machines[i].Owner], r.machines[i].Name)
	}
	return all
}

// dedicate sets whom machines are dedicated to.
func (r *round) dedicate() {
	for i, owner := range Dedicate(r.machines, r.view.Dedicated) {
		m := &r.machines[i]
		m.Owner, m.kept = owner, owner != "" && !m.Claimed
	}
}

// setOwners plans to write whom each machine is dedicated to after the plan.
func (r *round) setOwners() {
	if r.view.NodesUnknown {
		return
	}
	was := map[string]machine.Owner{}
	for _, m := range r.view.Machines {
		was[m.Name] = m.Owner
	}
	for i, owner := range Dedicate(r.machines, r.view.Dedicated) {
		if m := r.machines[i]; owner != was[m.Name] && m.HasProviderID && !m.Leaving() {
			r.plan.Owners = append(r.plan.Owners, Ownership{Name: m.Name, Owner: owner})
		}
	}
	slices.SortFunc(r.plan.Owners, func(a, b Ownership) int { return cmp.Compare(a.Name, b.Name) })
}

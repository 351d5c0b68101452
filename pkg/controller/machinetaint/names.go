// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// names are the reserve machines that a client named when it lowered replicas, until these are
// restored for them. Machine-controller-manager removes the name of a machine that is being deleted
// already, and the machine may be gone before the next plan.
type names struct {
	// generation is that of the MachineDeployment: a later one decides anew.
	generation int64
	all        map[string]bool
}

// validFor returns the names that hold for a version of a MachineDeployment.
func (n names) validFor(d *v1alpha1.MachineDeployment) map[string]bool {
	if n.generation != d.Generation {
		return nil
	}
	return n.all
}

// nameable is how long a client may name a machine that no longer exists: it has read the machine
// before, and tries again until its write succeeds.
const nameable = 5 * time.Minute

// noteDeparture remembers a reserve machine that no longer exists.
func (s *states) noteDeparture(key, machine string, now time.Time) {
	s.locked(key, func(one *state) { putEntry(&one.departed, machine, now.Add(nameable)) })
}

// forgetDeparted forgets the machines that no client names any more.
func (s *state) forgetDeparted(now time.Time) {
	maps.DeleteFunc(s.departed, func(_ string, until time.Time) bool { return now.After(until) })
}

// hasDeparted reports whether a machine was in reserve until lately, and no longer exists.
func (s *state) hasDeparted(machine string, now time.Time) bool {
	until, known := s.departed[machine]
	return known && !now.After(until)
}

// namedReserve returns the reserve machines that a MachineDeployment names and does not list as
// returned, also those that no longer exist.
func (s *state) namedReserve(d *v1alpha1.MachineDeployment, now time.Time, inReserve func(machine string) bool) (all []string) {
	settled := plan.Returned(d)
	for name := range pool.Named(d) {
		if !settled[name] && (inReserve(d.Namespace+"/"+name) || s.hasDeparted(name, now)) {
			all = append(all, name)
		}
	}
	return all
}

// noteNames follows the names in a MachineDeployment from one version to the next. It adds one for each
// replica by which R fell: the reserve takes the rest of a reduction if replicas include it. The
// function reports whether a machine is in reserve.
func (s *states) noteNames(was, is *v1alpha1.MachineDeployment, now time.Time, inReserve func(machine string) bool) {
	if was.Generation == is.Generation {
		return
	}
	s.locked(keyOf(is), func(one *state) {
		all := one.named.validFor(was)
		raised := int(pool.Workload(is, is.Spec.Replicas) - pool.Workload(was, was.Spec.Replicas))
		if raised > 0 {
			settleNames(all, was, is, raised, inReserve)
		}
		fresh := one.newNames(was, is, now, inReserve)
		for _, name := range fresh[:min(max(0, -raised), len(fresh))] {
			putEntry(&all, name, true)
		}
		one.named = names{is.Generation, all}
	})
}

// newNames returns the reserve machines that a version of a MachineDeployment names and the one before
// did not.
func (s *state) newNames(was, is *v1alpha1.MachineDeployment, now time.Time, inReserve func(machine string) bool) []string {
	before := pool.Named(was)
	fresh := slices.DeleteFunc(s.namedReserve(is, now, inReserve), func(name string) bool {
		_, known := before[name]
		return known
	})
	slices.Sort(fresh)
	return fresh
}

// settleNames removes the names that a raise of R accounts for: those that the MachineDeployment
// lists as returned, and as many as are left of the raise among machines that are gone. Names of
// other machines stay, since replicas are restored for one machine after the other.
func settleNames(all map[string]bool, was, is *v1alpha1.MachineDeployment, raised int, inReserve func(machine string) bool) {
	before := plan.Returned(was)
	for name := range plan.Returned(is) {
		delete(all, name)
		if !before[name] {
			raised--
		}
	}
	for name := range all {
		if raised > 0 && !inReserve(is.Namespace+"/"+name) {
			delete(all, name)
			raised--
		}
	}
}

// unname refuses to remove a name from a MachineDeployment before this controller's store shows a
// version with that name: if the watch breaks, the next list would not show that replicas have to be
// restored for it. Before is what the API server has, which machine-controller-manager reads there: no
// store may show it yet.
func (g *guards) unname(before, after *mcm.MachineDeployment) error {
	shown, known := g.latest.stores.deployment(keyOf(after))
	if !known || written.Reached(shown.ResourceVersion, before.ResourceVersion) {
		return nil
	}
	left := pool.Named(after)
	for name := range pool.Named(before) {
		if _, is := left[name]; !is {
			return conflictError("machinedeployments", after.Name, "the controller that keeps the reserve has yet to see that %s is named for deletion", name)
		}
	}
	return nil
}

// completeNames reports machines that are being deleted as named if they were, and returns how many
// of those that were are gone.
func (s *states) completeNames(d *v1alpha1.MachineDeployment, machines []pool.Machine) (gone int) {
	s.locked(keyOf(d), func(one *state) {
		all := maps.Clone(one.named.validFor(d))
		if len(all) == 0 {
			return // as for most MachineDeployments
		}
		settled := plan.Returned(d)
		for i, m := range machines {
			name := m.Object.Name
			machines[i].Named = m.Named || all[name] && !settled[name] && pool.BeingDeleted(m.Object)
			delete(all, name)
		}
		gone = len(all)
	})
	return gone
}

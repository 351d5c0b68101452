// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// ViewOf is a MachineDeployment as the rule looks at it, as far as a snapshot tells. For machine-controller-manager's store it
// takes the snapshot itself, and no excess is wished for.
func ViewOf(s pool.Snapshot) View {
	v := View{
		Replicas: s.Workload, Max: Unbounded, Applied: s.Applied, CurrentSet: s.Rollout.Set, Rollout: s.Rollout.Replacing,
		Wanted: len(s.Machines), Now: s.Now,
	}
	if s.Wishes.Bounds != nil {
		v.Min, v.Max = int(s.Wishes.Bounds.Min), int(s.Wishes.Bounds.Max)
	}
	for _, m := range s.Machines {
		v.Machines = append(v.Machines, MachineOf(m))
	}
	return v
}

// MachineOf is one machine as the rule looks at it.
func MachineOf(m pool.Machine) Machine {
	o, priority := m.Object, signs.Priority(m.Object)
	_, failing := signs.Failure(o)
	one := Machine{
		Name: o.Name, Born: o.CreationTimestamp.Time, Phase: m.Phase(), Set: m.Set, Reserve: m.Reserve(), Made: o.Spec.ProviderID != "",
		Failing: failing, Priority: priority, SeenPriority: priority, Named: m.Named, Deleted: o.DeletionTimestamp != nil,
		Preserved: m.Preserved, Pods: m.Pods, Pinned: m.Pinned, Registered: m.Registered(),
	}
	if m.Unseen {
		one.Pods = 1 // for all that is known
	}
	return one
}

// ReleaseOrder are the machines that leave the reserve if workload may have so many, in that order (law 2). R is not given back for any that
// was named.
func ReleaseOrder(v View, replicas int) []string {
	v.Replicas = replicas
	r := begin(v)
	r.release()
	names := make([]string, 0, len(r.plan.Moves))
	for _, move := range r.plan.Moves {
		names = append(names, move.Name)
	}
	return names
}

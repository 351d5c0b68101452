// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// ViewOf returns a MachineDeployment as the rule sees it, as far as the snapshot shows it. It
// assumes that machine-controller-manager's store shows the same, and that no excess is requested.
func ViewOf(s pool.Snapshot) View {
	v := View{
		Replicas: s.Workload, Max: Unbounded, Applied: s.Applied, CurrentSet: s.Rollout.Set, Rollout: s.Rollout.Replacing,
		SetReplicas: len(s.Machines), Now: s.Now,
	}
	claims := machine.Claims{}
	if s.Deployment != nil {
		v.Dedicated, claims = pool.Dedications(s.Deployment, s.Requested), pool.ClaimsOf(s.Deployment)
	}
	if s.Wishes.Bounds != nil {
		v.Min, v.Max = int(s.Wishes.Bounds.Min), int(s.Wishes.Bounds.Max)
	}
	v.Machines = make([]Machine, 0, len(s.Machines))
	for _, m := range s.Machines {
		one := MachineOf(m)
		one.Claimed = claims.Has(one.Name, v.Replicas)
		v.Machines = append(v.Machines, one)
	}
	return v
}

// MachineOf returns one machine as the rule sees it.
func MachineOf(m pool.Machine) Machine {
	o, priority := m.Object, pool.Priority(m.Object)
	_, failing := pool.Failure(o)
	one := Machine{
		Name: o.Name, Created: o.CreationTimestamp.Time, Phase: m.Phase(), Set: m.Set, Reserve: m.Reserve(), HasProviderID: o.Spec.ProviderID != "",
		Failing: failing, Priority: priority, SeenPriority: priority, Named: m.Named, Deleted: o.DeletionTimestamp != nil,
		Preserved: m.Preserved, Pods: m.Pods, Registered: m.Registered(), Open: m.Open(), Cordoned: m.Cordoned(), Tainted: m.Tainted(),
		Owner: machine.Owner(m.Object.Annotations[machine.DedicatedAnnotation]),
	}
	if m.Unseen {
		one.Pods = 1 // for all that is known
	}
	return one
}

// ReleaseOrder returns the machines that leave the reserve if workload may have this many replicas,
// in that order (law 2). It does not restore R for named machines.
func ReleaseOrder(v View, replicas int) []string {
	v.Replicas = replicas
	r := newRound(v)
	r.releaseMachines()
	names := make([]string, 0, len(r.plan.Moves))
	for _, move := range r.plan.Moves {
		names = append(names, move.Name)
	}
	return names
}

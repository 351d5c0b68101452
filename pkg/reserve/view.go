// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Unbounded is the Max of a MachineDeployment without bounds.
const Unbounded = pool.Unbounded

// Machine is one machine of the MachineDeployment.
type Machine struct {
	Name    string
	Created time.Time
	Phase   mcm.MachinePhase
	// Set is the name of the MachineSet that owns it.
	Set string
	// Reserve reports whether it has the reserve mark.
	Reserve bool
	// HasProviderID reports whether the machine has its provider id. Before that, nothing is written
	// to it: a conflict would make the machine controller create a second VM.
	HasProviderID bool
	// Failing reports whether its creation has failed, and will not be tried again within seconds.
	Failing bool
	// First reports whether a client wants it to be deleted before others, and Protected whether it
	// must not be deleted for the sake of the reserve: it is preserved, or a client wants others to be
	// deleted first. Both are what [pool.Priority] says.
	First, Protected bool
	// Named reports whether a client named it for deletion: see [pool.Machine.Named].
	Named bool
	// Deleted reports whether it has a deletion timestamp.
	Deleted bool
	// Registered reports whether it has a Node, or had one.
	Registered bool
	// Open reports whether pods may be bound to it although it is in reserve: see [pool.Machine.Open].
	Open bool
	// Cordoned reports whether its Node accepts no pods, whether or not it is in reserve.
	Cordoned bool
	// Tainted reports whether its Node has another taint than that of its template and of the reserve.
	Tainted bool
	// Unprepared reports whether something is missing there that it is prepared with, such as images.
	Unprepared bool
	// Pods is the number of its pods that are not a DaemonSet's, mirror pods or finished.
	Pods int
	// Pinned is why these cannot all be evicted now; empty if they can.
	Pinned string
	// Owner is whom the machine is dedicated to, as far as that is written; empty if to nobody.
	// Claimed reports whether a pod of its owner needs it.
	Owner   machine.Owner
	Claimed bool
	// kept reports whether it is dedicated and not claimed, so that it is not released.
	kept bool
}

// Applied is how many machines there are to be beyond R, as far as that is recorded, with the max that
// it was computed for.
type Applied = pool.Applied

// Retry records reserve machines that could not be created.
type Retry struct {
	// Failures is how many tries in a row failed; 0 if all is well.
	Failures int
	// Until then the reserve does not grow beyond Left, which is what was left of it.
	Until time.Time
	Left  int
	// Try is how many machines in reserve are being tried since then; 0 if that has not begun.
	Try int
}

// View is everything that the rule considers.
type View struct {
	Machines []Machine
	// Replicas is R, the number of machines that workload may have.
	Replicas int
	// Waiting is how many machines are requested for workload beyond R, until that growth is split
	// over zones. No machine is created for them, and spec.replicas includes them.
	Waiting int
	// Wish is the requested excess. X is what bounds leave of it.
	Wish int
	// Min and Max are those of the bounds, or 0 and Unbounded.
	Min, Max int
	// SettingsUnknown reports whether the settings cannot be read: Wish and Max are then what the reserve
	// has now, and nobody has asked for that.
	SettingsUnknown bool
	// Dedicated are the spare machines that are kept for pods of an owner.
	Dedicated []machine.Dedication
	// Accounting is where the reserve is counted; the zero value means additive.
	Accounting pool.Accounting
	// Applied is what is recorded.
	Applied Applied
	// Clamped reports whether the client that reduced spec.replicas last does so for a max that it
	// knows and bounds may not show.
	Clamped bool
	// CurrentSet is the name of the MachineSet made from the current template.
	CurrentSet string
	// Rollout reports whether machines of other sets are being replaced; package pool defines it.
	Rollout bool
	// SetReplicas is the sum of the MachineSets' replicas: what there was to be when nothing is recorded.
	SetReplicas int
	// NodesUnknown reports whether Nodes and their pods cannot be read: Pods is what it was, and no
	// Node can be written (law 7).
	NodesUnknown bool
	// NamedSpares is how many reserve machines clients have named for deletion when they lowered R, and
	// that are not being deleted for that yet, or are gone already.
	NamedSpares int
	// AllLeaving reports whether all machines are to be deleted, including the reserve: the cluster
	// hibernates or is being deleted.
	AllLeaving bool
	// Unhealthy reports whether so many Nodes of the cluster are not ready that no machine is
	// drained (law 5).
	Unhealthy bool
	// Budgets limit how many pods of several machines may be evicted together.
	Budgets []pool.SharedBudget

	Now time.Time
	// Patience is how long more than R machines may serve while none of them is empty.
	Patience time.Duration
	// BootPatience is how long a reserve machine may take to become ready; 0 means without limit.
	BootPatience time.Duration

	// SurplusSince, Retry and Lowered are those of the last plan.
	SurplusSince time.Time
	Retry        Retry
	Lowered      Lowered
}

// Leaving reports whether the machine is being deleted or named for deletion, by any client.
func (m Machine) Leaving() bool {
	return m.Named || m.Deleted || m.Phase == mcm.MachineTerminating
}

// Busy reports whether pods run on the machine that its deletion, or a mark, would affect.
func (m Machine) Busy() bool { return m.Pods > 0 }

// Ready reports whether workload can run on the machine now.
func (m Machine) Ready() bool { return pool.Ready(m.Phase) }

// Unhealthy reports whether the machine no longer works, or never will.
func (m Machine) Unhealthy() bool { return pool.Unhealthy(m.Phase) }

// serves reports whether the machine counts as serving unless it is leaving.
func (m Machine) serves() bool { return !m.Reserve && !m.Unhealthy() }

// booting reports whether the machine is still becoming ready.
func (m Machine) booting() bool { return !m.Ready() && !m.Unhealthy() }

// starting reports whether the machine is being created, or could not be. One that is updated in place
// was ready before.
func (m Machine) starting() bool { return m.booting() && !pool.UpdatedInPlace(m.Phase) }

// ViewOf returns a MachineDeployment as the rule sees it, as far as the snapshot shows it. It assumes
// that no excess is requested.
func ViewOf(s pool.Snapshot) View {
	v := View{Replicas: s.Workload, Max: Unbounded, Applied: s.Applied, CurrentSet: s.Rollout.Set, Rollout: s.Rollout.Replacing, Now: s.Now}
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
		Failing: failing, First: priority < pool.DefaultPriority, Protected: m.Preserved || priority > pool.DefaultPriority,
		Named: m.Named, Deleted: o.DeletionTimestamp != nil,
		Pods: m.Pods, Registered: m.Registered(), Open: m.Open(), Cordoned: m.Cordoned(), Tainted: m.Tainted(),
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

// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Unbounded is the Max of a MachineDeployment without bounds.
const Unbounded = pool.Unbounded

// Priorities that this rule gives, in the terms of machine-controller-manager: the lowest goes first. A machine
// without the annotation counts as PriorityServing. Any other value is somebody else's and stays.
const (
	PriorityVictim  = 2
	PriorityServing = 3
	PriorityReserve = 5
)

// Machine is one machine of the MachineDeployment.
type Machine struct {
	Name  string
	Born  time.Time
	Phase mcm.MachinePhase
	// Set is the name of the MachineSet that owns it.
	Set string
	// Reserve is the mark.
	Reserve bool
	// Made says that the machine has its provider id. Before that nothing may be written to it: a conflict there makes
	// machine-controller-manager create a second VM.
	Made bool
	// Failing says that making it has failed and will not be tried again within seconds.
	Failing bool
	// Priority is the deletion priority it has; SeenPriority what the lens' store shows of it.
	Priority, SeenPriority int
	// Named says that somebody named it for deletion through machine-controller-manager's own mechanism: the trigger
	// annotation, or priority 1 with a deletion time.
	Named bool
	// Deleted says that it has a deletion timestamp.
	Deleted bool
	// Returned says that its name is settled already: R was given back for it, or the reserve has become smaller by it.
	Returned bool
	// Registered reports whether it has a Node, or had one.
	Registered bool
	// Preserved says that its preserve expiry time lies ahead.
	Preserved bool
	// Pods is how many it holds that are not a DaemonSet's, mirror pods or finished.
	Pods int
	// Pinned reports whether one of these must not be evicted.
	Pinned bool
}

// Applied is the excess that machine-controller-manager is being asked to run, with the max it was computed for.
type Applied = pool.Applied

// Retry is what is known of reserve machines that could not be made.
type Retry struct {
	// Failures is how many tries in a row failed; 0 where all is well.
	Failures int
	// Until then the applied excess does not grow.
	Until time.Time
	// Try is the applied excess that is being tried since; 0 while nothing is.
	Try int
}

// View is everything that the rule looks at.
type View struct {
	Machines []Machine
	// Replicas is R, the number of machines that workload may have.
	Replicas int
	// Wish is the excess wanted, Excess is X: what bounds leave of it.
	Wish, Excess int
	// Min and Max are those of the bounds, or 0 and Unbounded.
	Min, Max int
	// Accounting is where the reserve is to be counted; the zero value means additive.
	Accounting pool.Accounting
	// Applied is what the lens shows now.
	Applied Applied
	// CurrentSet is the name of the MachineSet made from the current template.
	CurrentSet string
	// Rollout reports whether machines of other sets are being replaced; package pool defines it.
	Rollout bool
	// Wanted is the sum of the MachineSets' replicas in the lens' store.
	Wanted int
	// Asked is the largest number of machines that the MachineSets may be asking for: writes of unknown outcome and those under way count.
	Asked int
	// Behind says that the lens' store and this view do not hold the same machines, or not the same ones as terminating.
	Behind bool
	// Blind says that the Nodes and their pods cannot be seen: Pods is what it was, and no Node can be written (law 15).
	Blind bool
	// Ending reports whether all machines are to go, those of the reserve, too: the cluster hibernates or is being deleted.
	Ending bool
	// Unhealthy reports whether so many Nodes of the cluster are not ready that no machine is drained (law 5).
	Unhealthy bool
	// FreezeMargin is how far above its replicas machine-controller-manager freezes a MachineDeployment: surge plus its
	// --safety-up. Where it is 0 or less nothing is held back because of it.
	FreezeMargin int

	Now time.Time
	// Patience is how long more than R machines may serve with none of them empty.
	Patience time.Duration
	// BootPatience is how long a reserve machine may take to become ready; 0 is for ever.
	BootPatience time.Duration
	// SurplusSince, Retry and Lowered are those of the last plan.
	SurplusSince time.Time
	Retry        Retry
	Lowered      Lowered
}

// Leaving says that the machine is on its way out, whoever sent it.
func (m Machine) Leaving() bool {
	return m.Named || m.Deleted || m.Phase == mcm.MachineTerminating
}

// Busy says that deleting the machine, or marking it, would touch somebody's pods.
func (m Machine) Busy() bool { return m.Pods > 0 }

// Ready says that workload could run there now.
func (m Machine) Ready() bool {
	return m.Phase == mcm.MachineRunning || m.Phase == mcm.MachineAvailable
}

// Sick says that it worked once and does not now, or never will.
func (m Machine) Sick() bool {
	switch m.Phase {
	case mcm.MachineUnknown, mcm.MachineFailed, mcm.MachineInPlaceUpdateFailed:
		return true
	}
	return false
}

// booting is the rest: on its way to be ready.
func (m Machine) booting() bool { return !m.Ready() && !m.Sick() }

// ours says whether the priority is one that this rule gives.
func (m Machine) ours() bool {
	return m.Priority == PriorityVictim || m.Priority == PriorityServing || m.Priority == PriorityReserve
}

// kept says that nothing here may let it go: it is preserved, or somebody ranked it above all that this rule knows.
func (m Machine) kept() bool {
	return m.Preserved || !m.ours() && m.Priority > PriorityVictim
}

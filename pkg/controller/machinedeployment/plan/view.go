// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// View is what is known of a MachineDeployment with its MachineSets, or of a MachineSet that has no
// MachineDeployment, at one instant. Nothing in it is changed.
type View struct {
	Now      time.Time
	Settings Settings
	// Deployment is nil for a MachineSet of its own.
	Deployment *machine.MachineDeployment
	// Sets are those that the MachineDeployment controls, whatever their labels, or the one of its own.
	Sets []Set
	// OrphanSets are the MachineSets of the namespace that nothing controls, if there is a
	// MachineDeployment.
	OrphanSets []*mcm.MachineSet
	// Others are the other MachineDeployments of the namespace, if there are such MachineSets.
	Others []*machine.MachineDeployment
	// Orphans are the Machines of the namespace that nothing controls.
	Orphans []*mcm.Machine
	// Nodes are those of the machines, by name. It is nil if there is no target cluster.
	Nodes map[string]*corev1.Node
	// Reserve is what decides about the reserve of the MachineDeployment; nil if nobody asks for one and
	// there is none.
	Reserve *machinetaint.View

	// kept is what is decided about the reserve; nil without one. total is how many machines there are to
	// be, those in reserve included.
	kept  *machinetaint.Plan
	total *int32
}

// withTotal returns the view with what is decided about the reserve.
func (v View) withTotal() View {
	d := v.Deployment
	if d == nil {
		return v
	}
	v.total = new(pool.Workload(d, d.Spec.Replicas)) // growth may have to be split over zones first
	if v.Reserve == nil {
		return v
	}
	kept := machinetaint.New(*v.Reserve)
	if v.kept = &kept; !kept.Idle {
		v.total = new(pool.ClampInt32(kept.Rule.Total))
	}
	return v
}

// Settings are what flags say.
type Settings struct {
	// ProtectInRollout asks cluster-autoscaler to remove no Node of a MachineDeployment in a rollout.
	ProtectInRollout bool
	// SafetyUp is how many machines beyond what a MachineSet may have freeze it, and SafetyDown how many
	// below that unfreeze it.
	SafetyUp, SafetyDown int32
}

// Set is a MachineSet.
type Set struct {
	Object *mcm.MachineSet
	// Machines are those that it controls, whatever their labels. They include those that were
	// created and that no store shows yet.
	Machines []*mcm.Machine
}

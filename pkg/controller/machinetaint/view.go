// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// View is everything that is known of one MachineDeployment. Nothing in it is changed.
type View struct {
	Now        time.Time
	Settings   Settings
	Deployment *v1alpha1.MachineDeployment
	// Machines are the machines of its MachineSets, sorted by name.
	Machines []Machine
	// CurrentSet and Rollout are Set and Replacing of [pool.Rollout].
	CurrentSet string
	Rollout    bool
	// SetReplicas is how many machines the MachineSets are to have.
	SetReplicas int
	// Allocatable is what one machine offers to pods, nil if that is unknown.
	Allocatable corev1.ResourceList
	// Unknown is why Allocatable lacks devices that its bounds name.
	Unknown pool.Unknown
	// Unreachable is why the target cluster does not respond; empty if it does. Otherwise, Nodes
	// and pods are old.
	Unreachable string
	// Unclosable are the names of Nodes that the API server does not let have the taint.
	Unclosable map[string]bool
	// Targetless reports whether there is no target cluster, so that no Node is ever seen.
	Targetless bool
	// Unhealthy reports whether many of the target cluster's Nodes are not ready; see
	// [pool.UnreadyLimits].
	Unhealthy bool
	// Evictions is nil unless the view [View.NeedsEvictions].
	Evictions *Evictions
	// Accounting is where the reserve is counted unless the MachineDeployment defines it; empty to
	// leave it where it is.
	Accounting pool.Accounting
	// AllLeaving reports whether the cluster hibernates or is being deleted, so that a reserve
	// that replicas include is deleted, too.
	AllLeaving bool
	// Pruned reports whether the API server drops spec.excessReplicas, WitnessPruned whether it
	// drops spec.reserveWitness.
	Pruned, WitnessPruned bool
	// Memory is that of the last plan.
	Memory Memory
}

// Machine is one machine with its Node and pods. Nodes are unknown if there is no target cluster.
type Machine struct{ pool.Machine }

// Memory is what is kept of one MachineDeployment from plan to plan. If it is lost, only patience
// starts again.
type Memory struct {
	SurplusSince  time.Time
	Retry         reserve.Retry
	Lowered       reserve.Lowered
	FieldConflict FieldConflict
	// Applied is the annotation applied-excess. It is known if there was a plan before.
	Applied string
	Known   bool
}

// withKnownExcess returns a MachineDeployment with its applied excess. If a client has replaced the
// whole object without the annotation, the last value still applies: only plans change it.
func (m Memory) withKnownExcess(d *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment {
	if _, there := d.Annotations[v1alpha1.AppliedExcessAnnotation]; there || m.Applied == "" {
		return d
	}
	known := *d
	known.Annotations = maps.Clone(d.Annotations)
	metav1.SetMetaDataAnnotation(&known.ObjectMeta, v1alpha1.AppliedExcessAnnotation, m.Applied)
	return &known
}

// AppliedTo returns the applied excess of a MachineDeployment: how many machines there are to be beyond R.
func (m Memory) AppliedTo(d *v1alpha1.MachineDeployment) reserve.Applied {
	return pool.AppliedOf(m.withKnownExcess(d), d.Spec.Replicas)
}

// Workload returns R: how many machines workload may have.
func (m Memory) Workload(d *v1alpha1.MachineDeployment) int {
	return max(0, int(pool.Workload(m.withKnownExcess(d), d.Spec.Replicas)))
}

// Waiting returns the growth that is still to be split over zones.
func (m Memory) Waiting(d *v1alpha1.MachineDeployment) int {
	return int(pool.Requested(m.withKnownExcess(d))) - m.Workload(d)
}

// Defaults of the settings.
const (
	DefaultSurplusPatience = 10 * time.Minute
	DefaultBootPatience    = 15 * time.Minute
)

// Settings are the same for all MachineDeployments.
type Settings struct {
	// Effects of the reserve taint.
	Effects []corev1.TaintEffect
	// SurplusPatience is how long more machines than replicas may serve while none of them is
	// empty; in the controller, DefaultSurplusPatience unless set.
	SurplusPatience time.Duration
	// Eviction is by which rule pods may be evicted.
	Eviction pool.EvictionRule
	// BootPatience is how long a machine in reserve may take to become ready; 0 means without
	// limit.
	BootPatience time.Duration
	// Unready are the limits of Nodes that are not ready, beyond which no machine is drained.
	Unready pool.UnreadyLimits
	// Accounting returns where the reserve of a MachineDeployment is counted by default; empty to
	// leave it where it is. If nil, it stays where it is for all.
	Accounting func(*v1alpha1.MachineDeployment) pool.Accounting
	// Drain reports whether no MachineDeployment is to have a reserve, whatever excess is
	// requested.
	Drain bool
	// Preparation returns how far the preparation of a machine is; nil if nothing is prepared.
	Preparation func(machine types.UID) Preparation
}

// Preparation is how far a machine in reserve is prepared for workload.
type Preparation struct {
	// Missing reports whether something that it is to have is not there yet, and Failure why, if it
	// cannot be had now.
	Missing bool
	Failure string
}

// Taints returns the taints that keep workload off a machine in reserve.
func (s Settings) Taints() []corev1.Taint {
	taints := make([]corev1.Taint, 0, len(s.Effects))
	for _, effect := range s.Effects {
		taints = append(taints, corev1.Taint{Key: v1alpha1.ReserveTaintKey, Effect: effect})
	}
	return taints
}

// NewMark returns what holds a machine in reserve from now on.
func (s Settings) NewMark(now time.Time) v1alpha1.Reserve {
	since := now.UTC().Truncate(time.Second)
	return v1alpha1.Reserve{Since: since, Taints: s.Taints(), Annotations: map[string]string{
		v1alpha1.ReserveAnnotation:           since.Format(time.RFC3339),
		v1alpha1.ScaleDownDisabledAnnotation: "true",
	}}
}

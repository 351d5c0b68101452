// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// View is all that is known of one MachineDeployment. Nothing in it is changed.
type View struct {
	Now        time.Time
	Settings   Settings
	Deployment *v1alpha1.MachineDeployment
	// Machines are those that its MachineSets own, sorted by name.
	Machines []Machine
	// CurrentSet and Rollout are Set and Replacing of [pool.Rollout].
	CurrentSet string
	Rollout    bool
	// Wanted is the smallest number of machines that the MachineSets may be asking for, and Asked the largest: they differ while
	// writes are under way that machine-controller-manager's store does not show. Behind reports whether that store and this view do not
	// hold the same machines.
	Wanted, Asked int
	Behind        bool
	// Allocatable is what one machine has for pods; nil where it is not known.
	Allocatable corev1.ResourceList
	// Unreachable says in which way the target cluster does not answer; empty where it does. Nodes and pods are old then.
	Unreachable string
	// Unhealthy reports whether many of the target cluster's Nodes are not ready; see [signs.Unhealthy].
	Unhealthy bool
	// Pruned says that the API server does not keep spec.excessReplicas.
	Pruned bool
	// Memory is what the last plan said to remember.
	Memory Memory
}

// Machine is one machine with what belongs to it. Nodes are not known where there is no target cluster.
type Machine struct {
	pool.Machine
	// SeenPriority is the deletion priority that machine-controller-manager's store shows.
	SeenPriority int
}

// Memory is what is known of one MachineDeployment from plan to plan. Without it patience begins anew, no more.
type Memory struct {
	SurplusSince time.Time
	Retry        reserve.Retry
	Contest      Contest
	// Applied is the excess that was applied, to the MachineDeployment with this UID.
	Applied reserve.Applied
	UID     types.UID
}

// applied returns the applied excess. If a client has replaced the whole object without the annotation, the last value still applies:
// only plans change it.
func (m Memory) applied(d *v1alpha1.MachineDeployment) reserve.Applied {
	if _, there := d.Annotations[v1alpha1.AppliedExcessAnnotation]; !there && m.UID == d.UID {
		return m.Applied
	}
	return pool.AppliedOf(d)
}

// visible is how many machines machine-controller-manager is to be shown to be wanted.
func (m Memory) visible(d *v1alpha1.MachineDeployment) int {
	return pool.VisibleReplicas(replicas(d), m.applied(d))
}

// Settings are the same for all MachineDeployments.
type Settings struct {
	// Effects of the reserve taint.
	Effects []corev1.TaintEffect
	// SurplusPatience is how long more machines than replicas may serve with none of them empty;
	// DefaultSurplusPatience unless set.
	SurplusPatience time.Duration
	// BootPatience is how long a machine in reserve may take to become ready; 0 is for ever.
	BootPatience time.Duration
	// SafetyUp is machine-controller-manager's: how many machines beyond replicas and surge make it freeze.
	SafetyUp int
	// Drain says that no reserve is wanted anywhere, whatever MachineDeployments say.
	Drain bool
}

// Taints keep workload off a machine in reserve.
func (s Settings) Taints() []corev1.Taint {
	taints := make([]corev1.Taint, 0, len(s.Effects))
	for _, effect := range s.Effects {
		taints = append(taints, corev1.Taint{Key: v1alpha1.ReserveTaintKey, Effect: effect})
	}
	return taints
}

// mark is what holds a machine in reserve from now on.
func (s Settings) mark(now time.Time) v1alpha1.Reserve {
	since := now.UTC().Truncate(time.Second)
	return v1alpha1.Reserve{Since: since, Taints: s.Taints(), Annotations: map[string]string{
		v1alpha1.ReserveAnnotation:           since.Format(time.RFC3339),
		v1alpha1.ScaleDownDisabledAnnotation: "true",
	}}
}

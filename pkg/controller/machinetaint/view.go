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
	// Accounting is where the reserve is counted unless the MachineDeployment says it; empty to leave it where it is.
	Accounting pool.Accounting
	// Asleep reports whether the cluster hibernates or is being deleted; see asleep.
	Asleep bool
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
	Lowered      reserve.Lowered
	Contest      Contest
	// Applied is the annotation applied-excess of the MachineDeployment with this UID.
	Applied string
	UID     types.UID
}

// known is a MachineDeployment with its applied excess. If a client has replaced the whole object without the annotation, the last
// value still applies: only plans change it.
func (m Memory) known(d *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment {
	if _, there := d.Annotations[v1alpha1.AppliedExcessAnnotation]; there || m.Applied == "" || m.UID != d.UID {
		return d
	}
	known := *d
	known.Annotations = maps.Clone(d.Annotations)
	metav1.SetMetaDataAnnotation(&known.ObjectMeta, v1alpha1.AppliedExcessAnnotation, m.Applied)
	return &known
}

// applied is the applied excess, workload R, and visible the number of machines that machine-controller-manager is to be shown.
func (m Memory) applied(d *v1alpha1.MachineDeployment) reserve.Applied { return applied(m.known(d)) }
func (m Memory) workload(d *v1alpha1.MachineDeployment) int            { return replicas(m.known(d)) }
func (m Memory) visible(d *v1alpha1.MachineDeployment) int             { return pool.Visible(m.known(d)) }

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
	// Accounting is where the reserve of a MachineDeployment is counted by default; empty to leave it where it is. Where the function
	// is nil that is so for all.
	Accounting func(*v1alpha1.MachineDeployment) pool.Accounting
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

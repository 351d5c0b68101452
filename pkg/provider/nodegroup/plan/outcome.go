// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// changedAt is the annotation with the time when an autoscaler last changed replicas.
const changedAt = machineutils.LastDeploymentReplicaChangeByScalerTime

// ResolveOutcome determines the outcome of a patch from the stored object, which is no longer the
// version that it was decided on: either it took effect, or it never will and may be decided again.
// Lost reports whether an answer to it was lost; otherwise, a conflict means that it did not take
// effect.
//
// Each write of the spec increments the generation by one. If it has not changed, our write did not
// take effect. If it is one higher, our write took effect if the object shows it. If it is higher
// still and the object shows something else, the outcome is unknown, and trying again could change
// the group twice.
func (c Change) ResolveOutcome(base, live *v1alpha1.MachineDeployment, lost bool) (done bool, err error) {
	switch {
	case !lost, live.UID != base.UID:
		return false, nil
	case c.From != c.To && c.Replicas == base.Spec.Replicas:
		// Workload takes reserve machines that replicas include. Where that is not stored, it is
		// decided anew: on what the caller has seen.
		return live.Annotations[v1alpha1.AppliedExcessAnnotation] == c.Annotations[v1alpha1.AppliedExcessAnnotation], nil
	case c.From == c.To, live.Generation == base.Generation:
		return false, nil // names that have arrived are seen when deciding anew
	case live.Spec.Replicas == c.Replicas && c.arrived(base, live):
		return true, nil
	case live.Generation == base.Generation+1 && (live.Spec.Replicas != c.Replicas || c.identifiable(base)):
		return false, nil
	}
	return false, status.Errorf(codes.Aborted, "change %s: write outcome unknown and the object has changed since; re-read the target size", base.Name)
}

// arrived reports whether the stored object names our machines, or did. If we name none, it must
// have the target size: the same number of replicas may include more reserve machines.
func (c Change) arrived(base, live *v1alpha1.MachineDeployment) bool {
	if len(c.Names) == 0 {
		return pool.Requested(live) == c.To
	}
	there := pool.Named(live)
	missing := slices.ContainsFunc(c.Names, func(name string) bool { _, is := there[name]; return !is })
	return !missing || c.identifiable(base) && live.Annotations[changedAt] == c.Annotations[changedAt]
}

// identifiable reports whether the change writes a time that the object does not have yet, which
// proves our write later: machine-controller-manager removes names as soon as their machines
// terminate.
func (c Change) identifiable(base *v1alpha1.MachineDeployment) bool {
	at, ours := c.Annotations[changedAt]
	return ours && base.Annotations[changedAt] != at
}

// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"encoding/json"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// changedAt is when an autoscaler changed replicas last.
const changedAt = machineutils.LastDeploymentReplicaChangeByScalerTime

// patch is the change as one merge patch that takes effect on the version it was decided on, and on no other.
func (c Change) patch(base *v1alpha1.MachineDeployment) ([]byte, error) {
	metadata := map[string]any{"resourceVersion": base.ResourceVersion, "uid": base.UID}
	if len(c.Annotations) > 0 {
		metadata["annotations"] = annotationsOf(c.Annotations)
	}
	body := map[string]any{"metadata": metadata}
	if c.From != c.To {
		body["spec"] = map[string]any{"replicas": c.Replicas}
	}
	return json.Marshal(body)
}

// annotationsOf has null, which removes, for those without a value.
func annotationsOf(set map[string]string) map[string]any {
	annotations := map[string]any{}
	for key, value := range set {
		if annotations[key] = value; value == "" {
			annotations[key] = nil
		}
	}
	return annotations
}

// settle tells what became of a patch, by what is stored now that the version it was decided on is not any more: it took
// effect and is done, or it never will and may be decided anew. Lost says that an answer to it was lost; without that a
// conflict means that it did not.
//
// Each write of the spec counts the generation up by one. So where it has not moved nothing of ours is in it; where
// it has moved by one, that was ours if it shows what we wanted. Where it has moved further and shows something else nobody can
// tell, and trying again could change the group twice.
func (c Change) settle(base, live *v1alpha1.MachineDeployment, lost bool) (done bool, err error) {
	switch {
	case !lost, live.UID != base.UID:
		return false, nil
	case c.From != c.To && c.Replicas == base.Spec.Replicas:
		// Workload takes reserve machines that replicas include. Where that is not stored, it is decided anew: on what the caller has seen.
		return live.Annotations[v1alpha1.AppliedExcessAnnotation] == c.Annotations[v1alpha1.AppliedExcessAnnotation], nil
	case c.From == c.To, live.Generation == base.Generation:
		return false, nil // names that have arrived are seen when deciding anew
	case live.Spec.Replicas == c.Replicas && c.arrived(base, live):
		return true, nil
	case live.Generation == base.Generation+1 && (live.Spec.Replicas != c.Replicas || c.dated(base)):
		return false, nil
	}
	return false, status.Errorf(codes.Aborted, "change %s: write outcome unknown and the object has changed since; re-read the target size", base.Name)
}

// arrived tells whether what is stored names the machines that we named, or did.
func (c Change) arrived(base, live *v1alpha1.MachineDeployment) bool {
	there := signs.Named(live)
	missing := slices.ContainsFunc(c.Names, func(name string) bool { _, is := there[name]; return !is })
	return !missing || c.dated(base) && live.Annotations[changedAt] == c.Annotations[changedAt]
}

// dated tells whether our write would show by its time: machine-controller-manager takes names out as soon as their machines terminate.
func (c Change) dated(base *v1alpha1.MachineDeployment) bool {
	at, ours := c.Annotations[changedAt]
	return ours && base.Annotations[changedAt] != at
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// shareArrives is the age from which a MachineDeployment no longer waits for its share.
const shareArrives = 5 * time.Minute

// awaitsShare returns how long a MachineDeployment waits for its share of its pool's excess, 0 if
// it does not. Gardener moves a control plane to another seed with Machines and their annotations,
// but without those of MachineDeployments. Until the share is written again, no reserve seems to be
// desired, and reserve machines would be given to workload.
func awaitsShare(v View, w desired) time.Duration {
	d := v.Deployment
	_, shared := d.Annotations[v1alpha1.ShareAnnotation]
	_, applied := d.Annotations[v1alpha1.AppliedExcessAnnotation]
	if shared || applied || w.Wish > 0 || w.problem != nil || v.Memory.UID == d.UID && v.Memory.Applied != "" {
		return 0
	}
	worker := d.Spec.Template.Spec.NodeTemplateSpec.Annotations
	if worker[v1alpha1.PoolExcessAnnotation] == "" && worker[v1alpha1.BoundsAnnotation] == "" {
		return 0
	}
	if !slices.ContainsFunc(v.Machines, func(m Machine) bool { return m.Marked() }) {
		return 0
	}
	return max(0, d.CreationTimestamp.Add(shareArrives).Sub(v.Now))
}

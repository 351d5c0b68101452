// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"maps"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// OnlyStatusDiffers reports whether two versions of a MachineDeployment differ at most in their status.
// Each of them may be nil.
func OnlyStatusDiffers(before, after *machine.MachineDeployment) bool {
	return before != nil && after != nil && before.UID == after.UID && before.Generation == after.Generation &&
		maps.Equal(before.Annotations, after.Annotations) && maps.Equal(before.Labels, after.Labels)
}

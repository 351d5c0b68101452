// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"
)

// Bounds limit one MachineDeployment: replicas stay between Min and Max if an autoscaler changes
// them, and replicas with excess do not exceed Max.
//
// +k8s:deepcopy-gen=false
type Bounds struct {
	Min, Max int32
	// Excess is nil if the bounds leave it to spec.excessReplicas.
	Excess *Excess
}

// maxLength is the maximum length of bounds and of an excess. It limits the cost of the admission
// policy.
const maxLength = 256

// ParseBounds parses the value of [BoundsAnnotation]: "min:max" or "min:max:excess", for example
// "1:10:2", "1:10:5%" or "1:10:max(1,5%)". For other text, it returns an error that describes what
// to write.
func ParseBounds(text string) (Bounds, error) {
	parts := strings.SplitN(text, ":", 3)
	if len(text) > maxLength || !areBounds(parts) {
		return Bounds{}, fmt.Errorf("bounds %.80q: write min:max or min:max:excess, for example \"1:10:2\", at most %d characters, without spaces; excess is %s",
			text, maxLength, excessForms)
	}
	var b Bounds
	var err error
	if b.Min, err = parseCount("min", parts[0]); err != nil {
		return Bounds{}, fmt.Errorf("bounds %q: %w", text, err)
	}
	if b.Max, err = parseCount("max", parts[1]); err != nil {
		return Bounds{}, fmt.Errorf("bounds %q: %w", text, err)
	}
	if b.Min > b.Max {
		return Bounds{}, fmt.Errorf("bounds %q: min must not be above max", text)
	}
	if len(parts) == 3 {
		excess, err := ParseExcess(parts[2])
		if err != nil {
			return Bounds{}, fmt.Errorf("bounds %q: %w", text, err)
		}
		b.Excess = &excess
	}
	return b, nil
}

func areBounds(parts []string) bool {
	return len(parts) >= 2 && isCount(parts[0]) && isCount(parts[1]) && (len(parts) == 2 || isExcess(parts[2]))
}

// String is the form that [ParseBounds] reads.
func (b Bounds) String() string {
	if b.Excess == nil {
		return fmt.Sprintf("%d:%d", b.Min, b.Max)
	}
	return fmt.Sprintf("%d:%d:%s", b.Min, b.Max, b.Excess)
}

// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
)

// Reserved reports whether Evenkeel serves the buffer.
func (b *CapacityBuffer) Reserved() bool {
	return b.Spec.ProvisioningStrategy != nil && *b.Spec.ProvisioningStrategy == StrategyReserved
}

// FillsOnce reports whether the room that pods take is not replaced.
func (b *CapacityBuffer) FillsOnce() bool { return ptr.Deref(b.Spec.RefillStrategy, "") == RefillNone }

// Ended reports whether the buffer fills once and holds nothing any longer.
func (b *CapacityBuffer) Ended() bool {
	return b.FillsOnce() && (meta.IsStatusConditionTrue(b.Status.Conditions, ConditionFulfilled) || meta.IsStatusConditionTrue(b.Status.Conditions, ConditionExpired))
}

// Consumed returns how many chunks of a buffer that fills once have been used, by its status.
func (b *CapacityBuffer) Consumed() int {
	if !b.FillsOnce() {
		return 0
	}
	return int(max(0, ptr.Deref(b.Status.ConsumedReplicas, 0)))
}

// Outstanding returns how many chunks the buffer asks room for now, by its status.
func (b *CapacityBuffer) Outstanding() int {
	if b.Ended() {
		return 0
	}
	return max(0, int(ptr.Deref(b.Status.Replicas, 0))-b.Consumed())
}

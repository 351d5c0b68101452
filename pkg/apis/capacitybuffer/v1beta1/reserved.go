// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reserved reports whether Evenkeel serves the buffer.
func (b *CapacityBuffer) Reserved() bool {
	return b.Spec.ProvisioningStrategy != nil && *b.Spec.ProvisioningStrategy == StrategyReserved
}

// SPDX-License-Identifier: Apache-2.0

package plan

// nameVictims marks the machines that a client has named for deletion.
func (d *deployment) nameVictims() {}

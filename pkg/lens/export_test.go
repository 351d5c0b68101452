// SPDX-License-Identifier: Apache-2.0

package lens

// Remembered is how many deletions of Machines are remembered until the store shows them.
func (c *Consistent) Remembered() int {
	c.machines.mu.Lock()
	defer c.machines.mu.Unlock()
	return len(c.machines.dying)
}

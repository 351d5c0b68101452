// SPDX-License-Identifier: Apache-2.0

package machinetaint

import "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

// Remembered counts all that the controller holds beside its stores.
func (c *Controller) Remembered() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]int{
		"memories": len(c.memories), "resizes": len(c.resizes), "removals": len(c.removals),
		"reductions": len(c.reductions), "releases": len(c.releases),
		"listening": len(c.listening), "freed": len(c.freed), "written": c.written.Len(), "machines": c.machines.Len(),
		"nodes": c.nodes.Len(), "told": c.told.Len(),
	}
}

// Reduce begins a reduction.
func (c *Controller) Reduce(d *v1alpha1.MachineDeployment, shown, asked int) (ended func(error), err error) {
	return c.reduce(d, shown, asked)
}

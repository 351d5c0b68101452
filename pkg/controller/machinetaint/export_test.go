// SPDX-License-Identifier: Apache-2.0

package machinetaint

// Remembered counts all that the controller holds beside its stores.
func (c *Controller) Remembered() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]int{
		"memories": len(c.memories), "latest": len(c.latest), "shrinks": len(c.shrinks), "removals": len(c.removals),
		"listening": len(c.listening), "freed": len(c.freed), "written": c.written.Len(), "machines": c.machines.Len(),
		"nodes": c.nodes.Len(), "told": c.told.Len(),
	}
}

// StripPod is the transform of pods.
func (c *Controller) StripPod(item any) (any, error) { return stripPod(item) }

// StripNode is the transform of Nodes.
func StripNode(item any) (any, error) { return stripNode(item) }

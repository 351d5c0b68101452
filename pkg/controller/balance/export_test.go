// SPDX-License-Identifier: Apache-2.0

package balance

// Held is how many objects the controller remembers.
func (c *Controller) Held() int {
	return c.written.Len() + len(c.memory.Failing) + len(c.memory.Paused) + len(c.templates.held) + len(c.templates.last)
}

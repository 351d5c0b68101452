// SPDX-License-Identifier: Apache-2.0

package balance

// What tests look at apart from the whole.
var (
	StripPod    = stripPod
	StripNode   = stripNode
	StripBudget = stripBudget
)

// Held is how many objects the controller remembers.
func (c *Controller) Held() int {
	return c.written.Len() + len(c.memory.Ill) + len(c.memory.Paused) + len(c.templates.held) + len(c.templates.last)
}

// SPDX-License-Identifier: Apache-2.0

package preparation

// Held returns how much the controller remembers of machines and pods, once it has ended.
func (c *Controller) Held() int { return len(c.created) + len(c.refused) + len(c.sizes) }

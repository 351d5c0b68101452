// SPDX-License-Identifier: Apache-2.0

package balancer

// Held is how many things the controller remembers of objects that come and go.
func (c *Controller) Held() int {
	return c.written.Len() + len(c.refusals.known) + len(c.scales.known) + len(c.interests.selectors)
}

// Kinds is how many group versions it remembers.
func (c *Controller) Kinds() int { return len(c.kinds.known) }

// What tests look at apart from the whole.
var (
	OnlyReports = onlyReports
	Requests    = requests
	StripPod    = stripPod
)

// Refused is refused.
var Refused = refused

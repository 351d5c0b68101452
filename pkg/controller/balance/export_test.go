// SPDX-License-Identifier: Apache-2.0

package balance

// Held is how many objects the controller remembers.
func (c *Controller) Held() int {
	return c.written.Len() + len(c.memory.Failing) + len(c.memory.Paused) + len(c.templates.held) + len(c.templates.last)
}

// Concerned reports whether machines matter to a view.
func Concerned(v View) bool {
	for _, m := range v.Members {
		if readMember(Member{Object: m.Object}, v.Settings).concernedByMachines() {
			return true
		}
	}
	return len(v.Memory.Failing)+len(v.Memory.Paused) > 0
}

// Concerned reports whether events of machines cause a sync.
func (p *Preview) Concerned() bool { return p.c.concerned.Load() }

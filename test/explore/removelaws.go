// SPDX-License-Identifier: Apache-2.0

package explore

import "fmt"

// shownInstances is how many machines of the group the server shows to the autoscaler.
func (w *RemovalWorld) shownInstances() (n int) {
	for at := range w.shownUnits {
		if u := &w.shownUnits[at]; u.there && !u.marked {
			n++
		}
	}
	return n
}

// Rest returns what is wrong with a world at rest.
func (m *Removals) Rest(w RemovalWorld) string {
	n, spare := 0, 0
	for at := range w.units {
		u := &w.units[at]
		switch {
		case !u.there:
		case w.counted[at] || w.is.named[at] > 0:
			return fmt.Sprintf("I5: At rest, %s was removed and exists.", unitName(0, at))
		case u.marked:
			spare++
		default:
			n++
		}
	}
	switch {
	case w.is.replicas != w.owed:
		return fmt.Sprintf("N7: At rest, replicas are %d, and should be %d.", w.is.replicas, w.owed)
	case n != int(w.is.replicas) || w.is.applied != w.is.replicas || spare != m.excess(&w):
		return fmt.Sprintf("I5: At rest, %d machines serve of %d, and %d are in reserve.", n, w.is.replicas, spare)
	}
	return ""
}

// excess is how many machines are kept in reserve.
func (m *Removals) excess(w *RemovalWorld) int {
	return max(0, min(m.Spare, m.Max-int(min(w.is.replicas, w.is.applied))))
}

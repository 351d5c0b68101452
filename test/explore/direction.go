// SPDX-License-Identifier: Apache-2.0

package explore

import "cmp"

// direction is how a number changes.
type direction uint8

const (
	unturned direction = iota
	raised
	lowered
)

func directionOf(from, to uint8) direction {
	switch {
	case to > from:
		return raised
	case to < from:
		return lowered
	}
	return unturned
}

// turnsBack records another direction, and reports whether it is the opposite of the one before.
func (d *direction) turnsBack(next direction) bool {
	before := *d
	*d = cmp.Or(next, before)
	return before != unturned && before != *d
}

func (d direction) String() string { return [...]string{"unturned", "raised", "lowered"}[d] }

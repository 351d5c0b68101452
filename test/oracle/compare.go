// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is a field that differs between two endings.
type Difference struct {
	// Act is the number of the act, from 1, Said what it is.
	Act  int
	Said string
	// Object is kind and name, Field empty if the object is there in one ending only.
	Object, Field string
	// Left and Right are the values; empty is absent.
	Left, Right string
}

// String returns it on one line.
func (d Difference) String() string {
	return fmt.Sprintf("act %d: %s: %s: %q, %q", d.Act, d.Object, d.Field, d.Left, d.Right)
}

// Differences are those of one story. They are empty if the endings are equal.
type Differences []Difference

// String returns them by act.
func (d Differences) String() string {
	var b strings.Builder
	act := 0
	for _, one := range d {
		if one.Act != act {
			act = one.Act
			fmt.Fprintf(&b, "after act %d, %s\n", act, one.Said)
		}
		fmt.Fprintf(&b, "  %s  %s\n    left:  %s\n    right: %s\n", one.Object, one.Field, one.Left, one.Right)
	}
	return b.String()
}

// String returns all that is there after each act.
func (e Ending) String() string {
	var b strings.Builder
	for i, rest := range e.Rests {
		fmt.Fprintf(&b, "after act %d, %s, at rest after %v %s%s\n", i+1, rest.Act, rest.Took, rest.Refused, rest.Unrest)
		for _, name := range slices.Sorted(maps.Keys(rest.State)) {
			fmt.Fprintf(&b, "  %s\n", name)
			for _, line := range lineUp(rest.State[name]) {
				fmt.Fprintf(&b, "    %s\n", line)
			}
		}
	}
	return b.String()
}

// Compare returns what differs between two endings of one story, in the first act in which something
// does: what follows from that is of no interest.
func Compare(left, right Ending) Differences {
	for i := range max(len(left.Rests), len(right.Rests)) {
		if d := compareRests(i+1, restAt(left, i), restAt(right, i)); len(d) > 0 {
			return d
		}
	}
	return nil
}

func restAt(e Ending, i int) Rest {
	if i < len(e.Rests) {
		return e.Rests[i]
	}
	return Rest{Unrest: "the story has ended before"}
}

func compareRests(number int, left, right Rest) (all Differences) {
	add := func(object, field, l, r string) {
		if l != r {
			all = append(all, Difference{Act: number, Said: left.Act, Object: object, Field: field, Left: l, Right: r})
		}
	}
	add("act", "refused", left.Refused, right.Refused)
	if (left.Unrest == "") != (right.Unrest == "") {
		add("act", "rest", left.Unrest, right.Unrest)
	}
	if left.Unrest != "" {
		return all
	}
	for _, name := range union(left.State, right.State) {
		l, r := left.State[name], right.State[name]
		if l == nil || r == nil {
			add(name, "", presence(l), presence(r))
			continue
		}
		for _, field := range union(l, r) {
			add(name, field, l[field], r[field])
		}
	}
	return all
}

func presence(o Object) string {
	if o == nil {
		return "absent"
	}
	return "present"
}

func union[V any](a, b map[string]V) []string {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

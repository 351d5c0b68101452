// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// Mutant is one small change of one place.
type Mutant struct {
	ID       int
	Kind     string
	Position token.Position
	// Function is the name of the function or method that the place is in, if it is in one.
	Function string
	// Before and After are the place as it is and as it would be, on one line.
	Before, After string
}

var basicKinds = []string{"boundary", "negate", "arithmetic"}

// Basic reports whether common mutation tools make this kind of change.
func (m Mutant) Basic() bool { return slices.Contains(basicKinds, m.Kind) }

func (m Mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s -> %s", m.Position.Filename, m.Position.Line, m.Kind, m.Before, m.After)
}

// oneLine shortens source text for a table.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 70 {
		return string(runes[:67]) + "..."
	}
	return text
}

// insertion is text that a mutant adds to a file. All mutants of a file are insertions around spans
// that nest, so that every one of them is there at once and lines keep their numbers.
type insertion struct {
	mutant int
	offset int
	// span is the length of what is enclosed. At one offset openings of longer spans come first, and
	// endings of shorter ones.
	span   int
	ending bool
	// order tells insertions around the same span apart: the later one encloses the earlier.
	order int
	text  string
}

func compareInsertions(a, b insertion) int {
	if c := cmp.Compare(a.offset, b.offset); c != 0 {
		return c
	}
	switch {
	case a.ending != b.ending:
		// What ends here comes before what begins here.
		if a.ending {
			return -1
		}
		return 1
	case a.ending:
		return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(a.order, b.order))
	default:
		return cmp.Or(cmp.Compare(b.span, a.span), cmp.Compare(b.order, a.order))
	}
}

// weave puts all insertions but those of excluded mutants into a source.
func weave(source []byte, insertions []insertion, excluded map[int]bool) []byte {
	insertions = slices.SortedStableFunc(slices.Values(insertions), compareInsertions)
	var out strings.Builder
	at := 0
	for _, in := range insertions {
		if excluded[in.mutant] {
			continue
		}
		out.Write(source[at:in.offset])
		out.WriteString(in.text)
		at = in.offset
	}
	out.Write(source[at:])
	return []byte(out.String())
}

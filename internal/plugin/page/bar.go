// SPDX-License-Identifier: Apache-2.0

package page

import "strconv"

// bar is a horizontal scale from zero with filled parts and marks. Positions are percentages, so
// that the bar can have any width.
type bar struct {
	end   int
	Parts []part
	Marks []mark
}

// part is a filled part of a bar. Class defines its meaning.
type part struct{ Class, X, Width string }

// mark is a line across a bar.
type mark struct{ Class, X string }

func newBar(end int) bar { return bar{end: max(end, 1)} }

// addPart adds a part, up to the end of the bar, and nothing if the part would be empty.
func (b *bar) addPart(class string, from, to int) {
	from, to = clampLength(from, b.end), clampLength(to, b.end)
	if to > from {
		b.Parts = append(b.Parts, part{class, b.percent(from), b.percent(to - from)})
	}
}

func (b *bar) addMark(class string, at int) {
	b.Marks = append(b.Marks, mark{class, b.percent(clampLength(at, b.end))})
}

func (b *bar) percent(n int) string {
	return strconv.FormatFloat(100*float64(n)/float64(b.end), 'f', 2, 64) + "%"
}

func clampLength(n, most int) int { return max(0, min(n, most)) }

// SPDX-License-Identifier: Apache-2.0

package page

import "strconv"

// bar is a horizontal scale from zero with filled parts and marks. Positions are percentages, so that it is as wide
// as there is room.
type bar struct {
	end   int
	Parts []part
	Marks []mark
}

// part is a filled piece of a bar. Class says what it stands for.
type part struct{ Class, X, Width string }

// mark is a line across a bar.
type mark struct{ Class, X string }

func newBar(end int) bar { return bar{end: max(end, 1)} }

// fill adds a part, as far as the bar goes; nothing where it would be empty.
func (b *bar) fill(class string, from, to int) {
	from, to = clamp(from, b.end), clamp(to, b.end)
	if to > from {
		b.Parts = append(b.Parts, part{class, b.percent(from), b.percent(to - from)})
	}
}

func (b *bar) mark(class string, at int) {
	b.Marks = append(b.Marks, mark{class, b.percent(clamp(at, b.end))})
}

func (b *bar) percent(n int) string {
	return strconv.FormatFloat(100*float64(n)/float64(b.end), 'f', 2, 64) + "%"
}

func clamp(n, most int) int { return max(0, min(n, most)) }

// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// tiles shows machines as squares, row by row. Sizes are in CSS pixels.
type tiles struct {
	Width, Height, Size int
	// Label describes the picture in words.
	Label string
	Tiles []tile
}

// tile is one machine.
type tile struct {
	Name, Symbol, Title string
	X, Y                int
}

// grids define the layout for up to this number of machines; the last one is for any number.
var grids = []struct{ upTo, columns, pitch, size int }{
	{16, 8, 35, 28},
	{60, 12, 23, 19},
	{400, 20, 14, 11},
	{0, 35, 8, 7},
}

func newTiles(machines []overview.Machine, counts []count, most int) tiles {
	grid := grids[len(grids)-1]
	for _, g := range grids {
		if most <= g.upTo {
			grid = g
			break
		}
	}
	rows := (len(machines) + grid.columns - 1) / grid.columns
	gap := grid.pitch - grid.size
	t := tiles{Width: grid.columns*grid.pitch - gap, Height: max(rows*grid.pitch-gap, 0), Size: grid.size, Label: countLabel(counts)}
	t.Tiles = make([]tile, len(machines))
	for i, m := range machines {
		t.Tiles[i] = tile{
			Name: m.Name, Symbol: stateClass(m.State), Title: tooltip(m),
			X: i % grid.columns * grid.pitch, Y: i / grid.columns * grid.pitch,
		}
	}
	return t
}

func countLabel(counts []count) string {
	words := make([]string, len(counts))
	for i, c := range counts {
		words[i] = fmt.Sprintf("%d %s", c.N, c.State)
	}
	if len(words) == 0 {
		return "no machines"
	}
	return strings.Join(words, ", ")
}

// tooltip returns the text that is shown while the pointer is over a tile.
func tooltip(m overview.Machine) string {
	lines := []string{m.Name, string(m.State)}
	if !m.Since.IsZero() {
		lines[1] += " since " + m.Since.Local().Format(time.DateTime)
	}
	if m.Pods >= 0 && m.Node != "" {
		lines = append(lines, fmt.Sprintf("pods: %d", m.Pods))
	}
	if m.Why != "" {
		lines = append(lines, m.Why)
	}
	return strings.Join(lines, "\n")
}

// row is one machine in the list of a zone's machines.
type row struct {
	overview.Machine
	ID string
}

func newRows(machines []overview.Machine) []row {
	rows := make([]row, len(machines))
	for i, m := range machines {
		rows[i] = row{m, "machine/" + m.Name}
	}
	return rows
}

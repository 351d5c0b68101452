// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// pool is a pool as the page shows it.
type pool struct {
	ID, Namespace, Name, Asked    string
	Replicas, Excess, Ready, Skew int
	Zones                         []zone
}

// newPools returns pools with different IDs. Pools without a label may have the same name, because it
// is what the names of their MachineDeployments have in common.
func newPools(all []overview.Pool) []pool {
	shown, used := make([]pool, len(all)), map[string]bool{}
	for i, p := range all {
		shown[i] = newPool(p)
		if used[shown[i].ID] {
			shown[i].ID += "+" + p.Zones[0].Name
		}
		used[shown[i].ID] = true
	}
	return shown
}

func newPool(p overview.Pool) pool {
	shown := pool{
		ID: "pool/" + p.Namespace + "/" + p.Name, Namespace: p.Namespace, Name: p.Name, Asked: p.Excess, Skew: p.Skew,
	}
	most, end := 0, 1
	for _, z := range p.Zones {
		most, end = max(most, len(z.Machines)), max(end, zoneEnd(z))
	}
	for _, z := range p.Zones {
		shown.Replicas += z.Replicas
		shown.Excess += z.Excess
		shown.Ready += z.Count[overview.ReserveReady]
		shown.Zones = append(shown.Zones, newZone(p, z, most, end))
	}
	return shown
}

// zone is a MachineDeployment as the page shows it.
type zone struct {
	overview.Zone
	Namespace, Pool, Href, SizeHref, Place string
	// Wish is the excess as it was written; empty if that is the number itself.
	Wish   string
	Counts []count
	Scale  bar
	Tiles  tiles
}

// count is how many machines are in a state.
type count struct {
	State overview.State
	N     int
}

// newZone returns a zone with tiles of the size that the largest zone beside it needs, on a common
// scale, so that zones can be compared.
func newZone(p overview.Pool, z overview.Zone, most, end int) zone {
	shown := zone{
		Zone: z, Namespace: p.Namespace, Pool: p.Name, Place: z.Zone, Href: zoneHref(p.Namespace, z.Name), SizeHref: sizeHref(p.Namespace, z.Name), Scale: zoneScale(z, end),
	}
	if shown.Place == "" {
		shown.Place = z.Name
	}
	if z.Asked != strconv.Itoa(z.Excess) {
		shown.Wish = z.Asked
	}
	for _, state := range overview.States {
		if n := z.Count[state]; n > 0 {
			shown.Counts = append(shown.Counts, count{state, n})
		}
	}
	shown.Tiles = newTiles(z.Machines, shown.Counts, most)
	return shown
}

func zoneHref(namespace, name string) string {
	return "/zone/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

func sizeHref(namespace, name string) string {
	return "/size/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

// zoneEnd returns the largest number that a zone's scale must show.
func zoneEnd(z overview.Zone) int {
	end := z.Replicas + max(z.Excess, z.Applied)
	if z.Bounds != nil {
		end = max(end, z.Bounds.Max)
	}
	return end
}

// zoneScale returns a scale with replicas and excess within bounds.
func zoneScale(z overview.Zone, end int) bar {
	b := newBar(end)
	b.addPart("replicas", 0, z.Replicas)
	b.addPart("excess", z.Replicas, z.Replicas+z.Excess)
	if z.Bounds != nil {
		b.addMark("limit", z.Bounds.Min)
		b.addMark("limit", z.Bounds.Max)
	}
	return b
}

// stateClass returns the CSS class of a state, which is also the name of its symbol.
func stateClass(s overview.State) string { return strings.ReplaceAll(string(s), " ", "-") }

func states() []overview.State { return overview.States }

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
	if m.Images != "" {
		lines = append(lines, "images: "+m.Images)
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

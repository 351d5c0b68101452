// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/url"
	"strconv"
	"strings"

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

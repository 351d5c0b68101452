// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// packWork bounds the work of one packing of all classes; see [fit.MaxWork].
const packWork = 4 * fit.MaxWork

// shape is a number of equal chunks, of one or more buffers.
type shape struct {
	chunk *fit.Pod
	count int
}

// packing contains how many machines of each site hold chunks, and how many chunks of each shape
// they hold.
type packing struct {
	machines, placed []int
	// sites reports which sites hold chunks of a shape.
	sites []map[int]bool
	// unfinished are the shapes of which some chunks have no place because the work is bounded.
	unfinished map[*fit.Pod]bool
	// left is how many chunks have no place. size is the sum of the sizes of all machines.
	left, size int64
}

// packChunks packs chunks onto machines, at most a given number of each site.
func packChunks(sites []site, limits []int, shapes []shape, work int) packing {
	p := packing{machines: make([]int, len(sites)), placed: make([]int, len(shapes)), sites: make([]map[int]bool, len(shapes))}
	var d fit.Demand
	total := 0
	for _, s := range shapes {
		d.Uncreated = append(d.Uncreated, fit.Uncreated{Like: s.chunk, Count: s.count})
		total = min(total+s.count, math.MaxInt32)
	}
	d.Budget = work
	var nodes []fit.Node
	siteOf, groups := map[string]int{}, make([]fit.Group, len(sites))
	for i := range sites {
		groups[i] = fit.Group{Name: sites[i].Deployment.Name, Limit: min(limits[i], total)}
		for n := range groups[i].Limit {
			node := sites[i].reserveNode(n)
			nodes, siteOf[node.Object.Name] = append(nodes, node), i
			groups[i].Nodes = append(groups[i].Nodes, node.Object.Name)
		}
	}
	p.read(fit.Pack(fit.NewRoom(nodes), d, groups), shapes, siteOf)
	for i, n := range p.machines {
		p.size += int64(n) * sites[i].size
	}
	return p
}

// read adds a result. A node counts if it holds something: a chunk that tolerates the reserve taint
// opens none.
func (p *packing) read(result fit.Packing, shapes []shape, siteOf map[string]int) {
	p.unfinished = result.UnfinishedLike
	for node := range result.Uncreated {
		p.machines[siteOf[node]]++
	}
	for i, s := range shapes {
		p.sites[i] = map[int]bool{}
		for node, n := range result.UncreatedLike[s.chunk] {
			p.placed[i] += n
			p.sites[i][siteOf[node]] = true
		}
		p.left += int64(s.count - p.placed[i])
	}
}

// cost is smaller for a better packing: chunks without a place, then machines, then their sizes
// (law 4).
func (p *packing) cost() []int64 {
	var machines int64
	for _, n := range p.machines {
		machines += int64(n)
	}
	return []int64{p.left, machines, p.size}
}

// bestPacking packs chunks onto the machines that are requested already, unless another packing is
// better (law 6).
func bestPacking(sites []site, shapes []shape, work int) packing {
	limits, current := make([]int, len(sites)), make([]int, len(sites))
	kept := 0
	for i, s := range sites {
		limits[i] = s.room
		if s.blocked { // others stand in for what is not ready, whoever requests it
			limits[i] = min(s.room, s.ready)
		}
		current[i] = min(limits[i], s.current)
		kept += current[i]
	}
	fresh := packChunks(sites, limits, shapes, work)
	if kept == 0 {
		return fresh
	}
	if before := packChunks(sites, current, shapes, work); slices.Compare(before.cost(), fresh.cost()) <= 0 {
		before.unfinished = fresh.unfinished // before, other machines were not considered
		return before
	}
	return fresh
}

// nextRequests returns how many machines to request now (laws 6 and 7): no ready machine is given
// up before its replacement is ready, and a site where machines cannot be created keeps one for the
// next try.
func nextRequests(sites []site, target []int) []int {
	now, complete := slices.Clone(target), allReady(sites, target)
	for i, s := range sites {
		if !complete {
			now[i] = max(now[i], min(s.current, s.ready, s.room))
		}
		if s.blocked && s.current > 0 {
			now[i] = max(now[i], min(1, s.room))
		}
	}
	return now
}

// allReady reports whether this many machines are ready. bestPacking uses no others of a site where
// machines cannot be created.
func allReady(sites []site, machines []int) bool {
	for i, s := range sites {
		if s.ready < machines[i] {
			return false
		}
	}
	return true
}

// packReady packs chunks onto the machines that are ready.
func packReady(sites []site, shapes []shape, requested []int, work int) packing {
	limits := make([]int, len(sites))
	for i, s := range sites {
		limits[i] = min(requested[i], s.ready)
	}
	return packChunks(sites, limits, shapes, work)
}

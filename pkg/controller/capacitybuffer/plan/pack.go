// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// maxMachines is how many machines of all MachineDeployments are considered for chunks. Each
	// MachineDeployment has an equal part, but at least minMachines and at most maxPerPool.
	maxMachines, minMachines, maxPerPool = 4000, 20, 1000
)

// site is a MachineDeployment that can hold chunks.
type site struct {
	Pool
	// room is how many spare machines it may have, as far as they are considered. capped reports
	// whether bounds allow more.
	room   int
	capped bool
	// current is how many machines are requested there now, and ready how many spare machines are
	// ready, whoever requested them.
	current, ready int
	// dedicated are those of the current machines that are dedicated to owners.
	dedicated []machine.Dedication
	// blocked reports whether machines cannot be created there.
	blocked bool
	// size is the size of a machine, relative to the largest one of all sites.
	size int64
	// daemons are the pods of DaemonSets on each machine.
	daemons []*fit.Pod
}

// candidateSites returns the MachineDeployments that can hold chunks (law 5), by name. held is how
// many machines are requested of those about which too little is known now.
func (v *View) candidateSites() (all []site, held map[string]holding) {
	held = map[string]holding{}
	asleep := !slices.ContainsFunc(v.Pools, func(p Pool) bool { return p.Deployment.Spec.Replicas > 0 })
	for _, p := range v.Pools {
		d := p.Deployment
		bounds, err := pool.Parsed(d.Annotations, machine.BoundsAnnotation, machine.ParseBounds)
		switch {
		case d.DeletionTimestamp != nil || p.Taken || pool.Drained(d) || asleep && d.Labels[pool.WorkerPoolLabel] != "" || bounds == nil && err == nil:
		case err != nil || p.Node == nil:
			if r := v.reserveOf(d.Name); r != nil {
				held[d.Name] = holding{machines: int(max(0, r.Spec.Replicas)), dedicated: dedications(r)}
			}
		default:
			all = append(all, v.newSite(p, int(bounds.Max)))
		}
	}
	slices.SortFunc(all, func(a, b site) int { return cmp.Compare(a.Deployment.Name, b.Deployment.Name) })
	part := partOf(len(all))
	for i := range all {
		all[i].capped, all[i].room = all[i].room > part, min(all[i].room, part)
	}
	measure(all)
	return all, held
}

func (v *View) newSite(p Pool, limit int) site {
	d := p.Deployment
	s := site{Pool: p, room: max(0, limit-max(0, int(pool.Requested(d)))), ready: p.Ready, blocked: cannotBeMade(d)}
	if r := v.reserveOf(d.Name); r != nil {
		s.current, s.dedicated = int(max(0, r.Spec.Replicas)), dedications(r)
		s.blocked = s.blocked || slices.ContainsFunc(r.Status.Pools, func(p autoscaling.ReservePoolStatus) bool { return p.Blocked })
	}
	s.daemons = fit.Fill(s.reserveNode(0), v.Daemons)
	return s
}

// partOf returns how many machines of each site are considered.
func partOf(sites int) int { return min(maxPerPool, max(minMachines, maxMachines/max(1, sites))) }

func cannotBeMade(d *machine.MachineDeployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == machine.ReserveReady {
			return c.Reason == reason.CannotBeMade
		}
	}
	return false
}

// measure compares machines by CPU and memory.
func measure(all []site) {
	var cpu, memory int64 = 1, 1
	for _, s := range all {
		cpu, memory = max(cpu, s.Node.Status.Allocatable.Cpu().MilliValue()), max(memory, s.Node.Status.Allocatable.Memory().Value())
	}
	for i, s := range all {
		all[i].size = int64(1000*float64(s.Node.Status.Allocatable.Cpu().MilliValue())/float64(cpu)) +
			int64(1000*float64(s.Node.Status.Allocatable.Memory().Value())/float64(memory))
	}
}

// poolLabel is a label of the nodes of a packing, by which chunks find the pool that their buffer
// names.
func poolLabel(name string) string { return v1beta1.PoolAnnotation + "/" + name }

// reserveNode returns a machine in reserve, as a Node.
func (s *site) reserveNode(i int) fit.Node {
	n := pool.NodeLike(s.Node, fmt.Sprintf("%s/%d", s.Deployment.Name, i))
	pool.AddReserveTaint(n)
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[poolLabel(s.Deployment.Name)] = ""
	if name := pool.WorkerPoolOf(s.Deployment); name != "" {
		n.Labels[poolLabel(name)] = ""
	}
	return fit.Node{Object: n, Without: []string{machine.ReserveTaintKey}, Closed: true, Pods: s.daemons}
}

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

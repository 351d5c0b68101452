// SPDX-License-Identifier: Apache-2.0

// Package plan decides how many machines to request of each MachineDeployment for the chunks of
// CapacityBuffers, and the status of each buffer: it turns a View into a Plan. It is pure, and its
// laws are those of package capacitybuffer.
package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/internal/turns"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

const (
	// maxBuffers is how many buffers count. Namespaces take turns, each with its oldest first.
	maxBuffers = 10_000
	// maxChecks is how many shapes without a place are examined to find the reason.
	maxChecks = 200
	// lookAgain is when to sync again for changes without an event: of DaemonSets, and of what
	// Nodes offer.
	lookAgain = 10 * time.Minute
)

// New decides about all buffers.
func New(v View) Plan {
	r := round{View: v, fills: newFills(v.Bound), unreadOf: map[machine.Owner]int{}, unreadIn: map[string]bool{}, prepare: map[string][]autoscaling.Preparation{}}
	r.sites, r.held = v.candidateSites()
	r.decide()
	free := r.useFreeRoom()
	p := Plan{Free: free, Requests: r.settle(), Decisions: r.decisions, Again: r.again}
	if len(p.Decisions) > 0 {
		p.Again = requeue.Sooner(p.Again, lookAgain)
	}
	slices.SortFunc(p.Decisions, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(a.Buffer.Namespace, b.Buffer.Namespace), cmp.Compare(a.Buffer.Name, b.Buffer.Name))
	})
	return p
}

// round is a plan in progress.
type round struct {
	View
	sites []site
	// held are the machines that are requested of MachineDeployments about which too little is
	// known now (law 5).
	held      map[string]holding
	decisions []Decision
	classes   []*class
	// places contain the shape of each decision's chunks.
	places []place
	// unread is how many chunks buffers had that cannot be read now: they may still need their
	// machines (law 5). unreadOf is how many of them have machines that are dedicated to an owner,
	// and unreadIn contains the pools that these buffers name.
	unread   int
	unreadOf map[machine.Owner]int
	unreadIn map[string]bool
	// fills are the pods that buffers that fill once are for, and again when the first of them ends.
	fills fills
	again time.Duration
	// prepare is what to prepare in MachineDeployments, by name.
	prepare map[string][]autoscaling.Preparation
}

// place is a shape of a class; nil if a decision has no chunks.
type place struct {
	class *class
	shape int
}

// decide determines the shape and the number of chunks of each buffer.
func (r *round) decide() {
	left := newQuotas(r.Quotas)
	for i, b := range inTurns(r.Buffers) {
		d := Decision{Buffer: b.Object, Template: b.Template}
		var at place
		if i >= maxBuffers {
			d.Problem = problem(reason.TooManyBuffers, "only %d buffers can have chunks at a time, and namespaces take turns: delete buffers", maxBuffers)
		} else {
			at = r.decideOne(&d, b, left)
		}
		r.decisions, r.places = append(r.decisions, d), append(r.places, at)
	}
}

// decideOne returns the place of the chunks of a buffer, if it has any.
func (r *round) decideOne(d *Decision, b Buffer, left quotas) place {
	chunk, why := (*corev1.Pod)(nil), r.refillProblem(b.Object)
	if why == nil {
		chunk, why = b.chunkPod()
	}
	if why == nil {
		d.Asked, why = b.chunkCount(chunk)
	}
	if why == nil {
		d.Owner, why = b.owner()
	}
	if why == nil {
		why = freeRoomProblem(b.Object, d.Owner)
	}
	if r.FillOnce && b.Object.FillsOnce() {
		why = r.fill(d, b, why)
	}
	if d.Problem = why; d.Fill != nil && d.Fill.Ended != "" {
		return place{}
	}
	if why != nil && why.unread {
		d.Chunks = b.Object.Outstanding()
		owner, _ := b.owner()
		r.unread, r.unreadOf[owner] = min(r.unread+d.Chunks, math.MaxInt32), min(r.unreadOf[owner]+d.Chunks, math.MaxInt32)
		r.unreadIn[b.Object.Annotations[v1beta1.PoolAnnotation]] = true
	}
	if why != nil {
		return place{}
	}
	pod := fit.Read(chunk, true)
	if pod.Unclear != "" {
		d.Problem = unclear(pod)
		return place{}
	}
	c := r.classOf(d.Owner)
	if c == nil {
		d.Problem = problem(reason.TooManyBuffers, "machines can be dedicated to at most %d different owners: delete buffers with the annotation dedicated", maxOwners)
		return place{}
	}
	d.Chunks, d.Quotas = left.takeChunks(chunk, d.Asked)
	return place{class: c, shape: c.add(pod, d.Chunks)}
}

func unclear(pod *fit.Pod) *Problem {
	return problem(reason.ShapeUnclear, "Evenkeel cannot decide where a chunk can run: %s", pod.Unclear)
}

// inTurns returns buffers in the order in which they count: the oldest of each namespace, then the
// second of each, and so on.
func inTurns(all []Buffer) []Buffer {
	all = slices.SortedFunc(slices.Values(all), func(a, b Buffer) int {
		x, y := a.Object, b.Object
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	return turns.ByNamespace(all, func(b Buffer) string { return b.Object.Namespace })
}

// settle packs the chunks of each class, assigns places to decisions, and returns the Reserves to
// change. Dedicated machines come first.
func (r *round) settle() []Request {
	slices.SortFunc(r.classes, func(a, b *class) int { return compareOwners(a.owner, b.owner) })
	left := remainder{}
	for _, s := range r.sites {
		left.room, left.ready = append(left.room, s.room), append(left.ready, s.ready)
	}
	all := make([]holding, len(r.sites))
	for _, c := range r.classes {
		c.sites = r.sitesFor(c, left)
		c.settle(packWork / len(r.classes))
		for i, n := range c.now {
			left.room[i], left.ready[i] = max(0, left.room[i]-n), max(0, left.ready[i]-n)
			all[i].add(c.owner, n)
		}
	}
	r.assign()
	return r.requests(all)
}

// compareOwners puts the machines for all pods last.
func compareOwners(a, b machine.Owner) int {
	if (a == "") != (b == "") {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

func (c *class) hasChunks() bool {
	return slices.ContainsFunc(c.shapes, func(s shape) bool { return s.count > 0 })
}

// settle packs the chunks of a class.
func (c *class) settle(work int) {
	if !c.hasChunks() {
		c.target = packing{placed: make([]int, len(c.shapes))}
		c.standing = c.target
		return
	}
	c.target = bestPacking(c.sites, c.shapes, work)
	c.now = nextRequests(c.sites, c.target.machines)
	c.standing = c.target
	if !allReady(c.sites, c.target.machines) {
		c.standing = packReady(c.sites, c.shapes, c.now, work)
	}
}

// assign gives places to buffers in the order in which they count.
func (r *round) assign() {
	checks := maxChecks
	placed, ready := map[*class][]int{}, map[*class][]int{}
	for _, c := range r.classes {
		placed[c], ready[c] = slices.Clone(c.target.placed), slices.Clone(c.standing.placed)
	}
	for i := range r.decisions {
		d, c, at := &r.decisions[i], r.places[i].class, r.places[i].shape
		if c == nil {
			continue
		}
		reserved := min(d.Chunks-d.Free, placed[c][at])
		started := min(reserved, ready[c][at])
		placed[c][at], ready[c][at] = placed[c][at]-reserved, ready[c][at]-started
		d.Placed, d.Ready = d.Free+reserved, d.Free+started
		for n, s := range c.sites {
			if reserved > 0 && c.target.sites[at][n] {
				d.Pools = append(d.Pools, s.Deployment.Name)
			}
		}
		if d.Placed < d.Chunks {
			d.Lack = c.shortageReason(d, c.shapes[at].chunk, &checks)
		}
		r.prepareImages(d)
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/turns"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
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
	r := round{View: v, unreadOf: map[machine.Owner]int{}, unreadIn: map[string]bool{}}
	r.sites, r.held = v.candidateSites()
	r.decide()
	p := Plan{Requests: r.settle(), Decisions: r.decisions}
	if len(p.Decisions) > 0 {
		p.Again = lookAgain
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
			d.Problem = problem(reason.TooManyBuffers, "at most %d buffers have chunks, and namespaces take turns", maxBuffers)
		} else {
			at = r.decideOne(&d, b, left)
		}
		r.decisions, r.places = append(r.decisions, d), append(r.places, at)
	}
}

// decideOne returns the place of the chunks of a buffer, if it has any.
func (r *round) decideOne(d *Decision, b Buffer, left quotas) place {
	chunk, why := b.chunkPod()
	if why == nil {
		d.Asked, why = b.chunkCount(chunk)
	}
	if why == nil {
		d.Owner, why = b.owner()
	}
	if d.Problem = why; why != nil && why.unread {
		d.Chunks = int(max(0, ptr.Deref(b.Object.Status.Replicas, 0)))
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
		d.Problem = problem(reason.TooManyBuffers, "machines can be dedicated to at most %d different owners", maxOwners)
		return place{}
	}
	d.Chunks, d.Quotas = left.takeChunks(chunk, d.Asked)
	return place{class: c, shape: c.add(pod, d.Chunks)}
}

func unclear(pod *fit.Pod) *Problem {
	return problem(reason.ShapeUnclear, "it cannot be decided where a chunk can run: %s", pod.Unclear)
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
		d.Placed = min(d.Chunks, placed[c][at])
		d.Ready = min(d.Placed, ready[c][at])
		placed[c][at], ready[c][at] = placed[c][at]-d.Placed, ready[c][at]-d.Ready
		for n, s := range c.sites {
			if d.Placed > 0 && c.target.sites[at][n] {
				d.Pools = append(d.Pools, s.Deployment.Name)
			}
		}
		if d.Placed < d.Chunks {
			d.Lack = c.shortageReason(d, c.shapes[at].chunk, &checks)
		}
	}
}

// holding is how many machines a MachineDeployment holds for chunks, and to whom some of them are
// dedicated.
type holding struct {
	machines  int
	dedicated []machine.Dedication
}

func (h *holding) add(owner machine.Owner, machines int) {
	h.machines += machines
	if owner != "" && machines > 0 {
		h.dedicated = append(h.dedicated, machine.Dedication{Owner: owner, Machines: int32(machines)})
	}
}

// requests returns the Reserves that differ from the decisions about sites and held machines, and
// those that nothing asks for.
func (r *round) requests(all []holding) []Request {
	wanted := map[string]Request{}
	want := func(name string, h holding) {
		if h.machines > 0 {
			wanted[ReserveName(name)] = Request{Pool: name, Machines: h.machines, Dedicated: h.dedicated}
		}
	}
	for i, h := range all {
		want(r.sites[i].Deployment.Name, h)
	}
	if r.unread > 0 || slices.ContainsFunc(r.classes, (*class).hasChunks) {
		for name, h := range r.held {
			want(name, h)
		}
	}
	var changes []Request
	for _, reserve := range r.byUnread() {
		w, is := wanted[reserve.Name]
		delete(wanted, reserve.Name)
		if kept := min(int(reserve.Spec.Replicas)-w.Machines, r.unread); kept > 0 {
			r.unread -= kept
			name := poolOf(reserve, w)
			if name == "" {
				continue // another client has moved its machines: they stay until buffers can be read again
			}
			w, is = Request{Pool: name, Machines: w.Machines + kept, Dedicated: r.keepDedicated(reserve, w.Dedicated, kept)}, true
		}
		if w.Reserve = reserve; !is || !w.isMet() {
			changes = append(changes, w)
		}
	}
	changes = slices.AppendSeq(changes, maps.Values(wanted))
	slices.SortFunc(changes, func(a, b Request) int { return cmp.Compare(a.Name(), b.Name()) })
	return changes
}

// byUnread returns the Reserves by name, but first those that certainly hold chunks of buffers that
// cannot be read, because of their owners or the pools that they name: the others may be needless.
func (r *round) byUnread() []*autoscaling.Reserve {
	certain := map[string]bool{}
	for _, p := range r.Pools {
		name := pool.WorkerPoolOf(p.Deployment)
		certain[ReserveName(p.Deployment.Name)] = r.unreadIn[p.Deployment.Name] || name != "" && r.unreadIn[name]
	}
	owned := func(d machine.Dedication) bool { return r.unreadOf[d.Owner] > 0 }
	rank := func(reserve *autoscaling.Reserve) int {
		if certain[reserve.Name] || slices.ContainsFunc(dedications(reserve), owned) {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(slices.Values(r.Reserves), func(a, b *autoscaling.Reserve) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
}

// poolOf returns the MachineDeployment of a Reserve; empty if it does not name exactly one.
func poolOf(reserve *autoscaling.Reserve, w Request) string {
	if w.Pool == "" && len(reserve.Spec.Pools.Names) == 1 {
		return reserve.Spec.Pools.Names[0]
	}
	return w.Pool
}

// reserveOf returns the Reserve for a MachineDeployment; nil if there is none.
func (v *View) reserveOf(name string) *autoscaling.Reserve {
	for _, r := range v.Reserves {
		if r.Name == ReserveName(name) {
			return r
		}
	}
	return nil
}

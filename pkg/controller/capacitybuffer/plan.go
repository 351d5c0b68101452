// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

const (
	// maxBuffers is how many buffers count. Namespaces take turns, each with its oldest first.
	maxBuffers = 10_000
	// maxChecks is how many shapes without a place are looked at to tell why.
	maxChecks = 200
	// lookAgain is when to look again for what no event tells: DaemonSets, and what Nodes are like.
	lookAgain = 10 * time.Minute
)

// NewPlan decides.
func NewPlan(v View) Plan {
	r := round{View: v, known: map[string]int{}}
	r.sites, r.held = v.sites()
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

// round is a decision in the making.
type round struct {
	View
	sites []site
	// held are machines of MachineDeployments about which too little is known now (law 5).
	held      map[string]int
	decisions []Decision
	// shapes of the chunks of all buffers, and known where each is. ShapeOf is that of each decision, -1 where none is known.
	shapes  []shape
	known   map[string]int
	shapeOf []int
}

// decide finds the shape and the number of chunks of each buffer.
func (r *round) decide() {
	left := newQuotas(r.Quotas)
	for i, b := range inTurns(r.Buffers) {
		d := Decision{Buffer: b.Object, Template: b.Template}
		at := -1
		if i >= maxBuffers {
			d.Problem = problem(reason.TooManyBuffers, "at most %d buffers have chunks, and namespaces take turns", maxBuffers)
		} else {
			at = r.decideOne(&d, b, left)
		}
		r.decisions, r.shapeOf = append(r.decisions, d), append(r.shapeOf, at)
	}
}

// decideOne returns the shape of the chunks of a buffer, -1 if there is none.
func (r *round) decideOne(d *Decision, b Buffer, left quotas) int {
	chunk, problem := b.shape()
	if problem == nil {
		d.Asked, problem = b.count(chunk)
	}
	if d.Problem = problem; problem != nil {
		return -1
	}
	pod := fit.Read(chunk, true)
	if pod.Unclear != "" {
		d.Problem = unclear(pod)
		return -1
	}
	d.Chunks, d.Quotas = left.take(chunk, d.Asked)
	at, known := r.known[pod.Shape()]
	if !known {
		at = len(r.shapes)
		r.known[pod.Shape()], r.shapes = at, append(r.shapes, shape{chunk: pod})
	}
	r.shapes[at].count = min(r.shapes[at].count+d.Chunks, math.MaxInt32)
	return at
}

func unclear(pod *fit.Pod) *Problem {
	return problem(reason.ShapeUnclear, "it cannot be decided where a chunk can run: %s", pod.Unclear)
}

// inTurns are buffers in the order in which they count: the oldest of each namespace, then the second of each, and so on.
func inTurns(all []Buffer) []Buffer {
	all = slices.SortedFunc(slices.Values(all), func(a, b Buffer) int {
		x, y := a.Object, b.Object
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	turn := make(map[string]int, len(all))
	seen := map[string]int{}
	for _, b := range all {
		turn[b.Object.Namespace+"/"+b.Object.Name] = seen[b.Object.Namespace]
		seen[b.Object.Namespace]++
	}
	slices.SortStableFunc(all, func(a, b Buffer) int {
		return cmp.Compare(turn[a.Object.Namespace+"/"+a.Object.Name], turn[b.Object.Namespace+"/"+b.Object.Name])
	})
	return all
}

// settle packs chunks, reports places to decisions, and returns the Reserves to change.
func (r *round) settle() []Request {
	if !slices.ContainsFunc(r.shapes, func(s shape) bool { return s.count > 0 }) {
		return r.requests(nil, nil)
	}
	target := best(r.sites, r.shapes)
	now := next(r.sites, target.machines)
	standing := target
	if !ready(r.sites, target.machines) {
		standing = there(r.sites, r.shapes, now)
	}
	r.assign(target, standing)
	return r.requests(now, r.held)
}

// assign gives places to buffers in the order in which they count.
func (r *round) assign(target, standing packing) {
	checks := maxChecks
	placed, ready := slices.Clone(target.placed), slices.Clone(standing.placed)
	for i := range r.decisions {
		d, at := &r.decisions[i], r.shapeOf[i]
		if at < 0 {
			continue
		}
		d.Placed = min(d.Chunks, placed[at])
		d.Ready = min(d.Placed, ready[at])
		placed[at], ready[at] = placed[at]-d.Placed, ready[at]-d.Ready
		for n, s := range r.sites {
			if d.Placed > 0 && target.sites[at][n] {
				d.Pools = append(d.Pools, s.Deployment.Name)
			}
		}
		if d.Placed < d.Chunks {
			d.Lack = r.lack(d, r.shapes[at].chunk, target, &checks)
		}
	}
}

// requests are the Reserves that differ from what is decided about sites and about what is held, and those that nothing asks for.
func (r *round) requests(now []int, held map[string]int) []Request {
	wanted := map[string]Request{}
	want := func(pool string, machines int) {
		if machines > 0 {
			wanted[ReserveName(pool)] = Request{Pool: pool, Machines: machines}
		}
	}
	for i, n := range now {
		want(r.sites[i].Deployment.Name, n)
	}
	for pool, n := range held {
		want(pool, n)
	}
	var all []Request
	for _, reserve := range r.Reserves {
		w, is := wanted[reserve.Name]
		delete(wanted, reserve.Name)
		if w.Reserve = reserve; !is || !sameSpec(reserve.Spec, w.Pool, w.Machines) {
			all = append(all, w)
		}
	}
	all = slices.AppendSeq(all, maps.Values(wanted))
	slices.SortFunc(all, func(a, b Request) int { return cmp.Compare(a.name(), b.name()) })
	return all
}

// reserveOf is the Reserve for a MachineDeployment, nil if there is none.
func (v *View) reserveOf(name string) *autoscaling.Reserve {
	for _, r := range v.Reserves {
		if r.Name == ReserveName(name) {
			return r
		}
	}
	return nil
}

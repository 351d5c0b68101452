// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"math"
	"time"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// steadyFor is how long room is free before it counts, at least. It counts up to twice that long.
const steadyFor = 5 * time.Minute

// Free is for how many chunks of a buffer there was free room in this period and in the one before,
// at the least (law 14). Pods that come and go do not have machines created and deleted.
type Free struct {
	Since         time.Time
	Least, Before int
}

// with adds an observation. The first one counts at once.
func (f Free) with(chunks int, now time.Time) Free {
	switch {
	case f.Since.IsZero():
		return Free{now, chunks, chunks}
	case now.Sub(f.Since) >= steadyFor:
		return Free{now, chunks, f.Least}
	}
	f.Least = min(f.Least, chunks)
	return f
}

// UsesFreeRoom reports whether a buffer uses the free room on machines that serve, if that is possible.
func UsesFreeRoom(b *v1beta1.CapacityBuffer) bool {
	return b.Annotations[v1beta1.FreeRoomAnnotation] == "true"
}

// freeRoomProblem returns why a buffer cannot use free room as it asks for; nil if it can.
func freeRoomProblem(b *v1beta1.CapacityBuffer, owner machine.Owner) *Problem {
	text, set := b.Annotations[v1beta1.FreeRoomAnnotation]
	switch {
	case set && text != "true" && text != "false":
		return problem(reason.FreeRoomInvalid, "annotation free-room: %.80q is invalid: use \"true\" or \"false\"", text)
	case text == "true" && owner != "":
		return problem(reason.FreeRoomInvalid, "annotation free-room: room on serving machines cannot be dedicated: remove free-room or dedicated")
	}
	return nil
}

// useFreeRoom gives chunks the room that is free on machines that serve (law 14), in the order in
// which buffers count, and takes them from those that need machines in reserve.
func (r *round) useFreeRoom() map[string]Free {
	asked := map[place]int{}
	for i, d := range r.decisions {
		if at := r.places[i]; at.class != nil && d.Chunks > 0 && UsesFreeRoom(d.Buffer) {
			asked[at] = min(asked[at]+d.Chunks, math.MaxInt32)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	left, free := r.packServing(asked), map[string]Free{}
	for i := range r.decisions {
		d, at := &r.decisions[i], r.places[i]
		if asked[at] == 0 || !UsesFreeRoom(d.Buffer) {
			continue
		}
		now := min(d.Chunks, left[at])
		left[at] -= now
		seen := now
		if now == d.Chunks {
			seen = math.MaxInt // there may be room for more
		}
		key := d.Buffer.Namespace + "/" + d.Buffer.Name
		f := r.Free[key].with(seen, r.Now)
		free[key] = f
		if d.Free = min(now, f.Least, f.Before); d.Free < now {
			r.again = requeue.Sooner(r.again, steadyFor)
		}
		shape := &at.class.shapes[at.shape]
		shape.count = max(0, shape.count-d.Free)
	}
	return free
}

// packServing returns how many chunks of each shape fit on the machines that serve.
func (r *round) packServing(asked map[place]int) map[place]int {
	nodes := make([]fit.Node, len(r.Serving))
	for i, s := range r.Serving {
		n := *s.Node
		n.Labels = maps.Clone(n.Labels)
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[poolLabel(s.Deployment.Name)] = ""
		if name := pool.WorkerPoolOf(s.Deployment); name != "" {
			n.Labels[poolLabel(name)] = ""
		}
		nodes[i] = fit.Node{Object: &n, Pods: s.Pods}
	}
	d := fit.Demand{Budget: packWork}
	for at := range asked {
		for i, s := range at.class.shapes { // in their order, not in that of a map
			if count := asked[place{at.class, i}]; count > 0 {
				d.Uncreated = append(d.Uncreated, fit.Uncreated{Like: s.chunk, Count: count})
			}
		}
		break // all are of the class without an owner
	}
	packing, placed := fit.Pack(fit.NewRoom(nodes), d, nil), map[place]int{}
	for at := range asked {
		for _, n := range packing.UncreatedLike[at.class.shapes[at.shape].chunk] {
			placed[at] += n
		}
	}
	return placed
}

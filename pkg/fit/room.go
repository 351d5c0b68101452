// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Node is a node with the pods that run there, or will soon.
type Node struct {
	Object *corev1.Node
	// Without are the keys of taints to ignore; for a closed node, once it is opened.
	Without []string
	Closed  bool
	Pods    []*Pod
}

// Room contains what nodes have left. It must not be used concurrently.
type Room struct {
	slots  []*slot
	number map[string]int
	// kinds are the shapes of pods that were asked about; tallies contains what is counted for
	// them, by their number.
	kinds   map[string]int
	tallies []*tally
	// ruled are the tallies of pods with rules about other pods. upkeep is how many counters of
	// theirs a change of one pod affects.
	ruled  []*tally
	upkeep int
	// jealous is how many pods affect others by their own rules.
	jealous int
	// allocations are the devices that pods would get.
	allocations map[request]Allocation
	// work grows by about one for each comparison.
	work int
}

// slot is one node of a room.
type slot struct {
	node   *corev1.Node
	closed bool
	// taints are those that remain when it is open.
	taints []corev1.Taint
	free   stock
	pods   []*Pod
	// jealous are its pods with anti-affinity.
	jealous []*Pod
	ports   []port
	grants  grants
	// at contains the node's own obstacle for pods, open and closed, by the number of their shape,
	// as an index of suitabilities.
	at [2][]uint8
}

// suitabilities are the obstacles that a node itself can be; the first one stands for a shape that
// has not been asked about.
var suitabilities = []Obstacle{Undecided, Fits, Elsewhere, Tainted, VolumeElsewhere, AllocatedElsewhere}

// NewRoom returns a room with these nodes, which must have different names.
func NewRoom(nodes []Node) *Room {
	r := &Room{number: make(map[string]int, len(nodes)), kinds: map[string]int{}, allocations: map[request]Allocation{}}
	slots := make([]slot, len(nodes))
	for i, n := range nodes {
		r.number[n.Object.Name] = i
		s := &slots[i]
		*s = slot{
			node: n.Object, closed: n.Closed, taints: lasting(taintsOf(n.Object), n.Without),
			free: stockOf(n.Object.Status.Allocatable), pods: make([]*Pod, 0, len(n.Pods)+4),
		}
		for _, p := range n.Pods {
			s.addPod(p)
		}
		r.jealous += len(s.jealous)
		r.slots = append(r.slots, s)
		for _, p := range n.Pods {
			r.take(p, i, MaxWork-r.work)
		}
	}
	return r
}

func (s *slot) addPod(p *Pod) {
	s.free.reserve(p.needs, 1)
	s.pods = append(s.pods, p)
	s.ports = append(s.ports, p.ports...)
	if p.isJealous() {
		s.jealous = append(s.jealous, p)
	}
}

// isJealous reports whether a pod affects others by its own rules, or may do so.
func (p *Pod) isJealous() bool { return len(p.apart) > 0 || p.unread }

// Ask returns what keeps a pod from a node. For a node that is not in the room, the answer is
// Elsewhere.
func (r *Room) Ask(p *Pod, node string) Obstacle {
	i, ok := r.number[node]
	if !ok {
		return Elsewhere
	}
	return r.obstacleAt(p, i)
}

// obstacleAt makes the cheapest checks first. If there is more than one obstacle, the result may
// depend on the order.
func (r *Room) obstacleAt(p *Pod, i int) Obstacle {
	if p.Unclear != "" {
		return p.unclearOn(r.slots[i].node)
	}
	o, _ := r.obstacleWithin(p, i, math.MaxInt)
	return o
}

// obstacleWithin is obstacleAt for a pod that is clear, but gives up before a part of it that costs
// more than a limit.
func (r *Room) obstacleWithin(p *Pod, i, limit int) (o Obstacle, ok bool) {
	s := r.slots[i]
	r.work++
	if !s.free.fits(p.needs) {
		return Full, true
	}
	kind := r.shapeNumber(p)
	if o, ok = r.nodeObstacle(s, p, kind, limit); o != Fits {
		return o, ok
	}
	r.work += len(p.ports) * len(s.ports)
	if clashes(p.ports, s.ports) {
		return PortTaken, true
	}
	work := p.ruleCount()
	if r.tallies[kind] == nil {
		work += r.tallyWork(p)
	}
	if work > limit {
		return Undecided, false
	}
	r.work += work
	o = r.tallyFor(p, kind).obstacle(p, i, s)
	if o != Fits || p.claims == nil {
		return o, true
	}
	a := r.allocate(p, i, limit)
	return a.Obstacle, !a.Unfinished
}

// shapeNumber returns the number of the shape of a pod.
func (r *Room) shapeNumber(p *Pod) int {
	kind, known := r.kinds[p.Shape()]
	if !known {
		kind = len(r.tallies)
		r.kinds[p.Shape()] = kind
		r.tallies = append(r.tallies, nil)
	}
	return kind
}

// nodeObstacle returns the node's own obstacle for pods of a shape, within the limit.
func (r *Room) nodeObstacle(s *slot, p *Pod, kind, limit int) (o Obstacle, ok bool) {
	known, taints := &s.at[0], s.taints
	if s.closed {
		known, taints = &s.at[1], taintsOf(s.node)
	}
	if kind >= len(*known) {
		*known = append(*known, make([]uint8, kind+1-len(*known))...)
	}
	if (*known)[kind] == 0 {
		if p.cost > limit {
			return Undecided, false
		}
		r.work += p.cost
		(*known)[kind] = uint8(slices.Index(suitabilities, p.obstacleOn(s.node, taints)))
	}
	return suitabilities[(*known)[kind]], true
}

// Put adds a pod to a node of the room, whether it fits or not.
func (r *Room) Put(p *Pod, node string) {
	if i, ok := r.number[node]; ok {
		r.addPod(p, i)
	}
}

// Fill returns those of the pods that there is room for on a node, each beside the ones before it.
func Fill(n Node, pods []*Pod) (all []*Pod) {
	n.Closed = false
	room := NewRoom([]Node{n})
	for _, p := range pods {
		if room.Ask(p, n.Object.Name) == Fits {
			room.Put(p, n.Object.Name)
			all = append(all, p)
		}
	}
	return all
}

// Remove undoes the last Put of a pod on a node.
func (r *Room) Remove(p *Pod, node string) {
	if i, ok := r.number[node]; ok {
		r.remove(p, i)
	}
}

func (r *Room) addPod(p *Pod, i int) {
	r.slots[i].addPod(p)
	r.take(p, i, math.MaxInt)
	r.recount(p, i, 1)
}

// recount updates the tallies that a pod matters to. To pods without rules, only jealous pods do.
func (r *Room) recount(p *Pod, i, by int) {
	r.work += r.recountWork(p)
	tallies := r.ruled
	if p.isJealous() {
		r.jealous += by
		tallies = r.tallies
	}
	for _, t := range tallies {
		if t != nil {
			t.update(p, i, r.slots[i], by)
		}
	}
}

// recountWork returns the cost of adding or removing a pod.
func (r *Room) recountWork(p *Pod) int {
	work := 1 + r.upkeep
	if p.isJealous() {
		work += (1 + len(p.apart)) * len(r.tallies)
	}
	return work
}

func (r *Room) remove(p *Pod, i int) {
	s := r.slots[i]
	at := lastIndex(s.pods, p)
	if at < 0 {
		return
	}
	s.pods = slices.Delete(s.pods, at, at+1)
	if at := lastIndex(s.jealous, p); at >= 0 {
		s.jealous = slices.Delete(s.jealous, at, at+1)
	}
	s.free.reserve(p.needs, -1)
	s.grants.remove(p)
	if len(p.ports) > 0 {
		s.ports, r.work = nil, r.work+len(s.ports)
		for _, q := range s.pods {
			s.ports = append(s.ports, q.ports...)
		}
	}
	r.recount(p, i, -1)
}

func lastIndex(pods []*Pod, p *Pod) int {
	for i := len(pods) - 1; i >= 0; i-- {
		if pods[i] == p {
			return i
		}
	}
	return -1
}

// tallyFor returns the counts for the shape of a pod. It makes them if they do not exist.
func (r *Room) tallyFor(p *Pod, kind int) *tally {
	if r.tallies[kind] == nil {
		r.tallies[kind] = newTally(p, r.slotsToCount(p))
		if p.ruleCount() > 0 {
			r.ruled = append(r.ruled, r.tallies[kind])
			r.upkeep += 1 + p.ruleCount()
		}
	}
	return r.tallies[kind]
}

// slotsToCount returns the slots whose pods may matter to a pod.
func (r *Room) slotsToCount(p *Pod) []*slot {
	if p.ruleCount() == 0 && r.jealous == 0 {
		return nil
	}
	return r.slots
}

// tallyWork returns the cost of making a tally.
func (r *Room) tallyWork(p *Pod) int {
	slots := r.slotsToCount(p)
	work := 1 + len(slots)*(1+4*len(p.spread))
	for _, s := range slots {
		for _, other := range s.jealous {
			work += 1 + len(other.apart)
		}
		if p.ruleCount() > 0 {
			work += len(s.pods) * (1 + p.ruleCount()/4)
		}
	}
	return work
}

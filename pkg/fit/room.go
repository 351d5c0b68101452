// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Node is a node with the pods that are there, or that are about to be.
type Node struct {
	Object *corev1.Node
	// Without are the keys of taints that count as gone; of a node that is closed, once it is opened.
	Without []string
	Closed  bool
	Pods    []*Pod
}

// Room is what nodes have left. It is for one goroutine.
type Room struct {
	slots  []*slot
	number map[string]int
	// tallies are by shape, of the pods that were asked about.
	tallies map[string]*tally
}

// slot is one node of a room.
type slot struct {
	node   *corev1.Node
	closed bool
	// taints are those that last when it is open.
	taints []corev1.Taint
	free   stock
	pods   []*Pod
	// jealous are those of the pods that keep others away.
	jealous []*Pod
	ports   []port
	// at has what the node itself is to pods of a shape, open and closed.
	at [2]map[string]Obstacle
}

// NewRoom returns the room on some nodes, which must have different names.
func NewRoom(nodes []Node) *Room {
	r := &Room{number: make(map[string]int, len(nodes)), tallies: map[string]*tally{}}
	for _, n := range nodes {
		r.number[n.Object.Name] = len(r.slots)
		s := &slot{
			node: n.Object, closed: n.Closed, taints: lasting(taintsOf(n.Object), n.Without),
			free: stockOf(n.Object.Status.Allocatable), pods: make([]*Pod, 0, len(n.Pods)+4),
		}
		for _, p := range n.Pods {
			s.add(p)
		}
		r.slots = append(r.slots, s)
	}
	return r
}

func (s *slot) add(p *Pod) {
	s.free.take(p.needs, 1)
	s.pods = append(s.pods, p)
	s.ports = append(s.ports, p.ports...)
	if len(p.apart) > 0 {
		s.jealous = append(s.jealous, p)
	}
}

// Ask says what keeps a pod from a node. A node that is not in the room is elsewhere.
func (r *Room) Ask(p *Pod, node string) Obstacle {
	i, ok := r.number[node]
	if !ok {
		return Elsewhere
	}
	return r.ask(p, i)
}

// ask looks at the cheapest first; where there is more than one obstacle, which is named may depend on that.
func (r *Room) ask(p *Pod, i int) Obstacle {
	s := r.slots[i]
	if p.Unclear != "" {
		return Undecided
	}
	if !s.free.holds(p.needs) {
		return Full
	}
	if o := s.is(p); o != Fits {
		return o
	}
	if len(p.ports) > 0 && clashes(p.ports, s.ports) {
		return PortTaken
	}
	return r.tally(p).ask(p, i, s)
}

// is what the node itself is to pods of the shape of this one.
func (s *slot) is(p *Pod) Obstacle {
	shape, known, taints := p.Shape(), &s.at[0], s.taints
	if s.closed {
		known, taints = &s.at[1], taintsOf(s.node)
	}
	o, ok := (*known)[shape]
	if !ok {
		o = p.at(s.node, taints)
		if *known == nil {
			*known = map[string]Obstacle{}
		}
		(*known)[shape] = o
	}
	return o
}

// Put has a pod run on a node of the room, whether it fits or not.
func (r *Room) Put(p *Pod, node string) {
	if i, ok := r.number[node]; ok {
		r.put(p, i)
	}
}

// Remove takes back the last Put of a pod on a node.
func (r *Room) Remove(p *Pod, node string) {
	if i, ok := r.number[node]; ok {
		r.remove(p, i)
	}
}

func (r *Room) put(p *Pod, i int) {
	r.slots[i].add(p)
	for _, t := range r.tallies {
		t.count(p, i, r.slots[i], 1)
	}
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
	s.free.take(p.needs, -1)
	if len(p.ports) > 0 {
		s.ports = nil
		for _, q := range s.pods {
			s.ports = append(s.ports, q.ports...)
		}
	}
	for _, t := range r.tallies {
		t.count(p, i, s, -1)
	}
}

func lastIndex(pods []*Pod, p *Pod) int {
	for i := len(pods) - 1; i >= 0; i-- {
		if pods[i] == p {
			return i
		}
	}
	return -1
}

// tally returns what is counted for the shape of a pod, which is begun if need be.
func (r *Room) tally(p *Pod) *tally {
	shape := p.Shape()
	t, ok := r.tallies[shape]
	if !ok {
		t = newTally(p, r.slots)
		r.tallies[shape] = t
	}
	return t
}

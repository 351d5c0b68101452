// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"math/bits"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

const (
	// maxShapes is how many sizes of pods are told apart. If there are more, requests are rounded up
	// to fewer binary digits, as little as necessary.
	maxShapes = 256
	// allDigits are those of each request, and mostDigits those that are tried first if these are
	// too many.
	allDigits, mostDigits = 64, 8
)

// size is what a pod requests.
type size struct{ cpu, memory int64 }

// room is what a machine has left.
type room struct{ cpu, memory, pods int64 }

func roomOf(list corev1.ResourceList) room {
	return room{cpu: list.Cpu().MilliValue(), memory: list.Memory().Value(), pods: list.Pods().Value()}
}

// countFitting returns how many pods of a size fit, at most the given number.
func (r room) countFitting(s size, most int) int {
	n := min(int64(most), r.pods)
	if s.cpu > 0 {
		n = min(n, r.cpu/s.cpu)
	}
	if s.memory > 0 {
		n = min(n, r.memory/s.memory)
	}
	return int(max(0, n))
}

func (r *room) take(s size, n int) {
	r.cpu -= s.cpu * int64(n)
	r.memory -= s.memory * int64(n)
	r.pods -= int64(n)
}

// emptiness is larger the more of a machine is free.
func (r room) emptiness(of room) float64 {
	return float64(r.cpu)/float64(of.cpu) + float64(r.memory)/float64(of.memory)
}

// shape contains the pods of one size.
type shape struct {
	size
	like *fit.Pod
	// queue are those that wait, the oldest first, and waiting is their number.
	queue   []waiting
	waiting int
	// fresh reports whether some of them have not been tried on all machines.
	fresh bool
}

// waiting are equal pods that were created at the same time.
type waiting struct {
	created time.Time
	lasts   time.Duration
	count   int
}

// shapes are all sizes of pods.
type shapes struct {
	all []*shape
	of  map[size]*shape
	// whole is an empty machine. digits is how many binary digits of requests count.
	whole  room
	digits int
	// unseen reports whether the autoscaler has not seen what waits.
	unseen bool
}

// newShapes finds how exactly the sizes of the pods of a trace can be told apart.
func newShapes(trace demand.Trace, setup Setup) shapes {
	s := shapes{of: map[size]*shape{}, whole: roomOf(setup.Machine), digits: allDigits}
	for s.digits > 1 && s.areTooMany(trace) {
		s.digits = min(s.digits-1, mostDigits)
	}
	return s
}

// areTooMany reports whether a trace has too many sizes of pods.
func (s *shapes) areTooMany(trace demand.Trace) bool {
	sizes := map[size]bool{}
	for _, p := range trace {
		if s.fits(p) {
			sizes[s.sizeOf(p)] = true
		}
		if len(sizes) > maxShapes {
			return true
		}
	}
	return false
}

// fits reports whether an empty machine can hold a pod.
func (s *shapes) fits(p demand.Pods) bool {
	return s.whole.countFitting(size{p.CPU, p.Memory}, 1) > 0
}

// sizeOf returns the size that a pod counts with.
func (s *shapes) sizeOf(p demand.Pods) size {
	return size{roundUp(p.CPU, s.digits, s.whole.cpu), roundUp(p.Memory, s.digits, s.whole.memory)}
}

// shapeOf returns the shape of a pod.
func (s *shapes) shapeOf(p demand.Pods) *shape {
	key := s.sizeOf(p)
	if s.of[key] == nil {
		s.of[key] = &shape{size: key, like: podOf(key)}
		s.all = append(s.all, s.of[key])
	}
	return s.of[key]
}

// roundUp rounds a number up to some binary digits, but not to more than a machine has if it has n.
func roundUp(n int64, digits int, most int64) int64 {
	surplus := bits.Len64(uint64(n)) - digits
	if surplus <= 0 || n > most {
		return n
	}
	unit := int64(1) << surplus
	return min((n+unit-1)/unit*unit, most)
}

func podOf(s size) *fit.Pod {
	return fit.Read(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demand"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(s.cpu, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(s.memory, resource.BinarySI),
		}},
	}}}}, true)
}

// waiting returns how many pods wait.
func (s *shapes) waiting() int {
	n := 0
	for _, shape := range s.all {
		n += shape.waiting
	}
	return n
}

// oldest returns the shapes with pods that wait, by who waits longest.
func (s *shapes) oldest() []*shape {
	var queued []*shape
	for _, shape := range s.all {
		if shape.waiting > 0 {
			queued = append(queued, shape)
		}
	}
	slices.SortStableFunc(queued, func(a, b *shape) int { return a.queue[0].created.Compare(b.queue[0].created) })
	return queued
}

// arrive lets pods wait.
func (s *simulation) arrive(p demand.Pods) {
	if !s.shapes.fits(p) {
		s.outcome.TooLarge += p.Count
		return
	}
	shape := s.shapes.shapeOf(p)
	// Where others of the same size wait already, there is no room.
	shape.fresh = shape.fresh || shape.waiting == 0
	shape.queue = append(shape.queue, waiting{p.Created, p.Lasts, p.Count})
	shape.waiting += p.Count
	s.shapes.unseen = true
}

// bindPods lets the scheduler bind pods to machines that have room for them.
func (s *simulation) bindPods() {
	for _, m := range s.freed {
		s.fillMachine(m)
		s.shapes.unseen = true // others may have taken what was meant for those that still wait
	}
	s.freed = s.freed[:0]
	for _, shape := range s.shapes.oldest() {
		if !shape.fresh {
			continue
		}
		shape.fresh = false
		for shape.waiting > 0 {
			m := s.fullest(shape)
			if m == nil {
				break
			}
			s.start(shape, m)
		}
	}
}

// fillMachine binds waiting pods to a machine, those first that have waited longest.
func (s *simulation) fillMachine(m *machine) {
	for bound := m.open; bound; {
		bound = false
		for _, shape := range s.shapes.oldest() {
			if m.room.countFitting(shape.size, 1) > 0 {
				s.start(shape, m)
				bound = true
				break
			}
		}
	}
}

// fullest returns the machine with the least room that is enough for a pod, nil if there is none.
func (s *simulation) fullest(shape *shape) *machine {
	var best *machine
	whole := s.shapes.whole
	for _, m := range s.machines {
		if m.open && m.room.countFitting(shape.size, 1) > 0 && (best == nil || m.room.emptiness(whole) < best.room.emptiness(whole)) {
			best = m
		}
	}
	return best
}

// start binds as many as possible of the pods at the head of a queue to a machine.
func (s *simulation) start(shape *shape, m *machine) {
	head := &shape.queue[0]
	n := m.room.countFitting(shape.size, head.count)
	s.waits[s.now.Sub(head.created)] += n
	if m.ready.After(head.created) {
		s.outcome.Late += n
	}
	s.occupy(shape.size, m, n, head.lasts)
	shape.waiting -= n
	if head.count -= n; head.count == 0 {
		shape.queue = shape.queue[1:]
	}
}

// occupy lets pods run on a machine.
func (s *simulation) occupy(of size, m *machine, n int, lasts time.Duration) {
	m.room.take(of, n)
	m.Pods += n
	if lasts == 0 {
		return
	}
	s.events.plan(s.now.Add(lasts), func() {
		m.room.take(of, -n)
		if m.Pods -= n; m.Pods == 0 {
			s.becameIdle(m)
		}
		s.freed = append(s.freed, m)
	})
}

// startEarly lets pods run that were created before the beginning, and still run then.
func (s *simulation) startEarly(p demand.Pods) {
	left := time.Duration(0)
	if p.Lasts > 0 {
		if left = p.Created.Add(p.Lasts).Sub(s.From); left <= 0 {
			return
		}
	}
	shape := s.shapes.shapeOf(p)
	for n := p.Count; n > 0; {
		m := s.fullest(shape)
		if m == nil {
			if len(s.machines) >= s.max() || s.shapes.whole.countFitting(shape.size, 1) == 0 {
				return
			}
			m = s.addReady(false)
		}
		started := m.room.countFitting(shape.size, n)
		s.occupy(shape.size, m, started, left)
		n -= started
	}
}

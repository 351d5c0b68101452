// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"cmp"
	"container/heap"
	"time"
)

// event happens at a time.
type event struct {
	at time.Time
	// number decides between events of the same time: the one that was planned first.
	number int
	happen func()
}

// events are sorted by time.
type events struct {
	heap    eventHeap
	planned int
}

func (e *events) plan(at time.Time, happen func()) {
	e.planned++
	heap.Push(&e.heap, event{at, e.planned, happen})
}

// next returns the time of the next event.
func (e *events) next() (time.Time, bool) {
	if len(e.heap) == 0 {
		return time.Time{}, false
	}
	return e.heap[0].at, true
}

// happen lets all events happen that are due.
func (e *events) happen(now time.Time) {
	for len(e.heap) > 0 && !e.heap[0].at.After(now) {
		heap.Pop(&e.heap).(event).happen()
	}
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].number, h[j].number)) < 0
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

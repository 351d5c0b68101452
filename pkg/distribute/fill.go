// SPDX-License-Identifier: Apache-2.0

package distribute

// fillTier adds n replicas to the lanes of one tier, each between its from and its to. It returns
// the replicas that they could not take, and the largest distance of a lane from its exact share,
// in replicas.
//
// Danger: n and the lanes' from must add up to at most the largest int64. Every call in this
// package ensures that: no tier gets more than the total or the sum of the minima, whichever is
// larger.
func fillTier(lanes []*lane, n int64) (left int64, gap float64) {
	open := make([]*lane, 0, len(lanes))
	left = n
	for _, l := range lanes {
		if l.weight > 0 && l.from < l.to {
			open = append(open, l)
			left -= min(left, l.to-l.from)
		}
	}
	switch {
	case n == 0:
		return 0, 0
	case left > 0:
		for _, l := range open {
			l.at = l.to
		}
		return left, 0
	}
	water := findLevel(open, n)
	settle(open, n-water.raiseLanes(open))
	for _, l := range open {
		gap = max(gap, water.distance(l))
	}
	return 0, gap
}

// settle moves single units until n more are placed, or -n fewer. The lanes must contain exactly a
// front part of the queue, as level leaves them, and still do afterwards.
func settle(lanes []*lane, n int64) {
	if n > 0 {
		add := crowd{step: 1, first: func(a, b *lane) bool { return compareUnits(a, a.at+1, b, b.at+1) < 0 }}
		add.moveTo(lanes, n)
	}
	if n < 0 {
		remove := crowd{step: -1, first: func(a, b *lane) bool { return compareUnits(a, a.at, b, b.at) > 0 }}
		remove.moveTo(lanes, -n)
	}
}

// crowd is a binary heap of the lanes that can still move by step. The first to move is on top.
type crowd struct {
	lanes []*lane
	step  int64
	first func(a, b *lane) bool
}

func (c *crowd) moveTo(lanes []*lane, n int64) {
	c.lanes = make([]*lane, 0, len(lanes))
	for _, l := range lanes {
		if c.hasRoom(l) {
			c.lanes = append(c.lanes, l)
		}
	}
	for i := len(c.lanes)/2 - 1; i >= 0; i-- {
		c.siftDown(i)
	}
	for ; n > 0; n-- {
		top := c.lanes[0]
		top.at += c.step
		if last := len(c.lanes) - 1; !c.hasRoom(top) {
			c.lanes[0], c.lanes = c.lanes[last], c.lanes[:last]
		}
		c.siftDown(0)
	}
}

func (c *crowd) hasRoom(l *lane) bool {
	if c.step > 0 {
		return l.at < l.to
	}
	return l.at > l.from
}

// siftDown moves the lane at i to its place in the heap.
func (c *crowd) siftDown(i int) {
	for {
		child := 2*i + 1
		if child >= len(c.lanes) {
			return
		}
		if right := child + 1; right < len(c.lanes) && c.first(c.lanes[right], c.lanes[child]) {
			child = right
		}
		if !c.first(c.lanes[child], c.lanes[i]) {
			return
		}
		c.lanes[i], c.lanes[child] = c.lanes[child], c.lanes[i]
		i = child
	}
}

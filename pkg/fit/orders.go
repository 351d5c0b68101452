// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// release opens machines in several orders and keeps the best result: the most pods of high rank
// placed, then the fewest machines. Optimal packing is hard; the orders are the meanings
// that "decreasing" can have in first-fit-decreasing.
func (k *packer) release() {
	settled := len(k.steps)
	least := k.leastMachines()
	var best []put
	var score []int
	for _, way := range k.orders() {
		slices.SortStableFunc(k.shapes, way.order)
		k.aligned = way.aligned
		k.greedy()
		if s := k.costs(); best == nil || slices.Compare(s, score) < 0 {
			best, score = slices.Clone(k.steps[settled:]), s
		}
		done := !k.waiting() && sumCounts(k.opened) <= least
		k.undoTo(settled)
		if done || len(best) == 0 || k.budget.isLow() {
			break
		}
	}
	for _, step := range best {
		k.repeatStep(step)
	}
}

// way is one order to try.
type way struct {
	order   func(a, b *shape) int
	aligned bool
}

// orders returns the orders to try. Those that respect ranks come first: the budget may allow no
// others.
func (k *packer) orders() []way {
	by := func(amount func(n needs) int64) func(a, b *shape) int {
		return func(a, b *shape) int {
			return cmp.Or(cmp.Compare(amount(b.like.needs), amount(a.like.needs)), bySize(a, b))
		}
	}
	choosy := func(a, b *shape) int { return cmp.Or(cmp.Compare(a.homes, b.homes), bySize(a, b)) }
	var ways []way
	if slices.ContainsFunc(k.shapes, func(s *shape) bool { return compareRanks(s, k.shapes[0]) != 0 }) {
		ways = []way{{order: byRank(bySize)}, {order: byRank(choosy)}}
	}
	return append(ways,
		way{order: bySize}, way{order: choosy}, way{order: bySize, aligned: true},
		way{order: by(func(n needs) int64 { return n.CPU })}, way{order: by(func(n needs) int64 { return n.Memory })})
}

// costs is smaller for a better packing: it contains the pods left over by falling rank, then the
// number of opened machines.
func (k *packer) costs() []int {
	var score []int
	ranked := slices.SortedFunc(slices.Values(k.shapes), compareRanks)
	for i, s := range ranked {
		if i == 0 || compareRanks(s, ranked[i-1]) != 0 {
			score = append(score, 0)
		}
		score[len(score)-1] += s.podCount() - s.placed
	}
	return append(score, sumCounts(k.opened))
}

// repeatStep repeats a step that was undone.
func (k *packer) repeatStep(step put) {
	if step.shape == nil {
		k.openSlot(step)
		return
	}
	k.steps = append(k.steps, step)
	k.room.addPod(step.shape.nextPod(), step.slot)
	step.shape.placed++
}

// measure determines the size of each shape, and how many groups could hold one, by the next
// machine of each group.
func (k *packer) measure() {
	largest := k.largest()
	for _, s := range k.shapes {
		s.size = largest.largestPart(s.like.needs)
		for g := range k.groups {
			if !k.canOpen(g) {
				continue
			}
			i := k.room.number[k.groups[g].Nodes[0]]
			k.room.slots[i].closed = false
			if k.nextFits(s, i) {
				s.homes++
			}
			k.room.slots[i].closed = true
		}
	}
}

// largest returns, for each resource, the most that any machine has.
func (k *packer) largest() stock {
	most := stock{pods: 1, other: map[corev1.ResourceName]int64{}}
	for g := range k.groups {
		if !k.canOpen(g) {
			continue
		}
		free := &k.room.slots[k.room.number[k.groups[g].Nodes[0]]].free
		most.cpu, most.memory, most.pods = max(most.cpu, free.cpu), max(most.memory, free.memory), max(most.pods, free.pods)
		for name, amount := range free.other {
			most.other[name] = max(most.other[name], amount)
		}
	}
	return most
}

// leastMachines returns how many machines the waiting pods need at least, by CPU, memory and number
// of pods.
func (k *packer) leastMachines() int {
	var cpu, memory, pods float64
	for _, s := range k.shapes {
		n := float64(s.podCount() - s.placed)
		cpu, memory, pods = cpu+n*float64(s.like.needs.CPU), memory+n*float64(s.like.needs.Memory), pods+n
	}
	largest := k.largest()
	return max(quotient(cpu, largest.cpu), quotient(memory, largest.memory), quotient(pods, largest.pods))
}

// quotient divides and rounds up. The result is at most the largest int32.
func quotient(amount float64, each int64) int {
	if each <= 0 {
		return 0
	}
	return int(min(math.Ceil(amount/float64(each)), math.MaxInt32))
}

func sumCounts(counts []int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

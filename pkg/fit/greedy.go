// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// greedy opens machines until no remaining pod fits any of them.
func (k *packer) greedy() {
	for k.waiting() {
		k.tryWaiting()
		g := k.bestGroup()
		if g < 0 {
			return
		}
		k.openMachine(g)
		k.resettle()
	}
}

// tryWaiting has the next machine tried with the shapes that wait.
func (k *packer) tryWaiting() {
	k.trying = k.trying[:0]
	for _, s := range k.shapes {
		if k.isWaiting(s) {
			k.trying = append(k.trying, s)
		}
	}
}

// offer is what the next machine of a group would hold.
type offer struct {
	group        int
	amount, used float64
}

// sameAmount is the difference of amounts that come from adding the same parts in another order.
const sameAmount = 1e-9

// bestGroup returns the group whose next machine holds most, or -1 if none holds anything. Among
// equals, it prefers the one whose machine is better used, then the one with more machines left. But
// of those that are similar to this one and hold as much, it returns the smallest.
func (k *packer) bestGroup() int {
	offers := k.offers()
	if len(offers) == 0 {
		return -1
	}
	best := slices.MaxFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.amount, b.amount), cmp.Compare(a.used, b.used), cmp.Compare(k.machinesLeft(a.group), k.machinesLeft(b.group)))
	})
	if k.groups[best.group].Set == "" {
		return best.group
	}
	offers = slices.DeleteFunc(offers, func(o offer) bool {
		return k.groups[o.group].Set != k.groups[best.group].Set || best.amount-o.amount > sameAmount
	})
	return slices.MinFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(k.size(a.group), k.size(b.group)), cmp.Compare(k.machinesLeft(b.group), k.machinesLeft(a.group)))
	}).group
}

// offers returns the groups whose next machine holds something, in their order.
func (k *packer) offers() []offer {
	var all []offer
	for g := range k.groups {
		if !k.canOpen(g) {
			continue
		}
		before := len(k.steps)
		amount, used := k.openMachine(g)
		k.undoTo(before)
		if amount > 0 {
			all = append(all, offer{g, amount, used})
		}
	}
	return all
}

// size returns how many machines a group has, with those that are open.
func (k *packer) size(g int) int { return k.groups[g].Size + k.opened[g] }

// openMachine opens the next machine of a group and fills it. It returns how much it holds, in
// parts of the largest machine, and the part of it that is used.
func (k *packer) openMachine(g int) (amount, used float64) {
	i := k.room.number[k.groups[g].Nodes[k.opened[g]]]
	slot := k.room.slots[i]
	k.openSlot(put{slot: i, group: g})
	had := slot.free.clone()
	before := len(k.steps)
	if k.aligned {
		k.fillByMatch(i)
	}
	for again := true; again; {
		again = false
		for _, s := range k.trying {
			again = k.fillNode(s, i) > 0 && s.fickle || again
		}
	}
	for _, step := range k.steps[before:] {
		amount += step.shape.size
	}
	return amount, had.usedSince(slot.free)
}

// fillByMatch fills a node one pod at a time, each time with the shape that matches best what is
// left there.
func (k *packer) fillByMatch(i int) {
	slot := k.room.slots[i]
	had := slot.free.clone()
	for {
		var best *shape
		most := -1.0
		for _, s := range k.trying {
			if match := had.similarity(slot.free, s.like.needs); match > most && k.nextFits(s, i) {
				best, most = s, match
			}
		}
		if best == nil {
			return
		}
		k.placeNext(best, i)
	}
}

// canOpen reports whether a group has another machine to open.
func (k *packer) canOpen(g int) bool {
	if k.machinesLeft(g) <= 0 {
		return false
	}
	i, ok := k.room.number[k.groups[g].Nodes[k.opened[g]]]
	return ok && k.room.slots[i].closed
}

func (k *packer) machinesLeft(g int) int {
	return min(len(k.groups[g].Nodes), k.groups[g].Limit) - k.opened[g]
}

// sortSlots finds out which slots are open, and which shapes no closed node takes. Most pods do not
// tolerate the taint of a reserve: to ask each closed node for each shape would use up the budget
// before a machine is opened.
func (k *packer) sortSlots() {
	for i, s := range k.room.slots {
		k.all = append(k.all, i)
		if !s.closed {
			k.open = append(k.open, i)
		}
	}
	common := k.room.closedTaints()
	for _, s := range k.shapes {
		s.shutOut = repels(common, s.like.Object)
	}
}

// closedTaints returns the taints that all closed nodes have.
func (r *Room) closedTaints() (common []corev1.Taint) {
	first := true
	for _, s := range r.slots {
		switch taints := taintsOf(s.node); {
		case !s.closed:
		case first:
			common, first = slices.Clone(taints), false
		default:
			common = slices.DeleteFunc(common, func(t corev1.Taint) bool {
				return !slices.ContainsFunc(taints, func(o corev1.Taint) bool { return SameTaint(t, o) })
			})
		}
	}
	return common
}

// SameTaint reports whether two taints keep the same pods away.
func SameTaint(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }

// openSlot opens the machine of a step.
func (k *packer) openSlot(step put) {
	k.room.slots[step.slot].closed = false
	k.opened[step.group]++
	k.steps = append(k.steps, step)
	at, _ := slices.BinarySearch(k.open, step.slot)
	k.open = slices.Insert(k.open, at, step.slot)
}

// closeSlot undoes openSlot, but for the list of steps.
func (k *packer) closeSlot(step put) {
	k.room.slots[step.slot].closed = true
	k.opened[step.group]--
	at, _ := slices.BinarySearch(k.open, step.slot)
	k.open = slices.Delete(k.open, at, at+1)
}

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

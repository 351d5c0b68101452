// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Groups partitions the templates into groups of similar ones. It returns their names, sorted
// within each group, and the groups sorted by their first name. A template that is similar to no
// other forms a group by itself.
func Groups(templates []Template, o Options) [][]string {
	var parts [][]int
	if len(o.BalancingLabels) > 0 {
		parts = byBalancingLabels(templates, o)
	} else {
		parts = joinPools(templates, partition(Completed(templates, o), o), o)
	}
	groups := make([][]string, len(parts))
	for i, part := range parts {
		groups[i] = make([]string, len(part))
		for j, member := range part {
			groups[i][j] = templates[member].Name
		}
		slices.Sort(groups[i])
	}
	slices.SortFunc(groups, slices.Compare)
	return groups
}

// partition applies the pair rule without pools. Members of the parts are indices.
func partition(templates []Template, o Options) [][]int {
	k := keys{options: o}
	found := map[string]int{}
	var buckets [][]point
	for i, t := range templates {
		key, at := k.exactKey(t)
		bucket, known := found[string(key)]
		if !known {
			bucket = len(buckets)
			found[string(key)] = bucket
			buckets = append(buckets, nil)
		}
		buckets[bucket] = append(buckets[bucket], point{member: i, at: at})
	}
	var parts [][]int
	for _, bucket := range buckets {
		parts = append(parts, o.spaceOf(bucket).divide(bucket)...)
	}
	return parts
}

func byBalancingLabels(templates []Template, o Options) [][]int {
	k := keys{options: o}
	found := map[string]int{}
	var parts [][]int
	for i, t := range templates {
		key, ok := k.balancing(t)
		part, known := found[string(key)]
		if known {
			parts[part] = append(parts[part], i)
			continue
		}
		if ok {
			found[string(key)] = len(parts)
		}
		parts = append(parts, []int{i})
	}
	return parts
}

// joinPools joins two parts if a member of one and a member of the other are in the same pool and
// have the same taints. All members of a part have the same taints.
func joinPools(templates []Template, parts [][]int, o Options) [][]int {
	if len(o.PoolLabels) == 0 {
		return parts
	}
	type pool struct{ label, value, taints string }
	first := map[pool]int{}
	joined := newForest(len(parts))
	for i, part := range parts {
		for _, member := range part {
			taints := strings.Join(repelling(templates[member].Taints), ",")
			for _, label := range o.PoolLabels {
				p := pool{label, templates[member].Labels[label], taints}
				if p.value == "" {
					continue
				}
				if other, known := first[p]; known {
					joined.union(i, other)
				}
				first[p] = i
			}
		}
	}
	var all [][]int
	for _, tree := range joined.sets() {
		var members []int
		for _, part := range tree {
			members = append(members, parts[part]...)
		}
		all = append(all, members)
	}
	return all
}

// point is a template among those with the same key. It has one coordinate for each amount that a
// ratio applies to.
type point struct {
	member int
	at     []float64
}

// space contains the ratio of each coordinate.
type space []float64

// spaceOf returns the space of points with the same key: memory, then the allocatable resources,
// then the free part of them.
func (o Options) spaceOf(points []point) space {
	s := make(space, len(points[0].at))
	for i := range s {
		switch {
		case i == 0:
			s[i] = o.MemoryRatio
		case i <= (len(s)-1)/2:
			s[i] = o.AllocatableRatio
		default:
			s[i] = o.FreeRatio
		}
	}
	return s
}

// divide partitions points into parts in which any two points are similar. It reorders the points.
func (s space) divide(points []point) [][]int {
	axis := s.firstLooseAxis(points)
	if axis < 0 {
		part := make([]int, len(points))
		for i, p := range points {
			part[i] = p.member
		}
		return [][]int{part}
	}
	slices.SortFunc(points, func(p, q point) int { return cmp.Compare(q.at[axis], p.at[axis]) })
	// Gaps are found in one pass, chains only by comparisons, so gaps come first.
	pieces := s.splitAtGaps(points, axis)
	if len(pieces) == 1 {
		pieces = s.chains(points, axis)
	}
	if len(pieces) == 1 {
		pieces = s.windows(points, axis)
	}
	var parts [][]int
	for _, piece := range pieces {
		parts = append(parts, s.divide(piece)...)
	}
	return parts
}

// firstLooseAxis returns the first axis along which some points are not close to each other, or -1.
func (s space) firstLooseAxis(points []point) int {
	for axis := range s {
		least, most := points[0].at[axis], points[0].at[axis]
		for _, p := range points[1:] {
			least, most = min(least, p.at[axis]), max(most, p.at[axis])
		}
		if !within(least, most, s[axis]) {
			return axis
		}
	}
	return -1
}

// splitAtGaps cuts sorted points where two neighbors are too far apart: no point on one side is
// similar to any on the other.
func (s space) splitAtGaps(points []point, axis int) [][]point {
	return splitWhere(points, func(_, before, next point) bool { return !within(before.at[axis], next.at[axis], s[axis]) })
}

// windows cuts sorted points from the largest down: the largest and all that are close to it form a
// part, and so on.
func (s space) windows(points []point, axis int) [][]point {
	return splitWhere(points, func(first, _, next point) bool { return !within(first.at[axis], next.at[axis], s[axis]) })
}

// splitWhere begins a new piece where here returns true for the first point of the piece, the point
// before, and the next one.
func splitWhere(points []point, here func(first, before, next point) bool) [][]point {
	var pieces [][]point
	begin := 0
	for i := 1; i < len(points); i++ {
		if here(points[begin], points[i-1], points[i]) {
			pieces = append(pieces, points[begin:i])
			begin = i
		}
	}
	return append(pieces, points[begin:])
}

// chains returns the parts that chains of similar points connect. It compares only points that are
// close along the axis they are sorted by, neighbors first: in one long chain, they connect all
// points, and no more comparisons are needed.
func (s space) chains(points []point, axis int) [][]point {
	connected, left := newForest(len(points)), len(points)
	for step, near := 1, true; near && left > 1; step++ {
		near = false
		for i := range len(points) - step {
			p, q := points[i], points[i+step]
			if !within(p.at[axis], q.at[axis], s[axis]) {
				continue
			}
			near = true
			if connected.rootOf(i) != connected.rootOf(i+step) && s.similar(p, q) {
				connected.union(i, i+step)
				left--
			}
		}
	}
	var pieces [][]point
	for _, tree := range connected.sets() {
		piece := make([]point, len(tree))
		for i, at := range tree {
			piece[i] = points[at]
		}
		pieces = append(pieces, piece)
	}
	return pieces
}

func (s space) similar(p, q point) bool {
	for axis, ratio := range s {
		if !within(p.at[axis], q.at[axis], ratio) {
			return false
		}
	}
	return true
}

// forest joins numbers into sets.
type forest []int

func newForest(n int) forest {
	f := make(forest, n)
	for i := range f {
		f[i] = i
	}
	return f
}

func (f forest) rootOf(i int) int {
	for f[i] != i {
		f[i] = f[f[i]]
		i = f[i]
	}
	return i
}

func (f forest) union(i, j int) { f[f.rootOf(j)] = f.rootOf(i) }

// sets returns the sets, in the order of their first numbers.
func (f forest) sets() [][]int {
	var trees [][]int
	number := map[int]int{}
	for i := range f {
		n, known := number[f.rootOf(i)]
		if !known {
			n = len(trees)
			number[f.rootOf(i)] = n
			trees = append(trees, nil)
		}
		trees[n] = append(trees[n], i)
	}
	return trees
}

// keys writes what must be equal in similar templates, one key after the other into the same
// memory. Two templates have the same key if and only if they differ only in amounts that a ratio
// applies to.
type keys struct {
	options   Options
	key       []byte
	labels    []pair
	resources []quantity
}

type pair struct{ label, value string }

type quantity struct {
	name   corev1.ResourceName
	amount float64
}

// exactKey returns the key of the pair rule. It contains the names of the resources that ratios
// apply to; their amounts are the coordinates.
func (k *keys) exactKey(t Template) (key []byte, at []float64) {
	k.key = k.key[:0]
	k.addKind(t)
	at = make([]float64, 0, 1+2*len(t.Allocatable))
	at = append(at, memory(t))
	allocatable := k.sorted(t.Allocatable)
	for _, q := range allocatable {
		k.addWord(string(q.name))
		at = append(at, q.amount)
	}
	for _, q := range allocatable {
		at = append(at, amount(t.Free, q.name))
	}
	return k.key, at
}

// addKind adds the part of the key that is known for every template, estimated or not.
func (k *keys) addKind(t Template) {
	capacity := k.sorted(t.Capacity)
	k.number(uint64(len(capacity)))
	for _, q := range capacity {
		k.addWord(string(q.name))
		if q.name != corev1.ResourceMemory {
			k.number(math.Float64bits(q.amount))
		}
	}
	k.labels = k.labels[:0]
	for label, value := range t.Labels {
		if k.options.counts(label) {
			k.labels = append(k.labels, pair{label, value})
		}
	}
	slices.SortFunc(k.labels, func(a, b pair) int { return strings.Compare(a.label, b.label) })
	k.number(uint64(len(k.labels)))
	for _, l := range k.labels {
		k.addWord(l.label)
		k.addWord(l.value)
	}
	k.taints(t)
}

func (k *keys) taints(t Template) {
	taints := repelling(t.Taints)
	k.number(uint64(len(taints)))
	for _, taint := range taints {
		k.addWord(taint)
	}
}

// balancing returns the key for --balancing-label; none if one of the labels is missing.
func (k *keys) balancing(t Template) (key []byte, ok bool) {
	k.key = k.key[:0]
	for _, label := range k.options.BalancingLabels {
		value, ok := t.Labels[label]
		if !ok {
			return nil, false
		}
		k.addWord(value)
	}
	k.taints(t)
	return k.key, true
}

// sorted returns the resources that are not zero. The result is valid until the next call.
func (k *keys) sorted(l corev1.ResourceList) []quantity {
	k.resources = k.resources[:0]
	for name, q := range l {
		if n := milliValue(q); n != 0 {
			k.resources = append(k.resources, quantity{name, n})
		}
	}
	slices.SortFunc(k.resources, func(a, b quantity) int { return strings.Compare(string(a.name), string(b.name)) })
	return k.resources
}

// addWord writes the length before the word, so that different sequences of words have different
// keys.
func (k *keys) addWord(s string) {
	k.number(uint64(len(s)))
	k.key = append(k.key, s...)
}

func (k *keys) number(n uint64) { k.key = binary.AppendUvarint(k.key, n) }

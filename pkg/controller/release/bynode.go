// SPDX-License-Identifier: Apache-2.0

package release

import "github.com/evenkeel/evenkeel/pkg/fit"

// podsByNode contains the pods of each Node.
type podsByNode struct {
	number map[string]int // of a Node's list
	lists  [][]*fit.Pod
}

// groupByNode returns the pods that run on each Node. It counts them before it fills the lists, which
// is faster than to let thousands of lists grow.
func groupByNode(all []*cachedPod) *podsByNode {
	b := &podsByNode{number: map[string]int{}}
	var counts []int
	numbers := make([]int, len(all))
	for i, p := range all {
		if !p.needsRoom() {
			continue
		}
		n := b.numberOf(p.node)
		if n == len(counts) {
			counts = append(counts, 0)
		}
		numbers[i] = n
		counts[n]++
	}
	space := make([]*fit.Pod, len(all))
	for n, count := range counts {
		b.lists[n], space = space[:0:count], space[count:]
	}
	for i, p := range all {
		if p.needsRoom() {
			n := numbers[i]
			b.lists[n] = append(b.lists[n], p.Pod)
		}
	}
	return b
}

// numberOf returns the number of a Node's list. It adds an empty list if there is none.
func (b *podsByNode) numberOf(node string) int {
	n, known := b.number[node]
	if !known {
		n = len(b.lists)
		b.number[node], b.lists = n, append(b.lists, nil)
	}
	return n
}

func (b *podsByNode) addPod(node string, p *fit.Pod) {
	n := b.numberOf(node)
	b.lists[n] = append(b.lists[n], p)
}

// podsOn returns the pods of a Node.
func (b *podsByNode) podsOn(node string) []*fit.Pod {
	if n, known := b.number[node]; known {
		return b.lists[n]
	}
	return nil
}

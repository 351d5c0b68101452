// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"cmp"
	"math"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

var _ = Describe("examples", func() {
	says := func(total int64, l layout, want string) {
		GinkgoHelper()
		Expect(write(answer(total, l.targets))).To(Equal(want))
	}

	DescribeTable("edges", says,
		Entry("nothing", int64(0), weighted([]int64{1, 1}, free, free), "0/0"),
		Entry("nothing, with minima", int64(0), weighted([]int64{1, 1}, atLeast(2), atLeast(1)), "2/1 D3"),
		Entry("minima above the total: weights are ignored", int64(4), weighted([]int64{9, 1}, atLeast(2), atLeast(3)), "2/3 D1"),
		Entry("no weight anywhere", int64(10), weighted([]int64{0, 0}, atLeast(2), free), "2/0 O8"),
		Entry("no weight on one: its minimum only", int64(10), weighted([]int64{0, 1}, between(2, 3), free), "2/8"),
		Entry("all full", int64(10), weighted([]int64{1, 1}, between(0, 3), between(0, 4)), "3/4 O3"),
		Entry("all just full", int64(7), weighted([]int64{1, 1}, between(0, 3), between(0, 4)), "3/4"),
		Entry("a minimum above the share", int64(10), weighted([]int64{1, 1, 8}, atLeast(6), free, free), "6/0/4"),
		Entry("a fixed target takes no part", int64(10), weighted([]int64{5, 1, 1}, between(2, 2), free, free), "2/4/4"),
		Entry("one is full, and those after it get theirs", int64(3),
			weighted([]int64{103, 100, 102, 100, 100, 100, 101}, between(0, 1), free, free, free, free, free, free), "1/0/1/0/0/0/1"),
		Entry("no targets", int64(5), layout{}, " O5"),
		Entry("bounds above the total", int64(3), weighted([]int64{1, 1}, between(0, math.MaxInt64), between(0, math.MaxInt64)), "2/1"),
		Entry("the largest total", int64(math.MaxInt64), weighted([]int64{1, 1}, free, free), "4611686018427387904/4611686018427387903"),
		Entry("the largest weights", int64(5), weighted([]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}, free, free, free), "2/2/1"),
		Entry("the largest weights, then a light one",
			int64(1_000_000_000), weighted([]int64{math.MaxInt64, math.MaxInt64, 1, 2}, between(0, 5), between(0, 5), free, free), "5/5/333333330/666666660"),
	)

	DescribeTable("bounds clip, they are not handed out first", says,
		Entry("kubefed 319", int64(10), weighted([]int64{2, 3}, between(2, 6), between(4, 8)), "4/6"),
		Entry("a minimum that the share covers", int64(10), weighted([]int64{1, 1}, atLeast(3), atLeast(4)), "5/5"),
	)

	DescribeTable("ties", says,
		Entry("go to the first key", int64(1), weighted(equal(3), free, free, free), "1/0/0"),
		Entry("go to who has fewer: the third claim of a equals the first of c", int64(3), weighted([]int64{3, 3, 1}, free, free, free), "1/1/1"),
		Entry("go to who has it", int64(1), weighted(equal(3), free, free, free.now(1)), "0/0/1"),
		Entry("but no further", int64(2), weighted(equal(3), free, free, free.now(5)), "1/0/1"),
		Entry("history never beats a claim", int64(10), weighted([]int64{7, 3}, free, free.now(10)), "7/3"),
	)

	DescribeTable("tiers", says,
		Entry("priority", int64(10), inOrder(between(0, 3), between(0, 4), free), "3/4/3"),
		Entry("minima of later tiers come first of all", int64(10), inOrder(free, atLeast(3)), "7/3"),
		Entry("shares within a group, the last resort idle", int64(9), grouped(weighted([]int64{2, 1, 1}, between(0, 20), between(0, 20), free), 0, 0, 1), "6/3/0"),
		Entry("shares within a group, the last resort in use", int64(9), grouped(weighted([]int64{2, 1, 1}, between(0, 4), between(0, 4), free), 0, 0, 1), "4/4/1"),
	)

	It("fixed targets, however many, leave the others their exact shares", func() {
		l := weighted(equal(42), free, free)
		for i := range int64(40) {
			l.targets = append(l.targets, Target{Key: key(int(i) + 2), Weight: 1 + i%7, Min: 1 + i%5, Max: 1 + i%5})
		}
		r := answer(1_000_120, l.targets)
		Expect(r.Replicas[:2]).To(Equal(counts("500000/500000")))
		Expect(r.MaxShareError).To(BeZero())
	})

	DescribeTable("users of the kernel", says,
		Entry("a surge of one over three zones of which two may lack none", int64(1), weighted([]int64{3, 3, 3}, free, atLeast(1), atLeast(1)), "0/1/1 D1"),
		Entry("a pool's maximum below its number of zones", int64(2), weighted(equal(3), between(0, 5), between(0, 5), between(0, 5)), "1/1/0"),
		Entry("a pool's maximum with zone minima and limits", int64(20), weighted(equal(3), between(3, 4), atLeast(1), between(9, 12)), "4/7/9"),
		Entry("federated minima, one for each used cluster", int64(7), weighted(equal(3), atLeast(1), atLeast(1), atLeast(1)), "3/2/2"),
	)

	DescribeTable("federated maxima: needs first, then the rest",
		func(total int64, needs layout, most []int64, want string) {
			first := answer(total, needs.targets)
			rest := slices.Clone(needs.targets)
			for i := range rest {
				rest[i].Min, rest[i].Max = first.Replicas[i], most[i]
			}
			Expect(write(answer(total, rest))).To(Equal(want))
		},
		Entry("one needy, two idle", int64(30),
			weighted(equal(3), between(10, 25).now(10), between(2, 3).now(10), between(2, 3).now(10)), []int64{30, 30, 30}, "24/3/3"),
		Entry("one needy, one stuck with a probe", int64(12),
			weighted(equal(2), between(2, 6).now(2), between(5, 5).now(10)), []int64{12, 5}, "7/5"),
		Entry("a share reserved for a cluster out of reach", int64(20),
			weighted(equal(2), between(10, 18).now(10), between(3, 4).now(10)), []int64{20, 20}, "16/4"),
		Entry("a fourth joins three idle", int64(30),
			weighted(equal(4), between(2, 3).now(10), between(2, 3).now(10), between(2, 3).now(10), between(1, 6)), []int64{30, 30, 30, 30}, "8/8/7/7"),
		Entry("one joins a busy one", int64(10), weighted(equal(2), between(9, 10).now(10), between(1, 1)), []int64{10, 10}, "9/1"),
	)

	law("a balanced scale-up is what filling the smallest group gives", func(t *rapid.T, p problem) {
		var present int64
		for i := range p.targets {
			p = p.with(i, func(target *Target) { target.Tier, target.Weight = 0, 1 })
			present += p.targets[i].Min
		}
		grown := p.total
		p.total, p.o.Seed = p.total+present, 0
		for i := range p.targets {
			p = p.with(i, func(target *Target) { target.Current = target.Min })
		}
		same(t, p, p.solve(t).Replicas, smallestFirst(grown, p.targets))
	})
})

func grouped(l layout, tiers ...int32) layout {
	for i, tier := range tiers {
		l.targets[i].Tier = tier
	}
	return l
}

// smallestFirst adds node after node to the smallest group that has room.
func smallestFirst(n int64, groups []Target) []int64 {
	var sizes []int64
	for _, g := range groups {
		sizes = append(sizes, g.Min)
	}
	for ; n > 0; n-- {
		var open []int
		for i, g := range groups {
			if hasRoom(g, sizes[i]) {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			break
		}
		sizes[slices.MinFunc(open, func(i, j int) int {
			return cmp.Or(cmp.Compare(sizes[i], sizes[j]), cmp.Compare(groups[i].Key, groups[j].Key))
		})]++
	}
	return sizes
}

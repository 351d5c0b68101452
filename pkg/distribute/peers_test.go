// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"cmp"
	"math"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The four ways to share out whole numbers that this field uses, on the inputs that tell them apart. Those marked were
// reported as faults by users of the systems that work this way; ours has the faults T3, which are accepted: no rule is
// monotone in weights and never off by a replica with four targets.
var _ = Describe("counter-examples", func() {
	DescribeTable("weights, total: ours, D'Hondt, largest remainder, floor and rest",
		func(weights string, total int64, ours, dHondts, remainders, floors string) {
			w := counts(weights)
			Expect(write(answer(total, proportional(w)))).To(Equal(ours))
			Expect(write(slowlyBy(dHondt, total, proportional(w)))).To(Equal(dHondts))
			Expect(slashed(largestRemainder(total, w))).To(Equal(remainders))
			Expect(slashed(floorAndRest(total, w))).To(Equal(floors))
		},
		Entry("T1a", "3/3/1", int64(3), "1/1/1", "2/1/0", "1/1/1", "2/1/0"),
		Entry("T1a, one more", "3/3/1", int64(4), "2/1/1", "2/2/0", "2/2/0", "2/2/0"),
		Entry("T1b", "6/6/2", int64(10), "4/4/2", "5/4/1", "4/4/2", "5/4/1"),
		Entry("T1b, one more", "6/6/2", int64(11), "5/4/2", "5/5/1", "5/5/1", "5/5/1"),
		Entry("T1c", "5/3/1", int64(4), "2/1/1", "3/1/0", "2/1/1", "3/1/0"),
		Entry("T1c, one more", "5/3/1", int64(5), "2/2/1", "3/2/0", "3/2/0", "3/2/0"),
		Entry("T1d", "170/110/60", int64(5), "2/2/1", "3/1/1", "2/2/1", "3/2/0"),
		Entry("T1d, one more", "170/110/60", int64(6), "3/2/1", "3/2/1", "3/2/1", "4/1/1"),
		Entry("T2a", "90/5/5", int64(17), "15/1/1", "17/0/0", "15/1/1", "16/1/0"),
		Entry("T2b", "90/5/5", int64(10), "9/1/0", "10/0/0", "9/1/0", "10/0/0"),
		Entry("T2c", "90/5/5", int64(18), "16/1/1", "18/0/0", "16/1/1", "17/1/0"),
		Entry("T2c, one more", "90/5/5", int64(19), "17/1/1", "18/1/0", "17/1/1", "18/1/0"),
		Entry("T2d", "2/1/1", int64(2), "1/1/0", "2/0/0", "1/1/0", "2/0/0"),
		Entry("T2e", "2/1", int64(2), "1/1", "2/0", "1/1", "2/0"),
		Entry("T3a", "6/1/1/1", int64(3), "3/0/0/0", "3/0/0/0", "2/1/0/0", "3/0/0/0"),
		Entry("T3b", "96/1/1/1/1", int64(48), "48/0/0/0/0", "48/0/0/0/0", "46/1/1/0/0", "47/1/0/0/0"),
		Entry("T3c", "5117/4400/162/161/160", int64(100), "51/43/2/2/2", "52/45/1/1/1", "51/44/2/2/1", "52/45/1/1/1"),
		Entry("T3d", "3/1/1/1", int64(2), "1/1/0/0", "2/0/0/0", "1/1/0/0", "2/0/0/0"),
		Entry("T3d, two more", "3/1/1/1", int64(4), "1/1/1/1", "3/1/0/0", "2/1/1/0", "3/1/0/0"),
		Entry("T4", "40/30/20/10", int64(11), "5/3/2/1", "5/3/2/1", "5/3/2/1", "5/3/2/1"),
		Entry("T5", "3/6/9", int64(2), "0/1/1", "0/1/1", "0/1/1", "0/0/2"),
	)

	DescribeTable("T3b when the heavy target's bound stands where it would take or give its second replica in a row",
		func(total int64, heavy spot, want string) {
			Expect(write(answer(total, weighted(counts("96/1/1/1/1"), heavy, free, free, free, free).targets))).To(Equal(want))
		},
		Entry("takes two", int64(48), free, "48/0/0/0/0"),
		Entry("takes one, is full", int64(48), between(0, 47), "47/1/0/0/0"),
		Entry("gives two", int64(52), free, "48/1/1/1/1"),
		Entry("gives one, is at its minimum", int64(52), atLeast(49), "49/1/1/1/0"),
	)

	DescribeTable("where planners that round up in passes take back or starve",
		func(weights string, total int64, ours string) {
			Expect(write(answer(total, proportional(counts(weights))))).To(Equal(ours))
		},
		Entry("5/3/1 at 9", "5/3/1", int64(9), "5/3/1"),
		Entry("5/3/1 at 10", "5/3/1", int64(10), "6/3/1"),
		Entry("170/110/60 at 7", "170/110/60", int64(7), "4/2/1"),
		Entry("96/1/1/1/1 at 100", "96/1/1/1/1", int64(100), "96/1/1/1/1"),
	)

	DescribeTable("the total at which the second target gets its first replica",
		func(weights string, ours, dHondts, remainders int64) {
			w := counts(weights)
			first := func(share func(int64) []int64) (total int64) {
				for share(total)[1] == 0 {
					total++
				}
				return total
			}
			Expect(first(func(n int64) []int64 { return answer(n, proportional(w)).Replicas })).To(Equal(ours))
			Expect(first(func(n int64) []int64 { return slowlyBy(dHondt, n, proportional(w)).Replicas })).To(Equal(dHondts))
			Expect(first(func(n int64) []int64 { return largestRemainder(n, w) })).To(Equal(remainders))
		},
		Entry("two of five in a hundred", "90/5/5", int64(10), int64(19), int64(7)),
		Entry("four of one in a hundred", "96/1/1/1/1", int64(49), int64(97), int64(21)),
	)

	It("cannot be monotone and always closest", func() {
		Expect(closest(3, counts("3/3/1"))).To(Equal([]string{"1/1/1"}))
		Expect(closest(4, counts("3/3/1"))).To(Equal([]string{"2/2/0"}))
	})

	DescribeTable("share error", func(weights string, total int64, want float64) {
		Expect(answer(total, proportional(counts(weights))).MaxShareError).To(BeNumerically("~", want, 1e-12))
	},
		Entry("exact", "70/30", int64(10), 0.0),
		Entry("3/3/1 at 3", "3/3/1", int64(3), 4.0/7/3),
		Entry("3/3/1 at 4", "3/3/1", int64(4), 5.0/7/4),
		Entry("the accepted fault T3b", "96/1/1/1/1", int64(48), 1.92/48),
		Entry("nothing", "1/1", int64(0), 0.0),
	)
})

// largestRemainder is Hamilton's method: every share rounded down, the rest by the largest fraction.
func largestRemainder(total int64, weights []int64) []int64 {
	return floorsAnd(total, weights, func(i, j int) int {
		return cmp.Or(-cmp.Compare(total*weights[i]%added(weights), total*weights[j]%added(weights)), cmp.Compare(i, j))
	})
}

// floorAndRest rounds every share down and hands the rest out in the order of weights.
func floorAndRest(total int64, weights []int64) []int64 {
	return floorsAnd(total, weights, func(i, j int) int {
		return cmp.Or(-cmp.Compare(weights[i], weights[j]), cmp.Compare(i, j))
	})
}

func floorsAnd(total int64, weights []int64, order func(i, j int) int) []int64 {
	x, turn := make([]int64, len(weights)), make([]int, len(weights))
	for i, w := range weights {
		x[i], turn[i] = total*w/added(weights), i
	}
	slices.SortFunc(turn, order)
	for k := range total - added(x) {
		x[turn[k]]++
	}
	return x
}

// closest lists what has the smallest largest distance from the shares, by trying everything over three targets.
func closest(total int64, weights []int64) []string {
	best, answers := math.Inf(1), []string{}
	for a := range total + 1 {
		for b := range total - a + 1 {
			x, worst := []int64{a, b, total - a - b}, 0.0
			for i, w := range weights {
				worst = max(worst, math.Abs(float64(x[i])-float64(total*w)/float64(added(weights))))
			}
			if worst < best-1e-9 {
				best, answers = worst, nil
			}
			if worst < best+1e-9 {
				answers = append(answers, slashed(x))
			}
		}
	}
	return answers
}

// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"cmp"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

var _ = Describe("malformed input", func() {
	one := func(t Target) []Target { return []Target{{Key: "sound", Weight: 1, Max: Unbounded}, t} }

	DescribeTable("of Distribute is an error and no answer", func(total int64, targets []Target, says string) {
		r, err := Distribute(total, targets, Options{})
		Expect(err).To(And(MatchError(ErrMalformed), MatchError(ContainSubstring(says))))
		Expect(r).To(Equal(Result{}))
	},
		Entry("total below 0", int64(-1), one(Target{Key: "a"}), "total of -1"),
		Entry("max below min", int64(9), one(Target{Key: "a", Min: 5, Max: 3}), `target "a": max 3 is below min 5`),
		Entry("max below 0 and not Unbounded", int64(9), one(Target{Key: "a", Max: -2}), `target "a": max -2`),
		Entry("min below 0", int64(9), one(Target{Key: "a", Min: -1}), `target "a": min -1`),
		Entry("weight below 0", int64(9), one(Target{Key: "a", Weight: -1}), `target "a": weight -1`),
		Entry("current below 0", int64(9), one(Target{Key: "a", Current: -1}), `target "a": current -1`),
		Entry("a key twice", int64(9), one(Target{Key: "sound"}), `target "sound": given twice`),
		Entry("a key twice, in another tier", int64(9), one(Target{Key: "sound", Tier: 3}), `target "sound": given twice`),
		Entry("minima above int64", int64(9),
			[]Target{{Key: "a", Min: math.MaxInt64, Max: Unbounded}, {Key: "b", Min: 1, Max: Unbounded}}, `target "b": the minima`),
	)

	DescribeTable("of WithFallback", func(targets []Target, health []Health, says string) {
		_, err := WithFallback(1, targets, health, Options{})
		Expect(err).To(And(MatchError(ErrMalformed), MatchError(ContainSubstring(says))))
	},
		Entry("health missing", one(Target{Key: "a"}), []Health{{}}, "health of 1 for 2 targets"),
		Entry("no health at all", one(Target{Key: "a"}), nil, "health of 0 for 2 targets"),
		Entry("usable below 0", one(Target{Key: "a"}), []Health{{}, {Blocked: true, Usable: -1}}, `target "a": usable -1`),
		Entry("failed below 0", one(Target{Key: "a"}), []Health{{}, {Blocked: true, Failed: -1}}, `target "a": failed -1`),
		Entry("a malformed target", one(Target{Key: "a", Min: -1}), []Health{{}, {}}, `target "a": min -1`),
	)

	DescribeTable("of Step", func(cur, ready, goal []int64, want, surge, unavailable int64, says string) {
		next, err := Step(cur, ready, goal, want, surge, unavailable)
		Expect(err).To(And(MatchError(ErrMalformed), MatchError(ContainSubstring(says))))
		Expect(next).To(BeNil())
	},
		Entry("ready missing", []int64{1}, []int64{}, []int64{1}, int64(1), int64(1), int64(0), "1 current, 0 ready"),
		Entry("goal missing", []int64{1}, []int64{1}, []int64{}, int64(1), int64(1), int64(0), "0 goal"),
		Entry("nothing may move", []int64{1}, []int64{1}, []int64{1}, int64(1), int64(0), int64(0), "surge 0 and unavailable 0"),
		Entry("surge below 0", []int64{1}, []int64{1}, []int64{1}, int64(1), int64(-1), int64(2), "surge -1"),
		Entry("unavailable below 0", []int64{1}, []int64{1}, []int64{1}, int64(1), int64(2), int64(-1), "unavailable -1"),
		Entry("a current count below 0", []int64{-1}, []int64{1}, []int64{1}, int64(1), int64(1), int64(0), "count of -1"),
		Entry("a ready count below 0", []int64{1}, []int64{-1}, []int64{1}, int64(1), int64(1), int64(0), "count of -1"),
		Entry("want below 0", []int64{1}, []int64{1}, []int64{1}, int64(-3), int64(1), int64(0), "count of -3"),
		Entry("a sum above int64", []int64{1, 1}, []int64{1, 1}, []int64{1, math.MaxInt64}, int64(1), int64(1), int64(0), "exceeds int64"),
	)

	It("is not what is missing or too much", func() {
		r, err := WithFallback(0, nil, nil, Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Replicas).To(BeEmpty())
		Expect(Step(nil, nil, nil, 0, 1, 0)).To(BeEmpty())
	})

	It("is not what a target that is not blocked is said to run", func() {
		_, err := WithFallback(1, one(Target{Key: "a"}), []Health{{}, {Usable: -1}}, Options{})
		Expect(err).NotTo(HaveOccurred())
	})
})

// row is a table row of the page: total, targets, answer.
var row = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` \\| ([^|]+?) \\|")

// word is a target of the page: a weight, then perhaps bounds, what runs of it, what failed, and the probe.
var word = regexp.MustCompile(`^(\d+)(?:\[(\d*)\.\.(\d*)\])?(?:\(runs (\d+)(?:, (\d+) failed)?(?:, probe (\d+))?\))?$`)

var _ = It("gives every answer of its page", func() {
	page, err := os.ReadFile("../../docs/distribute.md")
	Expect(err).NotTo(HaveOccurred())
	rows := row.FindAllStringSubmatch(string(page), -1)
	Expect(len(rows)).To(BeNumerically(">=", 15))
	for _, r := range rows {
		l := readLayout(r[2])
		got, err := WithFallback(number(r[1], 0), l.targets, l.health, Options{})
		Expect(err).NotTo(HaveOccurred())
		says := slashed(got.Replicas)
		if got.Deficit > 0 {
			says += ", " + strconv.FormatInt(got.Deficit, 10) + " too many"
		}
		if got.Overflow > 0 {
			says += ", " + strconv.FormatInt(got.Overflow, 10) + " nowhere"
		}
		Expect(says).To(Equal(r[3]), r[0])
	}
})

// readLayout reads tiers between angle brackets of targets between semicolons.
func readLayout(s string) layout {
	var weights []int64
	var spots []spot
	var tiers []int32
	for tier, part := range strings.Split(s, " > ") {
		for target := range strings.SplitSeq(part, " ; ") {
			m := word.FindStringSubmatch(target)
			Expect(m).NotTo(BeNil(), target)
			sp := between(number(m[2], 0), number(m[3], Unbounded))
			if m[4] != "" {
				sp.health = Health{Blocked: true, Usable: number(m[4], 0), Failed: number(m[5], 0), Probe: number(m[6], -1)}
			}
			weights, spots, tiers = append(weights, number(m[1], 0)), append(spots, sp), append(tiers, int32(tier))
		}
	}
	return grouped(weighted(weights, spots...), tiers...)
}

func number(s string, absent int64) int64 {
	if s == "" {
		return absent
	}
	n, err := strconv.ParseInt(s, 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return n
}

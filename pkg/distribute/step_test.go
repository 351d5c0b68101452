// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"math"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

var _ = Describe("step", func() {
	DescribeTable("a swap, everything getting ready at once",
		func(surge, unavailable int64, path string, leastReady, mostTotal int64) {
			cur, goal, want := counts("100/0"), counts("0/100"), int64(100)
			var steps []string
			for !slices.Equal(cur, goal) {
				next, err := Step(cur, cur, goal, want, surge, unavailable)
				Expect(err).NotTo(HaveOccurred())
				Expect(next).NotTo(Equal(cur))
				Expect(added(next)).To(BeNumerically("<=", mostTotal))
				Expect(min(cur[0], next[0]) + min(cur[1], next[1])).To(BeNumerically(">=", leastReady))
				cur = next
				steps = append(steps, slashed(cur))
			}
			Expect(strings.Join(steps, ", ")).To(Equal(path))
		},
		Entry("surge 25", int64(25), int64(0), "100/25, 75/25, 75/50, 50/50, 50/75, 25/75, 25/100, 0/100", int64(100), int64(125)),
		Entry("surge 25, unavailable 25", int64(25), int64(25), "75/25, 50/50, 25/75, 0/100", int64(75), int64(100)),
		Entry("surge 10", int64(10), int64(0), "100/10, 90/10, 90/20, 80/20, 80/30, 70/30, 70/40, 60/40, 60/50, 50/50, "+
			"50/60, 40/60, 40/70, 30/70, 30/80, 20/80, 20/90, 10/90, 10/100, 0/100", int64(100), int64(110)),
		Entry("unavailable 50", int64(0), int64(50), "50/0, 50/50, 0/50, 0/100", int64(50), int64(100)),
	)

	DescribeTable("one step",
		func(cur, ready, goal string, want, surge, unavailable int64, next string) {
			got, err := Step(counts(cur), counts(ready), counts(goal), want, surge, unavailable)
			Expect(err).NotTo(HaveOccurred())
			Expect(slashed(got)).To(Equal(next))
		},
		Entry("at the goal", "3/7", "3/7", "3/7", int64(10), int64(1), int64(0), "3/7"),
		Entry("a raised total waits for nothing", "5/5", "0/0", "50/50", int64(100), int64(1), int64(0), "50/50"),
		Entry("a duplicate waits for nothing", "5/5", "1/5", "5/9", int64(10), int64(1), int64(0), "5/9"),
		Entry("a lowered total waits for nothing", "50/50", "50/50", "5/5", int64(10), int64(1), int64(0), "5/5"),
		Entry("nothing goes while nothing else is ready", "10/10", "10/0", "0/10", int64(10), int64(10), int64(0), "10/10"),
		Entry("what is not ready goes at once", "10/0", "4/0", "0/10", int64(10), int64(1), int64(0), "4/1"),
		Entry("one for one, unavailable included", "10/10", "10/4", "0/10", int64(10), int64(1), int64(2), "4/10"),
		Entry("a blocked target does not keep others from shrinking", "10/10", "10/0", "5/10", int64(5), int64(1), int64(0), "5/10"),
		Entry("raises go in proportion to what is missing", "20/0/0", "20/0/0", "0/5/15", int64(20), int64(8), int64(0), "20/2/6"),
		Entry("raises and lowerings at once", "20/4/0", "20/4/0", "10/4/10", int64(24), int64(5), int64(5), "15/4/5"),
		Entry("of equal claims the earlier ones are raised", "9/0/0/0/0/0/0/0/0/0", "9/0/0/0/0/0/0/0/0/0", "0/1/1/1/1/1/1/1/1/1",
			int64(9), int64(4), int64(0), "9/1/1/1/1/0/0/0/0/0"),
		Entry("terminating replicas that are still ready do not count", "0/10", "10/10", "10/0", int64(10), int64(10), int64(0), "10/10"),
		Entry("any replica may go: ready said to be cur, want raised by the difference", "10/0", "10/0", "0/10", int64(16), int64(1), int64(0), "10/1"),
		Entry("the largest counts", "9223372036854775807/0", "9223372036854775807/0", "0/9223372036854775807",
			int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), "0/0"),
	)

	It("ceiling, floor, direction", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			n := rapid.IntRange(1, 6).Draw(t, "number")
			draw := func(name string) []int64 { return rapid.SliceOfN(rapid.Int64Range(0, 40), n, n).Draw(t, name) }
			want := rapid.Int64Range(0, 150).Draw(t, "want")
			surge := rapid.Int64Range(0, 20).Draw(t, "surge")
			unavailable := rapid.Int64Range(map[bool]int64{true: 1}[surge == 0], 20).Draw(t, "unavailable")
			checkStep(t, draw("cur"), draw("ready"), draw("goal"), want, surge, unavailable)
		})
	})

	law("the goal is reached, with blocked targets too", func(t *rapid.T, p problem) {
		health := drawHealth(t, len(p.targets))
		goal := p.recover(t, health).Replicas
		want := min(p.total, added(willRun(goal, health)))
		cur, ready := make([]int64, len(goal)), make([]int64, len(goal))
		for i := range cur {
			cur[i] = rapid.Int64Range(0, 60).Draw(t, "cur")
		}
		surge := rapid.Int64Range(0, 10).Draw(t, "surge")
		unavailable := rapid.Int64Range(map[bool]int64{true: 1}[surge == 0], 10).Draw(t, "unavailable")
		var missing int64
		for i := range cur {
			missing += max(cur[i]-goal[i], goal[i]-cur[i])
		}
		for round := int64(0); !slices.Equal(cur, goal); round++ {
			if round > 3*missing {
				t.Fatalf("%+v, %+v: stuck at %v with %v ready, goal %v", p, health, cur, ready, goal)
			}
			for i, run := range willRun(cur, health) {
				ready[i] = run
				if round%3 != 0 { // every third time all that can be ready is
					ready[i] = rapid.Int64Range(0, run).Draw(t, "ready")
				}
			}
			cur = checkStep(t, cur, ready, goal, want, surge, unavailable)
		}
	})
})

var _ = Describe("replace", func() {
	law("room, floor and ceiling hold, and what was placed is reached", func(t *rapid.T, p problem) {
		health := drawHealth(t, len(p.targets))
		for i := range health {
			health[i].Failed = 0 // what is ready counts, not what will be
		}
		goal := p.recover(t, health).Replicas
		cur := make([]int64, len(goal))
		for i := range cur {
			cur[i] = rapid.Int64Range(0, 60).Draw(t, "cur")
		}
		want := min(p.total, added(willRun(goal, health)))
		for round := 0; !slices.Equal(cur, goal); round++ {
			if round > 200 {
				t.Fatalf("%+v, %+v: stuck at %v, goal %v", p, health, cur, goal)
			}
			seen := slices.Clone(health)
			for i := range seen {
				if !health[i].Blocked {
					seen[i].Usable = rapid.Int64Range(0, cur[i]).Draw(t, "ready")
					if round%3 == 0 { // every third time all that can be ready is
						seen[i].Usable = cur[i]
					}
				}
			}
			next, err := Replace(p.total, cur, goal, p.targets, seen)
			if err != nil {
				t.Fatal(err)
			}
			room := func(i int) int64 {
				if p.targets[i].Max == Unbounded {
					return math.MaxInt64
				}
				return p.targets[i].Max
			}
			ready := func(v []int64) (total int64) {
				for i := range v {
					total += min(v[i], seen[i].Usable, room(i))
				}
				return total
			}
			if ready(next) < min(ready(cur), want) || added(next) > max(added(cur), added(goal)+max(1, p.total)) {
				t.Fatalf("%+v, %+v: %v became %v, goal %v", p, seen, cur, next, goal)
			}
			for i, n := range next {
				if n > room(i) {
					t.Fatalf("%+v: %v became %v, above the room of target %d", p, cur, next, i)
				}
			}
			cur = next
		}
	})

	DescribeTable("one step", func(cur, goal string, l layout, next string) {
		got, err := Replace(10, counts(cur), counts(goal), l.targets, l.health)
		Expect(err).NotTo(HaveOccurred())
		Expect(slashed(got)).To(Equal(next))
	},
		Entry("what is ready stays until its replacement is", "10/0", "0/10", inOrder(free.ready(10), free.ready(0)), "10/10"),
		Entry("and then goes", "10/10", "0/10", inOrder(free.ready(10), free.ready(10)), "0/10"),
		Entry("what lost its room is not replaced by what is not ready", "6/4", "3/7", inOrder(between(0, 3).ready(6), free.ready(4)), "3/7"),
		Entry("and stands in for none: what is ready elsewhere stays", "5/5/0", "0/0/10", inOrder(between(0, 0).ready(5), free.ready(5), free.ready(0)), "0/5/10"),
		Entry("a blocked one is not waited for", "4/6", "6/4", inOrder(free.blocked(6, 2), free.ready(6)), "6/4"),
	)

	DescribeTable("refuses what is not parallel", func(cur, goal, health int, says string) {
		_, err := Replace(1, make([]int64, cur), make([]int64, goal), make([]Target, 2), make([]Health, health))
		Expect(err).To(And(MatchError(ErrMalformed), MatchError(ContainSubstring(says))))
	},
		Entry("cur", 1, 2, 2, "1 current and 2 goal counts, health of 2, for 2 targets"),
		Entry("goal", 2, 3, 2, "2 current and 3 goal counts, health of 2"),
		Entry("health", 2, 2, 1, "2 goal counts, health of 1, for 2 targets"),
	)

	It("moves no more at once than there is to place, though probes make more of the goal", func() {
		l := inOrder(free.ready(2), free.blocked(0, 0), free.ready(0))
		Expect(Replace(1, counts("2/0/0"), counts("0/1/1"), l.targets, l.health)).To(Equal(counts("1/1/0")))
	})
})

// checkStep takes a step and checks the laws on it.
func checkStep(t *rapid.T, cur, ready, goal []int64, want, surge, unavailable int64) []int64 {
	next, err := Step(cur, ready, goal, want, surge, unavailable)
	if err != nil {
		t.Fatalf("%v, ready %v, goal %v: %v", cur, ready, goal, err)
	}
	available := func(v []int64) (total int64) {
		for i := range v {
			total += min(v[i], ready[i])
		}
		return total
	}
	ceiling, floor := max(added(cur), added(goal)+surge), min(available(cur), want-unavailable)
	if added(next) > ceiling || available(next) < floor {
		t.Fatalf("%v became %v, ready %v, goal %v, surge %d, unavailable %d: above %d in all or below %d ready",
			cur, next, ready, goal, surge, unavailable, ceiling, floor)
	}
	for i := range next {
		if next[i] < min(cur[i], goal[i]) || next[i] > max(cur[i], goal[i]) {
			t.Fatalf("%v became %v, goal %v: count %d left its way", cur, next, goal, i)
		}
	}
	return next
}

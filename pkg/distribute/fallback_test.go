// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"math"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

// P1 to P12, R1 to R23 and C1 to C8 are the placements of the upstream Balancer that users rely on; D and O are a
// deficit and an overflow.
var _ = Describe("fallback", func() {
	says := func(total int64, l layout, want string) {
		GinkgoHelper()
		r, err := WithFallback(total, l.targets, l.health, Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(write(r)).To(Equal(want))
	}
	half := func(spots ...spot) layout { return weighted([]int64{50, 50}, spots...) }
	ten := between(0, 10)

	DescribeTable("priority", says,
		Entry("P1", int64(10), inOrder(free, free), "10/0"),
		Entry("P2", int64(10), inOrder(between(0, 3), free), "3/7"),
		Entry("P3", int64(10), inOrder(between(0, 3), between(0, 4)), "3/4 O3"),
		Entry("P4", int64(10), inOrder(atLeast(2), atLeast(3)), "7/3"),
		Entry("P5", int64(1), inOrder(atLeast(2), atLeast(3)), "2/3 D4"),
		Entry("P6", int64(10), inOrder(between(2, 4), between(3, 5)), "4/5 O1"),
		Entry("P7", int64(10), inOrder(free.blocked(3, 2), free), "10/9"),
		Entry("P8", int64(6), inOrder(atLeast(3).blocked(3, 3), atLeast(3)), "3/6"),
		Entry("P9", int64(10), inOrder(free.blocked(3, 2), free.blocked(3, 2)), "10/9 O8"),
		Entry("P10", int64(20), inOrder(ten.blocked(3, 2), ten.blocked(3, 2)), "10/10 O18"),
		Entry("P11", int64(10), inOrder(ten.blocked(15, 2), ten.blocked(15, 2)), "10/0"),
		Entry("P12", int64(10), inOrder(free.blocked(3, 2), free), "10/9"),
		Entry("P9 with a probe of one", int64(10), inOrder(free.blocked(3, 2).probe(1), free.blocked(3, 2).probe(1)), "2/2 O8"),
	)

	DescribeTable("proportional", says,
		Entry("R1", int64(1), half(free, free), "1/0"),
		Entry("R2", int64(1), weighted(equal(3), free, free, free), "1/0/0"),
		Entry("R3", int64(2), weighted(equal(3), free, free, free), "1/1/0"),
		Entry("R4", int64(10), half(free, free), "5/5"),
		Entry("R5", int64(10), weighted([]int64{70, 30}, free, free), "7/3"),
		Entry("R6", int64(100), weighted([]int64{70, 30}, free, free), "70/30"),
		Entry("R7", int64(11), half(free, free), "6/5"),
		Entry("R8", int64(10), half(between(0, 3), free), "3/7"),
		Entry("R9", int64(10), half(between(0, 3), between(0, 2)), "3/2 O5"),
		Entry("R10", int64(10), half(atLeast(3), free), "5/5"),
		Entry("R11", int64(10), half(atLeast(7), free), "7/3"),
		Entry("R12", int64(10), half(atLeast(20), free), "20/0 D10"),
		Entry("R13", int64(10), half(atLeast(3), atLeast(4)), "5/5"),
		Entry("R14", int64(10), half(between(3, 3), atLeast(4)), "3/7"),
		Entry("R15", int64(10), half(between(3, 3), between(4, 6)), "3/6 O1"),
		Entry("R16", int64(20), weighted([]int64{70, 20, 10}, between(0, 5), free, free), "5/10/5"),
		Entry("R17", int64(20), weighted([]int64{48, 48, 4}, between(2, 5), between(2, 5), atLeast(2)), "5/5/10"),
		Entry("R18", int64(10), half(free.blocked(5, 2), free), "5/7"),
		Entry("R19", int64(6), half(atLeast(3).blocked(3, 3), atLeast(3)), "3/6"),
		Entry("R20", int64(10), half(free.blocked(3, 2), free), "5/9"),
		Entry("R21", int64(18), half(ten.blocked(9, 2), ten), "9/10 O1"),
		Entry("R22", int64(20), half(free.blocked(15, 3), free), "10/10"),
		Entry("R23", int64(20), half(free.blocked(3, 3), free), "10/20"),
		Entry("nothing usable, all tried", int64(10), half(free.blocked(5, 5), free), "5/10"),
		Entry("nothing usable, a probe of one", int64(10), half(free.blocked(5, 5).probe(1), free), "1/10"),
		Entry("nothing usable, no probe, but a minimum", int64(10), half(atLeast(2).blocked(5, 5).probe(0), free), "2/10"),
		Entry("R18 with a probe of one", int64(10), half(free.blocked(5, 2).probe(1), free), "4/7"),
		Entry("a probe without end", int64(10), half(free.blocked(math.MaxInt64, 0).probe(math.MaxInt64), free), "5/5"),
		Entry("one of a hundred", int64(300), half(free.blocked(100, 1), free.now(100)), "150/151"),
		Entry("one of a hundred, with a probe of one", int64(300), half(free.blocked(100, 1).probe(1), free.now(100)), "150/151"),
		Entry("as many as run", int64(300), half(free.blocked(100, 50), free.now(100)), "150/200"),
		Entry("more than run", int64(300), half(free.blocked(100, 51), free.now(100)), "150/251"),
		Entry("an unknown number", int64(300), half(free.blocked(100, 0), free.now(100)), "150/200"),
		Entry("a deficit and an overflow", int64(1), half(between(1, 1).blocked(1, 1), between(1, 1)), "1/1 D1 O1"),
	)

	DescribeTable("the controller's", says,
		Entry("C1", int64(10), weighted([]int64{30, 70}, free, free), "3/7"),
		Entry("C2", int64(10), weighted([]int64{30, 70}, free.now(3), free), "3/7"),
		Entry("C4", int64(10), inOrder(free, free), "10/0"),
		Entry("C5", int64(0), weighted([]int64{30, 70}, free, free), "0/0"),
		Entry("C6", int64(1), weighted([]int64{30, 70}, free, free.now(1).blocked(1, 1)), "1/1"),
		Entry("C7", int64(1), weighted([]int64{30, 70}, free, free.now(1)), "0/1"),
	)

	sick := func(name string, holds func(t *rapid.T, p problem, health []Health)) {
		law(name, func(t *rapid.T, p problem) { holds(t, p, drawHealth(t, len(p.targets))) })
	}

	sick("reference", func(t *rapid.T, p problem, health []Health) {
		got, want := p.recover(t, health), slowlyWithFallback(p.total, p.targets, health, p.o)
		same(t, p, got.Replicas, want.Replicas)
		same(t, p, got.Fallback, want.Fallback)
		if got.Deficit != want.Deficit || got.Overflow != want.Overflow {
			t.Fatalf("%+v, %+v: %+v, want %+v", p, health, got, want)
		}
	})

	sick("no target gets less than without fallback", func(t *rapid.T, p problem, health []Health) {
		with, without := p.recover(t, probing(health, -1)).Replicas, p.solve(t).Replicas
		for i := range with {
			if with[i] < without[i] {
				t.Fatalf("%+v, %+v: %v, without fallback %v", p, health, with, without)
			}
		}
	})

	sick("a blocked target gets what it would in a healthy tier", func(t *rapid.T, p problem, health []Health) {
		health = probing(health, -1)
		i, cured := p.drawIndex(t), slices.Clone(health)
		health[i].Blocked = true
		for j := range cured {
			if p.targets[j].Tier == p.targets[i].Tier {
				cured[j] = Health{}
			}
		}
		if got, want := p.recover(t, health).Replicas[i], p.recover(t, cured).Replicas[i]; got != want {
			t.Fatalf("%+v, %+v: blocked target %d has %d, in a healthy tier %d", p, health, i, got, want)
		}
	})

	sick("more usable, or fewer failed, raises neither a target nor the overflow", func(t *rapid.T, p problem, health []Health) {
		health = probing(health, -1)
		before := p.recover(t, health)
		i := p.drawIndex(t)
		health[i].Usable += rapid.Int64Range(0, 20).Draw(t, "more")
		if health[i].Failed > 0 {
			health[i].Failed = rapid.Int64Range(1, health[i].Failed).Draw(t, "fewer failed")
		}
		after := p.recover(t, health)
		for i := range before.Replicas {
			if after.Replicas[i] > before.Replicas[i] || after.Overflow > before.Overflow {
				t.Fatalf("%+v, %+v: %+v became %+v", p, health, before, after)
			}
		}
	})

	sick("what is expected and the overflow add up to the total", func(t *rapid.T, p problem, health []Health) {
		health = probing(health, -1)
		r := p.recover(t, health)
		if added(willRun(r.Replicas, health))+r.Overflow != p.total+r.Deficit {
			t.Fatalf("%+v, %+v: %+v", p, health, r)
		}
	})

	sick("the surplus is no more than failed where as many run", func(t *rapid.T, p problem, health []Health) {
		health = probing(health, -1)
		r, most := p.recover(t, health), int64(0)
		for i, h := range health {
			switch {
			case !h.Blocked:
			case h.Failed > 0 && h.Failed <= h.Usable:
				most += h.Failed
			default:
				most += max(0, r.Replicas[i]-h.Usable)
			}
		}
		if surplus := added(r.Replicas) + r.Overflow - p.total - r.Deficit; surplus > most {
			t.Fatalf("%+v, %+v: %+v, a surplus of %d, not %d", p, health, r, surplus, most)
		}
	})

	sick("house", func(t *rapid.T, p problem, health []Health) {
		before := p.recover(t, health).Replicas
		p.total++
		after := p.recover(t, health).Replicas
		for i := range before {
			if after[i] < before[i] {
				t.Fatalf("%+v, %+v: %v became %v", p, health, before, after)
			}
		}
	})

	sick("a probe changes nothing that is usable", func(t *rapid.T, p problem, health []Health) {
		full, some := p.recover(t, probing(health, -1)), p.recover(t, health)
		// With a probe, what is expected of a target is still what it would be with all.
		all := willRun(full.Replicas, health)
		for i := range all {
			if min(some.Replicas[i], all[i]) != all[i] || !health[i].Blocked && some.Replicas[i] != full.Replicas[i] {
				t.Fatalf("%+v, %+v: %v, with all probing %v", p, health, some.Replicas, full.Replicas)
			}
		}
		if full.Overflow != some.Overflow {
			t.Fatalf("%+v, %+v: overflow %d, with all probing %d", p, health, some.Overflow, full.Overflow)
		}
	})

	sick("good health is no fallback", func(t *rapid.T, p problem, health []Health) {
		for i := range health {
			health[i].Blocked = false
		}
		Expect(p.recover(t, health)).To(Equal(p.solve(t)))
	})
})

func drawHealth(t *rapid.T, n int) []Health {
	health := make([]Health, n)
	for i := range health {
		health[i] = Health{
			Blocked: rapid.Bool().Draw(t, "blocked"),
			Usable:  rapid.Int64Range(0, 20).Draw(t, "usable"),
			Failed:  rapid.Int64Range(0, 20).Draw(t, "failed"),
			Probe:   rapid.Int64Range(-1, 5).Draw(t, "probe"),
		}
	}
	return health
}

func (p problem) recover(t *rapid.T, health []Health) Result {
	r, err := WithFallback(p.total, p.targets, health, p.o)
	if err != nil {
		t.Fatalf("%+v, %+v: %v", p, health, err)
	}
	return r
}

func probing(health []Health, probe int64) []Health {
	health = slices.Clone(health)
	for i := range health {
		health[i].Probe = probe
	}
	return health
}

// willRun is how many of the replicas are believed to run.
func willRun(replicas []int64, health []Health) []int64 {
	run := slices.Clone(replicas)
	for i, h := range health {
		run[i] = expected(run[i], h)
	}
	return run
}

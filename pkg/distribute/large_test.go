// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

var _ = Describe("laws about numbers of any size", func() {
	It("order", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			targets, seed := drawLarge(t), rapid.Uint64().Draw(t, "seed")
			for i := range targets {
				targets[i].Tier = 0
			}
			order := Order(targets, seed)
			type unit struct {
				i int
				k int64
			}
			var units [3]unit
			for u := range units {
				i := rapid.IntRange(0, len(targets)-1).Draw(t, "target")
				units[u] = unit{i, max(1, drawCount(t, "k"))}
			}
			compare := func(a, b unit) int { return order(a.i, a.k, b.i, b.k) }
			a, b, c := units[0], units[1], units[2]
			if want := exactly(targets[a.i], a.k, targets[b.i], b.k, seed); compare(a, b) != want || compare(b, a) != -want {
				t.Fatalf("%+v: %v and %v: %d and %d, want %d", targets, a, b, compare(a, b), compare(b, a), want)
			}
			if (compare(a, b) == 0) != (a == b) {
				t.Fatalf("%+v: %v and %v stand at the same place", targets, a, b)
			}
			if compare(a, b) < 0 && compare(b, c) < 0 && compare(a, c) >= 0 {
				t.Fatalf("%+v: %v before %v before %v before the first", targets, a, b, c)
			}
		})
	})

	It("overflow", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			total, targets := drawCount(t, "total"), drawLarge(t)
			checkExact(t, total, targets, Options{Seed: rapid.Uint64().Draw(t, "seed")})
		})
	})

	It("overflow, with weights that add up to more than 64 bits", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			total, targets := drawCount(t, "total"), drawHeavy(t)
			checkCorrections(t, total, targets)
			checkExact(t, total, targets, Options{})
		})
	})

	// The first sum of weights times the minimum is 2^128 to the bit, the second carries into it, and the third into 2^129.
	DescribeTable("overflow, where a bend times the weights exceeds 128 bits",
		func(last, minimum, rest int64) {
			targets := make([]Target, 65)
			for i := range targets {
				targets[i] = Target{Key: key(i), Weight: 1 << 62, Max: Unbounded}
			}
			targets[63].Weight, targets[64].Min = last, minimum
			checkCorrections(GinkgoT(), minimum+rest, targets)
			checkExact(GinkgoT(), minimum+rest, targets, Options{})
		},
		Entry("exactly", int64(1<<62), int64(1<<60), int64(10)),
		Entry("by a carry", int64(1<<62-1), int64(1<<60+1), int64(1000)),
		Entry("twice, the second time by a carry", int64(1<<62-1), int64(1<<61+1), int64(100)),
	)

	It("time: single replicas moved, at most half as many as there are targets and a few", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			total, targets := drawCount(t, "total"), drawLarge(t)
			for i := range targets {
				targets[i].Tier, targets[i].Weight = 0, max(1, targets[i].Weight)
				targets[i].Max = max(targets[i].Min+1, targets[i].Max)
			}
			targets[0].Max = Unbounded
			checkCorrections(t, total, targets)
		})
	})
})

// drawCount draws from zero to the largest int64, all magnitudes alike; rapid by itself prefers small numbers.
func drawCount(t *rapid.T, name string) int64 {
	most := int64(math.MaxInt64) >> rapid.IntRange(0, 62).Draw(t, name+" shift")
	n := rapid.Int64Range(0, most).Draw(t, name)
	if rapid.Bool().Draw(t, name+" from above") {
		return most - n
	}
	return n
}

// drawLarge draws up to seven targets of all magnitudes, the minima small enough for their sum.
func drawLarge(t *rapid.T) []Target {
	targets := make([]Target, rapid.IntRange(1, 7).Draw(t, "number"))
	for i := range targets {
		targets[i] = Target{
			Key:     string(rune('a' + i)),
			Tier:    rapid.Int32().Draw(t, "tier"),
			Weight:  drawCount(t, "weight"),
			Min:     drawCount(t, "min") / 7,
			Max:     Unbounded,
			Current: drawCount(t, "current"),
		}
		if rapid.Bool().Draw(t, "bounded") {
			targets[i].Max = max(targets[i].Min, drawCount(t, "max"))
		}
	}
	return targets
}

// drawHeavy draws one tier of many targets of almost the largest weight, with bounds near an even share of the largest
// total.
func drawHeavy(t *rapid.T) []Target {
	targets := make([]Target, rapid.IntRange(3, 40).Draw(t, "number"))
	share := math.MaxInt64 / int64(len(targets))
	for i := range targets {
		targets[i] = Target{Key: key(i), Weight: math.MaxInt64 - drawCount(t, "lightness")/8, Max: Unbounded}
		if rapid.Bool().Draw(t, "minimum") {
			targets[i].Min = share / rapid.Int64Range(1, 9).Draw(t, "part")
		}
		if i > 0 && rapid.Bool().Draw(t, "maximum") {
			targets[i].Max = targets[i].Min + 1 + (math.MaxInt64-targets[i].Min)/rapid.Int64Range(2, 50).Draw(t, "room")
		}
	}
	return targets
}

// checkExact checks whatever can be checked of an answer of any magnitude.
func checkExact(t fataler, total int64, targets []Target, o Options) {
	t.Helper()
	r, err := Distribute(total, targets, o)
	if err != nil {
		t.Fatalf("%d over %+v: %v", total, targets, err)
	}
	checkCounts(t, total, targets, r)
	checkCertificate(t, targets, o, r)
	if !(r.MaxShareError >= 0 && r.MaxShareError <= 1) {
		t.Fatalf("%d over %+v: share error %v", total, targets, r.MaxShareError)
	}
}

func checkCorrections(t fataler, total int64, targets []Target) {
	t.Helper()
	if moved, most := Corrections(total, targets), int64(len(targets)/2+2); moved > most || moved < -most {
		t.Fatalf("%d over %+v: %d moved", total, targets, moved)
	}
}

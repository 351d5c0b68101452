// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"fmt"
	"math"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

var _ = Describe("laws about single answers", func() {
	law("reference", func(t *rapid.T, p problem) {
		got, want := p.solve(t), slowly(p.total, p.targets, p.o)
		same(t, p, got.Replicas, want.Replicas)
		if got.Deficit != want.Deficit || got.Overflow != want.Overflow {
			t.Fatalf("%+v: %+v, want %+v", p, got, want)
		}
	})

	law("certificate", func(t *rapid.T, p problem) { checkCertificate(t, p.targets, p.o, p.solve(t)) })

	law("tier", func(t *rapid.T, p problem) {
		x := p.solve(t).Replicas
		for i, upper := range p.targets {
			for j, lower := range p.targets {
				if lower.Tier < upper.Tier && x[i] > upper.Min && lower.Weight > 0 && hasRoom(lower, x[j]) {
					t.Fatalf("%+v: %v: target %d of a later tier was served before target %d was full", p, x, i, j)
				}
			}
		}
	})

	law("even", func(t *rapid.T, p problem) {
		x := p.solve(t).Replicas
		within := func(i int) bool { return x[i] > p.targets[i].Min && hasRoom(p.targets[i], x[i]) }
		for i, a := range p.targets {
			for j, b := range p.targets {
				if a.Weight == b.Weight && a.Tier == b.Tier && within(i) && within(j) && x[i] > x[j]+1 {
					t.Fatalf("%+v: %v: targets %d and %d are equal", p, x, i, j)
				}
			}
		}
	})

	law("share error", func(t *rapid.T, p problem) {
		r := p.solve(t)
		if want := shareError(p.targets, r.Replicas); math.Abs(r.MaxShareError-want) > 1e-9 {
			t.Fatalf("%+v: %v: share error %v, want %v", p, r.Replicas, r.MaxShareError, want)
		}
	})

	It("quota, for every two weights up to 40 and every three", func() {
		var cases, dHondtBreaks int
		check := func(upTo int64, weights ...int64) {
			targets := proportional(weights)
			for total := int64(1); total <= upTo; total++ {
				cases++
				Expect(keepsQuota(total, weights, answer(total, targets).Replicas)).To(BeTrue(), "%d over %v", total, weights)
				if len(weights) == 3 && !keepsQuota(total, weights, slowlyBy(dHondt, total, targets).Replicas) {
					dHondtBreaks++
				}
			}
		}
		for a := int64(1); a <= 40; a++ {
			for b := a; b <= 40; b++ {
				check(60, b, a)
				for c := b; c <= 40; c++ {
					check(40, c, b, a)
				}
			}
		}
		Expect(cases).To(Equal(49_200 + 459_200))
		Expect(dHondtBreaks).To(Equal(17_546), "of D'Hondt's answers for three")
	})

	It("distance: a target with the share p of n is off by at most (1+p(n-2))/2, whatever the weights", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			weights := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(1, 9), rapid.Int64Range(1, 1000)), 2, 12).Draw(t, "weights")
			total, n, sum := rapid.Int64Range(0, 500).Draw(t, "total"), int64(len(weights)), added(weights)
			for i, x := range answer(total, proportional(weights)).Replicas {
				// |x - total*w/sum| <= (1 + w/sum*(n-2))/2, in whole numbers
				if off := 2 * max(x*sum-total*weights[i], total*weights[i]-x*sum); off > sum+weights[i]*(n-2) {
					t.Fatalf("%d over %v: target %d has %d", total, weights, i, x)
				}
			}
		})
	})

	DescribeTable("small shares of one size get their first replica late, and together", func(total int64, want string) {
		Expect(slashed(answer(total, proportional([]int64{96, 1, 1, 1, 1})).Replicas)).To(Equal(want))
	},
		Entry(nil, int64(48), "48/0/0/0/0"),
		Entry(nil, int64(52), "48/1/1/1/1"),
		Entry(nil, int64(100), "96/1/1/1/1"),
	)

	DescribeTable("the tie hash never changes", func(seed uint64, key string, want uint64) {
		Expect(Hash(seed, key)).To(Equal(want), fmt.Sprintf("%#x", Hash(seed, key)))
	},
		Entry(nil, uint64(1), "", uint64(0x7f555c6a530fdf81)),
		Entry(nil, uint64(1), "zone-a", uint64(0x17a86af2c9680a8f)),
		Entry(nil, uint64(2), "zone-a", uint64(0x3fe79be11679b898)),
		Entry(nil, uint64(math.MaxUint64), "zone-b", uint64(0xbfad9d8439ffd643)),
	)

	It("a seed spreads the odd replica over a fleet", func() {
		won := map[int]int{}
		for seed := uint64(1); seed <= 3000; seed++ {
			r, err := Distribute(1, proportional([]int64{1, 1, 1}), Options{Seed: seed})
			Expect(err).NotTo(HaveOccurred())
			won[slices.Index(r.Replicas, 1)]++
		}
		Expect(won).To(HaveLen(3))
		for _, times := range won {
			Expect(times).To(BeNumerically("~", 1000, 100))
		}
	})
})

func checkCertificate(t fataler, targets []Target, o Options, r Result) {
	t.Helper()
	if i, j, found := misplaced(r.Replicas, targets, o.Seed); found {
		t.Fatalf("%+v: %v: the next of target %d stands ahead of the last of target %d", targets, r.Replicas, i, j)
	}
}

// keepsQuota tells whether each count is the target's share rounded down or up.
func keepsQuota(total int64, weights, counts []int64) bool {
	for i, x := range counts {
		product, all := total*weights[i], added(weights)
		if x < product/all || x > (product+all-1)/all {
			return false
		}
	}
	return true
}

// shareError closes in on each tier's level from both sides, in floating point.
func shareError(targets []Target, counts []int64) float64 {
	var worst float64
	for _, tier := range tiersOf(targets) {
		var held, low, high float64 = 0, 0, 1000
		share := func(t Target, level float64) float64 {
			if t.Tier != tier || t.Weight == 0 {
				return 0
			}
			s := max(float64(t.Weight)*level, float64(t.Min))
			if t.Max != Unbounded {
				s = min(s, float64(t.Max))
			}
			return s
		}
		for i, t := range targets {
			if t.Tier == tier && t.Weight > 0 {
				held += float64(counts[i])
			}
		}
		for range 100 {
			middle, holds := (low+high)/2, 0.0
			for _, t := range targets {
				holds += share(t, middle)
			}
			if holds < held {
				low = middle
			} else {
				high = middle
			}
		}
		for i, t := range targets {
			if t.Tier == tier && t.Weight > 0 {
				worst = max(worst, math.Abs(float64(counts[i])-share(t, high)))
			}
		}
	}
	return worst / max(1, float64(added(counts)))
}

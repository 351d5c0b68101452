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

// problem is one drawn input.
type problem struct {
	total   int64
	targets []Target
	o       Options
}

func drawProblem(t *rapid.T) problem {
	keys := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f", "g"}).Draw(t, "keys")
	targets := make([]Target, rapid.IntRange(1, len(keys)).Draw(t, "number"))
	// A third of the problems has few different weights, so that ties are common.
	heaviest := rapid.SampledFrom([]int64{2, 29, 29}).Draw(t, "heaviest")
	for i := range targets {
		targets[i] = drawTarget(t, keys[i], heaviest)
	}
	seed := rapid.SampledFrom([]uint64{0, 0, 1, 2, 3}).Draw(t, "seed")
	return problem{total: rapid.Int64Range(0, 150).Draw(t, "total"), targets: targets, o: Options{Seed: seed}}
}

func drawTarget(t *rapid.T, key string, heaviest int64) Target {
	target := Target{
		Key:     key,
		Tier:    rapid.Int32Range(-1, 1).Draw(t, "tier"),
		Weight:  rapid.Int64Range(0, heaviest).Draw(t, "weight"),
		Min:     rapid.Int64Range(0, 5).Draw(t, "min"),
		Max:     Unbounded,
		Current: rapid.Int64Range(0, 19).Draw(t, "current"),
	}
	if rapid.Bool().Draw(t, "bounded") {
		target.Max = target.Min + rapid.Int64Range(0, 14).Draw(t, "room")
	}
	return target
}

func (p problem) solve(t *rapid.T) Result {
	r, err := Distribute(p.total, p.targets, p.o)
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	return r
}

// with is the problem with one target changed.
func (p problem) with(i int, change func(*Target)) problem {
	p.targets = slices.Clone(p.targets)
	change(&p.targets[i])
	return p
}

func (p problem) drawIndex(t *rapid.T) int {
	return rapid.IntRange(0, len(p.targets)-1).Draw(t, "index")
}

// law runs a property over drawn problems.
func law(name string, holds func(t *rapid.T, p problem)) {
	It(name, func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) { holds(t, drawProblem(t)) })
	})
}

// favours is the form of the mono laws: the change costs target i nothing and gives no other target anything.
func favours(t *rapid.T, p problem, i int, change func(*Target)) {
	before, after := p.solve(t).Replicas, p.with(i, change).solve(t).Replicas
	for j := range before {
		if j == i && after[j] < before[j] || j != i && after[j] > before[j] {
			t.Fatalf("%+v: %v became %v when target %d was favoured", p, before, after, i)
		}
	}
}

var _ = Describe("laws", func() {
	law("sum, bounds", func(t *rapid.T, p problem) { checkCounts(t, p.total, p.targets, p.solve(t)) })

	law("house", func(t *rapid.T, p problem) {
		before := p.solve(t).Replicas
		p.total++
		after := p.solve(t).Replicas
		for i := range before {
			if after[i] < before[i] {
				t.Fatalf("%+v: %v became %v", p, before, after)
			}
		}
		if added(after)-added(before) > 1 {
			t.Fatalf("%+v: %v became %v, more than one replica more", p, before, after)
		}
	})

	law("max-mono", func(t *rapid.T, p problem) {
		more := rapid.Int64Range(0, 20).Draw(t, "more")
		favours(t, p, p.drawIndex(t), func(target *Target) {
			if target.Max != Unbounded {
				target.Max += more
			}
		})
	})

	law("max-mono, up to no maximum at all", func(t *rapid.T, p problem) {
		favours(t, p, p.drawIndex(t), func(target *Target) { target.Max = Unbounded })
	})

	law("min-mono", func(t *rapid.T, p problem) {
		more := rapid.Int64Range(0, 20).Draw(t, "more")
		favours(t, p, p.drawIndex(t), func(target *Target) {
			target.Min += more
			if target.Max != Unbounded {
				target.Min = min(target.Min, target.Max)
			}
		})
	})

	law("weight-mono", func(t *rapid.T, p problem) {
		more := rapid.Int64Range(0, 20).Draw(t, "more")
		favours(t, p, p.drawIndex(t), func(target *Target) { target.Weight += more })
	})

	law("removal", func(t *rapid.T, p problem) {
		i, before := p.drawIndex(t), p.solve(t).Replicas
		p.targets = slices.Delete(slices.Clone(p.targets), i, i+1)
		after := p.solve(t).Replicas
		for j, x := range slices.Delete(slices.Clone(before), i, i+1) {
			if after[j] < x {
				t.Fatalf("%+v: %v became %v without target %d", p, before, after, i)
			}
		}
	})

	law("perm", func(t *rapid.T, p problem) {
		want := byKey(p.targets, p.solve(t).Replicas)
		p.targets = rapid.Permutation(p.targets).Draw(t, "order")
		for key, x := range byKey(p.targets, p.solve(t).Replicas) {
			if want[key] != x {
				t.Fatalf("%+v: %s has %d, in another order %d", p, key, want[key], x)
			}
		}
	})

	law("scale", func(t *rapid.T, p problem) {
		before, factor := p.solve(t).Replicas, rapid.Int64Range(1, 1<<50).Draw(t, "factor")
		for i := range p.targets {
			p = p.with(i, func(target *Target) { target.Weight *= factor })
		}
		same(t, p, p.solve(t).Replicas, before)
	})

	law("idempotent", func(t *rapid.T, p problem) {
		before := p.solve(t).Replicas
		for i, x := range before {
			p = p.with(i, func(target *Target) { target.Current = x })
		}
		same(t, p, p.solve(t).Replicas, before)
	})
})

func byKey(targets []Target, counts []int64) map[string]int64 {
	m := map[string]int64{}
	for i, t := range targets {
		m[t.Key] = counts[i]
	}
	return m
}

func same(t *rapid.T, p problem, got, want []int64) {
	if !slices.Equal(got, want) {
		t.Fatalf("%+v: %v, want %v", p, got, want)
	}
}

// fataler is rapid's T and testing's.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checkCounts(t fataler, total int64, targets []Target, r Result) {
	t.Helper()
	for i, x := range r.Replicas {
		if x < targets[i].Min || targets[i].Max != Unbounded && x > targets[i].Max {
			t.Fatalf("total %d, %+v: %v out of bounds", total, targets, r.Replicas)
		}
	}
	if r.Deficit < 0 || r.Overflow < 0 || r.Deficit > 0 && r.Overflow > 0 {
		t.Fatalf("total %d, %+v: deficit %d and overflow %d", total, targets, r.Deficit, r.Overflow)
	}
	if added(r.Replicas) != total+r.Deficit-r.Overflow {
		t.Fatalf("total %d, %+v: %v, deficit %d, overflow %d", total, targets, r.Replicas, r.Deficit, r.Overflow)
	}
}

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

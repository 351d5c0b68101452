// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
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

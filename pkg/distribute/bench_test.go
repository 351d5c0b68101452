// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

// BenchmarkDistribute shows that the time depends on the number of targets alone; under reference, what placing one
// replica after the other costs for the same targets.
func BenchmarkDistribute(b *testing.B) {
	for _, n := range []int{3, 10, 100, 1000} {
		targets := benchTargets(n)
		for _, total := range []int64{1_000, 1_000_000, math.MaxInt32} {
			b.Run(fmt.Sprintf("targets=%d/replicas=%d", n, total), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Distribute(total, targets, Options{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	for _, n := range []int{3, 10, 100} {
		targets := benchTargets(n)
		for _, total := range []int64{1_000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("reference/targets=%d/replicas=%d", n, total), func(b *testing.B) {
				for b.Loop() {
					slowly(total, targets, Options{})
				}
			})
		}
	}
}

// benchTargets is one tier of different weights, every third target with a minimum, every fourth with a maximum.
func benchTargets(n int) []Target {
	targets := make([]Target, n)
	for i := range targets {
		targets[i] = Target{Key: key(i), Weight: int64(1 + i*7919%997), Max: Unbounded}
		if i%3 == 1 {
			targets[i].Min = int64(i % 5)
		}
		if i%4 == 3 {
			targets[i].Max = targets[i].Min + int64(i%50)
		}
	}
	return targets
}

// BenchmarkRatio measures the smallest and the largest number of replicas in turns, so that whatever else the machine
// does concerns both, and prints how much longer the largest takes; then, for scale, how much longer it takes to place a
// million replicas one after the other.
func BenchmarkRatio(b *testing.B) {
	for _, n := range []int{3, 10, 100, 1000} {
		b.Run(fmt.Sprintf("targets=%d", n), func(b *testing.B) {
			targets := benchTargets(n)
			solve := func(total int64) time.Duration {
				return timeOf(func() {
					if _, err := Distribute(total, targets, Options{}); err != nil {
						b.Fatal(err)
					}
				})
			}
			var few, many []time.Duration
			for b.Loop() {
				few, many = append(few, solve(1_000)), append(many, solve(math.MaxInt32))
			}
			a, z := median(few), median(many)
			b.ReportMetric(0, "ns/op") // of both together, which says nothing
			b.ReportMetric(micros(a), "µs/1000")
			b.ReportMetric(micros(z), "µs/2^31-1")
			b.ReportMetric(z.Seconds()/a.Seconds(), "ratio")
			if n <= 100 {
				slow := timeOf(func() { slowly(1_000_000, targets, Options{}) })
				b.ReportMetric(micros(slow), "µs/1e6-one-by-one")
				b.ReportMetric(slow.Seconds()/z.Seconds(), "ratio-one-by-one")
			}
		})
	}
}

func timeOf(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func micros(d time.Duration) float64 { return d.Seconds() * 1e6 }

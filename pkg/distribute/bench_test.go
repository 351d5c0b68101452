// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"fmt"
	"math"
	"testing"

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

// SPDX-License-Identifier: Apache-2.0

// Package sample has one place for each kind of mutant, half of them held by a test.
package sample

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"time"
)

type Plan struct {
	Name  string
	Wait  time.Duration
	Names map[string]int
}

// Held is tested at its boundary, on both sides.
func Held(n, limit int) bool { return n < limit }

// Loose is tested far from its boundary.
func Loose(n, limit int) bool {
	if n < limit {
		return true
	}
	return false
}

// Unreached is never called.
func Unreached(a, b int) int { return a - b }

// Total is tested with numbers that tell a sum from a difference, and with none that tells how the
// first is weighted.
func Total(values []int) int {
	sum := 0
	for i, v := range values {
		if v < 0 && i > 0 {
			continue
		}
		sum += v
	}
	return sum
}

// Name is tested for one of its two cases.
func Name(kind int) string {
	name := "none"
	switch kind {
	case 1:
		name = "one"
	case 2:
		name = "two"
	}
	return name
}

// Make is tested in all fields but Wait.
func Make(name string) Plan {
	return Plan{Name: name, Wait: time.Duration(len(name)) * time.Second, Names: map[string]int{name: len(name)}}
}

// Less is tested with arguments in one order.
func Less(a, b string) bool { return before(a, b) }

func before(a, b string) bool { return a < b }

// Product is tested with and without an overflow. Its factors may change places, and nobody looks at
// what is returned with an error.
func Product(a, b uint64) (uint64, error) {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return 0, errors.New("overflow")
	}
	return low, nil
}

// Order is tested where the length decides.
func Order(a, b string) int {
	return cmp.Or(
		cmp.Compare(len(a), len(b)),
		cmp.Compare(a, b),
	)
}

// Known is tested for the first of its names.
func Known(name string) bool { return slices.Contains([]string{"one", "two"}, name) }

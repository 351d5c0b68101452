// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
	"github.com/evenkeel/evenkeel/test/laws"
)

func TestMain(m *testing.M) { laws.Main(m, 2000) }

func TestDistribute(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Distribute")
}

// spot is a target in the shorthand of the tables: bounds, what it has now, and its health.
type spot struct {
	min, max, current int64
	health            Health
}

var free = between(0, Unbounded)

func between(least, most int64) spot { return spot{min: least, max: most} }

func atLeast(least int64) spot { return between(least, Unbounded) }

func (s spot) now(current int64) spot {
	s.current = current
	return s
}

// blocked means that of so many observed replicas some have not started, and that all keep being tried.
func (s spot) blocked(observed, notStarted int64) spot {
	s.health = Health{Blocked: true, Usable: observed - notStarted, Failed: notStarted, Probe: -1}
	return s
}

// ready means that so many replicas are, of a target that is not blocked.
func (s spot) ready(n int64) spot {
	s.health = Health{Usable: n}
	return s
}

func (s spot) probe(n int64) spot {
	s.health.Probe = n
	return s
}

// layout is targets a, b, c and so on with their health.
type layout struct {
	targets []Target
	health  []Health
}

func weighted(weights []int64, spots ...spot) layout {
	var l layout
	for i, s := range spots {
		l.targets = append(l.targets, Target{Key: key(i), Weight: weights[i], Min: s.min, Max: s.max, Current: s.current})
		l.health = append(l.health, s.health)
	}
	return l
}

// inOrder is one tier per target.
func inOrder(spots ...spot) layout {
	l := weighted(equal(len(spots)), spots...)
	for i := range l.targets {
		l.targets[i].Tier = int32(i)
	}
	return l
}

// key keeps the order of names and of numbers alike.
func key(i int) string { return fmt.Sprintf("%05d", i) }

func equal(n int) []int64 {
	weights := make([]int64, n)
	for i := range weights {
		weights[i] = 1
	}
	return weights
}

// proportional is one tier without bounds.
func proportional(weights []int64) []Target {
	spots := make([]spot, len(weights))
	for i := range spots {
		spots[i] = free
	}
	return weighted(weights, spots...).targets
}

func answer(total int64, targets []Target) Result {
	r, err := Distribute(total, targets, Options{})
	Expect(err).NotTo(HaveOccurred())
	return r
}

// write is a result as the tables say it: 3/4 O3 for an overflow of 3, 2/3 D4 for a deficit of 4.
func write(r Result) string {
	var b strings.Builder
	b.WriteString(slashed(r.Replicas))
	if r.Deficit > 0 {
		fmt.Fprintf(&b, " D%d", r.Deficit)
	}
	if r.Overflow > 0 {
		fmt.Fprintf(&b, " O%d", r.Overflow)
	}
	return b.String()
}

func slashed(counts []int64) string {
	words := make([]string, len(counts))
	for i, c := range counts {
		words[i] = strconv.FormatInt(c, 10)
	}
	return strings.Join(words, "/")
}

// counts reads 2/1/1.
func counts(s string) []int64 {
	var all []int64
	for word := range strings.SplitSeq(s, "/") {
		n, err := strconv.ParseInt(word, 10, 64)
		Expect(err).NotTo(HaveOccurred())
		all = append(all, n)
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"cmp"
	"math/big"
	"slices"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

// slow is the rule as it is told: one replica after the other, each to the target whose next unit stands furthest
// ahead. Weights and counts must be small, its products are plain int64.
type slow struct {
	targets []Target
	rule    rule
	x       []int64
}

// rule is a divisor method and how its ties end.
type rule struct {
	divisor func(k int64) int64
	tie     func(a Target, k int64, b Target, m int64) int
}

func webster(o Options) rule {
	return rule{
		divisor: func(k int64) int64 { return 2*k - 1 },
		tie:     func(a Target, k int64, b Target, m int64) int { return tie(a, k, b, m, o.Seed) },
	}
}

// dHondt is the upstream Balancer's method; its ties end at the key.
var dHondt = rule{
	divisor: func(k int64) int64 { return k },
	tie:     func(a Target, _ int64, b Target, _ int64) int { return cmp.Compare(a.Key, b.Key) },
}

func newSlow(targets []Target, r rule) *slow {
	s := &slow{targets: targets, rule: r}
	for _, t := range targets {
		s.x = append(s.x, t.Min)
	}
	return s
}

// add places n more on the targets that may have them, and returns what they cannot take.
func (s *slow) add(n int64, may func(i int) bool) int64 {
	for ; n > 0; n-- {
		best := -1
		for i, t := range s.targets {
			if may(i) && t.Weight > 0 && hasRoom(t, s.x[i]) && (best < 0 || s.ahead(i, best)) {
				best = i
			}
		}
		if best < 0 {
			return n
		}
		s.x[best]++
	}
	return 0
}

func (s *slow) ahead(i, j int) bool {
	a, b, k, m := s.targets[i], s.targets[j], s.x[i]+1, s.x[j]+1
	return cmp.Or(
		cmp.Compare(a.Tier, b.Tier),
		-cmp.Compare(a.Weight*s.rule.divisor(m), b.Weight*s.rule.divisor(k)),
		s.rule.tie(a, k, b, m),
	) < 0
}

// tie is rules 3 to 6.
func tie(a Target, k int64, b Target, m int64, seed uint64) int {
	c := cmp.Or(sticky(a, k)-sticky(b, m), cmp.Compare(k, m))
	if seed != 0 {
		c = cmp.Or(c, cmp.Compare(Hash(seed, a.Key), Hash(seed, b.Key)))
	}
	return cmp.Or(c, cmp.Compare(a.Key, b.Key))
}

func sticky(t Target, k int64) int {
	if k <= t.Current {
		return 0
	}
	return 1
}

func hasRoom(t Target, x int64) bool { return t.Max == Unbounded || x < t.Max }

func anyone(int) bool { return true }

func slowly(total int64, targets []Target, o Options) Result {
	return slowlyBy(webster(o), total, targets)
}

func slowlyBy(r rule, total int64, targets []Target) Result {
	s := newSlow(targets, r)
	minima := added(s.x)
	overflow := s.add(max(0, total-minima), anyone)
	return Result{Replicas: s.x, Deficit: max(0, minima-total), Overflow: overflow}
}

// slowlyWithFallback is the composition as it is told: per tier a base, what its blocked members lack, and a second
// round for its healthy ones.
func slowlyWithFallback(total int64, targets []Target, health []Health, o Options) Result {
	s := newSlow(targets, webster(o))
	minima := added(s.x)
	rest, whole, lacking := max(0, total-minima), make([]int64, len(targets)), make([]int64, len(targets))
	for _, tier := range tiersOf(targets) {
		member := func(i int) bool { return targets[i].Tier == tier }
		rest = s.add(rest, member)
		for i, h := range health {
			if member(i) && h.Blocked {
				whole[i] = expected(s.x[i], h)
				lacking[i] = s.x[i] - whole[i]
				rest += lacking[i]
			}
		}
		rest = s.add(rest, func(i int) bool { return member(i) && !health[i].Blocked })
	}
	for i, h := range health {
		if h.Blocked && h.Probe >= 0 {
			s.x[i] = min(s.x[i], max(targets[i].Min, whole[i]+h.Probe))
		}
	}
	return Result{Replicas: s.x, Fallback: lacking, Deficit: max(0, minima-total), Overflow: rest}
}

// expected is how many of so many replicas a target is believed to run.
func expected(replicas int64, h Health) int64 {
	switch {
	case !h.Blocked || replicas <= h.Usable:
		return replicas
	case h.Failed == 0 || h.Failed > h.Usable:
		return h.Usable
	}
	return max(h.Usable, replicas-h.Failed)
}

func tiersOf(targets []Target) []int32 {
	var tiers []int32
	for _, t := range targets {
		tiers = append(tiers, t.Tier)
	}
	slices.Sort(tiers)
	return slices.Compact(tiers)
}

func added(counts []int64) int64 {
	var total int64
	for _, c := range counts {
		total += c
	}
	return total
}

// misplaced is the certificate: it names two targets, if there are any, of which the first one's next unit stands ahead
// of the second one's last unit above its minimum. It is exact for every size of number.
func misplaced(x []int64, targets []Target, seed uint64) (next, last int, found bool) {
	for i, a := range targets {
		for j, b := range targets {
			if i == j || a.Weight == 0 || b.Weight == 0 || !hasRoom(a, x[i]) || x[j] <= b.Min {
				continue
			}
			if exactly(a, x[i]+1, b, x[j], seed) < 0 {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

func exactly(a Target, k int64, b Target, m int64, seed uint64) int {
	return cmp.Or(cmp.Compare(a.Tier, b.Tier), -claim(a.Weight, m).Cmp(claim(b.Weight, k)), tie(a, k, b, m, seed))
}

// claim is weight * (2k-1).
func claim(weight, k int64) *big.Int {
	d := new(big.Int).Lsh(big.NewInt(k), 1)
	return d.Sub(d, big.NewInt(1)).Mul(d, big.NewInt(weight))
}

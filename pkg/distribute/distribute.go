// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Unbounded, as a target's Max, means that the target can take any number of replicas.
const Unbounded int64 = -1

// Target is one place for replicas.
type Target struct {
	// Key names the target and is unique. It is the last criterion in a tie.
	Key string
	// Tier is the order in which targets are filled: a tier gets replicas above its minima only
	// once all lower tiers are full.
	Tier int32
	// Weight determines the target's share within its tier. With 0, the target gets its Min and
	// nothing more.
	Weight int64
	// Min is given to the target even if the total does not suffice for all minima.
	Min int64
	// Max is at least Min, or Unbounded.
	Max int64
	// Current is how many replicas the target has now. It only decides between equal claims, so
	// that equal targets do not swap replicas. Leave it 0 if the result must not depend on history.
	Current int64
}

// Options define how ties are broken.
type Options struct {
	// Seed, unless 0, makes a hash of seed and key break ties before the key itself does. If many
	// small objects have different seeds, the odd replica does not always go to the same zone.
	Seed uint64
}

// Result is the number of replicas for each target, and what could not be satisfied.
type Result struct {
	// Replicas contains one number per target, in the order of the targets.
	Replicas []int64
	// Fallback contains, for each target, the number of replicas that others run instead, or that are
	// a part of Overflow: those that a blocked target is not expected to run.
	Fallback []int64
	// Deficit is by how much the minima exceed the total. The minima are met nevertheless.
	Deficit int64
	// Overflow is the number of replicas that no target can take.
	Overflow int64
	// MaxShareError is the largest distance of a target from its exact, fractional share within its
	// bounds, as a part of all replicas: 0.05 means that some target is off by 5 % of all replicas.
	// It is only reported; no decision depends on it.
	MaxShareError float64
}

// Distribute spreads total over the targets. Only malformed input is an error. Too little room, or
// too small a total, is a valid result.
func Distribute(total int64, targets []Target, o Options) (Result, error) {
	return placeTiers(total, targets, nil, o)
}

// placeTiers fills one tier after the other. Without health, all targets are healthy.
func placeTiers(total int64, targets []Target, health []Health, o Options) (Result, error) {
	minima, err := checkTargets(total, targets)
	if err != nil {
		return Result{}, err
	}
	lanes, err := lineUp(targets, o.Seed)
	if err != nil {
		return Result{}, err
	}
	result := Result{Replicas: make([]int64, len(targets)), Fallback: make([]int64, len(targets)), Deficit: max(0, minima-total)}
	rest, worst := max(0, total-minima), 0.0
	for len(lanes) > 0 {
		var tier []*lane
		tier, lanes = cutTier(lanes)
		left, gap := fillTier(tier, rest)
		worst = max(worst, gap)
		rest = coverBlocked(tier, health, left)
		for _, l := range tier {
			result.Replicas[l.target], result.Fallback[l.target] = l.at, l.lacking
		}
	}
	result.Overflow = rest
	result.MaxShareError = worst / max(1, float64(sumCounts(result.Replicas)))
	return result, nil
}

func sumCounts(counts []int64) int64 {
	var total int64
	for _, n := range counts {
		total += n
	}
	return total
}

// ErrMalformed is wrapped by every error of this package: the input contradicts itself, and a retry
// does not help.
var ErrMalformed = errors.New("malformed input")

// checkTargets validates the targets and returns the sum of their minimums.
func checkTargets(total int64, targets []Target) (int64, error) {
	if total < 0 {
		return 0, fmt.Errorf("distribute a total of %d: below 0: %w", total, ErrMalformed)
	}
	var minima int64
	for _, t := range targets {
		if err := t.validate(); err != nil {
			return 0, fmt.Errorf("distribute to target %q: %w", t.Key, err)
		}
		if t.Min > math.MaxInt64-minima {
			return 0, fmt.Errorf("distribute to target %q: the minima up to here exceed int64: %w", t.Key, ErrMalformed)
		}
		minima += t.Min
	}
	return minima, nil
}

func (t Target) validate() error {
	switch {
	case t.Weight < 0:
		return fmt.Errorf("weight %d is below 0: %w", t.Weight, ErrMalformed)
	case t.Min < 0:
		return fmt.Errorf("min %d is below 0: %w", t.Min, ErrMalformed)
	case t.Max != Unbounded && t.Max < t.Min:
		return fmt.Errorf("max %d is below min %d: %w", t.Max, t.Min, ErrMalformed)
	case t.Current < 0:
		return fmt.Errorf("current %d is below 0: %w", t.Current, ErrMalformed)
	}
	return nil
}

// lane is one target while its tier is being filled: from <= at <= to.
type lane struct {
	target  int // index in the input
	tier    int32
	rank    int // place in the order of hash and key
	weight  uint64
	current int64
	from    int64
	to      int64
	at      int64
	lacking int64 // of a blocked target: what it is not expected to run
}

// lineUp returns one lane per target at its minimum, ordered by tier, hash and key.
func lineUp(targets []Target, seed uint64) ([]*lane, error) {
	order, err := tieOrder(targets, seed)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(targets[a].Tier, targets[b].Tier) })
	all, lanes := make([]lane, len(targets)), make([]*lane, len(targets))
	for rank, i := range order {
		t := targets[i]
		all[rank] = lane{target: i, tier: t.Tier, rank: rank, weight: uint64(t.Weight), current: t.Current, from: t.Min, to: t.limit(), at: t.Min}
		lanes[rank] = &all[rank]
	}
	return lanes, nil
}

// tieOrder returns the indices of the targets, sorted by hash if there is a seed, and then by key.
func tieOrder(targets []Target, seed uint64) ([]int, error) {
	order, hashes := make([]int, len(targets)), make([]uint64, len(targets))
	for i, t := range targets {
		order[i] = i
		if seed != 0 {
			hashes[i] = hashKey(seed, t.Key)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(hashes[a], hashes[b]), cmp.Compare(targets[a].Key, targets[b].Key))
	})
	for k := 1; k < len(order); k++ {
		if key := targets[order[k]].Key; key == targets[order[k-1]].Key {
			return nil, fmt.Errorf("distribute to target %q: given twice: %w", key, ErrMalformed)
		}
	}
	return order, nil
}

// cutTier splits the first tier off.
func cutTier(lanes []*lane) (tier, later []*lane) {
	end := slices.IndexFunc(lanes, func(l *lane) bool { return l.tier != lanes[0].tier })
	if end < 0 {
		end = len(lanes)
	}
	return lanes[:end], lanes[end:]
}

// compareUnits reports whether unit k of a stands ahead of (below 0) or behind (above 0) unit m of
// b, of the same tier. It is 0 only for a unit and itself.
func compareUnits(a *lane, k int64, b *lane, m int64) int {
	// weight/(2k-1) of both, over their common denominator; a product of two 64-bit numbers has 128
	// bits.
	aHigh, aLow := bits.Mul64(a.weight, 2*uint64(m)-1)
	bHigh, bLow := bits.Mul64(b.weight, 2*uint64(k)-1)
	if c := cmp.Or(cmp.Compare(bHigh, aHigh), cmp.Compare(bLow, aLow)); c != 0 {
		return c
	}
	if aHas, bHas := k <= a.current, m <= b.current; aHas != bHas {
		if aHas {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(k, m), cmp.Compare(a.rank, b.rank))
}

// hashKey must never change: otherwise replicas move. It is FNV-1a started from the seed, with a
// final mix. Without the mix, keys that differ only in their last letter would stay in alphabetical
// order.
func hashKey(seed uint64, key string) uint64 {
	h := seed ^ 0xcbf29ce484222325
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 0x100000001b3
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// SPDX-License-Identifier: Apache-2.0

package distribute

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

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

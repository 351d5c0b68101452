// SPDX-License-Identifier: Apache-2.0

package distribute

// Unbounded as a target's Max lets it take any number of replicas.
const Unbounded int64 = -1

// Target is one place that replicas can go to.
type Target struct {
	// Key names the target, uniquely; it is the last word in a tie.
	Key string
	// Tier is the order in which targets are filled: a tier gets replicas above its minima only
	// when every lower one is full.
	Tier int32
	// Weight is the target's share among its tier. With 0 the target gets its Min and nothing above it.
	Weight int64
	// Min is given to the target even if the total does not suffice for all minima.
	Min int64
	// Max is at least Min, or Unbounded.
	Max int64
	// Current is how many replicas the target has now. It only decides between equal claims, so that an answer does not
	// swap replicas between equals. Leave it 0 where the answer must not depend on history.
	Current int64
}

// Options change how ties end.
type Options struct {
	// Seed other than 0 lets a hash of it and the key break ties before the key itself does: over a fleet of small
	// objects with seeds of their own, the odd replica then does not always go to the same zone.
	Seed uint64
}

// Result is the number of replicas for each target, and what could not be met.
type Result struct {
	// Replicas holds one number per target, in the order the targets were given.
	Replicas []int64
	// Deficit is by how much the minima exceed the total; the minima are honoured nevertheless.
	Deficit int64
	// Overflow is what no target could take.
	Overflow int64
	// MaxShareError is the largest distance of a target from its exact, fractional share within its bounds, as a part of
	// all replicas: 0.05 means that some target is off by five in a hundred. Only a report; nothing is decided by it.
	MaxShareError float64
}

// Distribute spreads total over the targets. Only malformed input is an error; too little room and too small a total
// are results.
func Distribute(total int64, targets []Target, o Options) (Result, error) {
	return placeTiers(total, targets, nil, o)
}

// placeTiers fills one tier after the other. Without health, every target is healthy.
func placeTiers(total int64, targets []Target, health []Health, o Options) (Result, error) {
	minima, err := checkTargets(total, targets)
	if err != nil {
		return Result{}, err
	}
	lanes, err := lineUp(targets, o.Seed)
	if err != nil {
		return Result{}, err
	}
	result := Result{Replicas: make([]int64, len(targets)), Deficit: max(0, minima-total)}
	rest, worst := max(0, total-minima), 0.0
	for len(lanes) > 0 {
		var tier []*lane
		tier, lanes = cutTier(lanes)
		left, gap := fillTier(tier, rest)
		worst = max(worst, gap)
		rest = coverBlocked(tier, health, left)
		for _, l := range tier {
			result.Replicas[l.target] = l.at
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

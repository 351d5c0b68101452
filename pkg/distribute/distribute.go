// SPDX-License-Identifier: Apache-2.0

package distribute

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

// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	"github.com/evenkeel/evenkeel/pkg/distribute"
)

// targets is the number of targets of a distribution.
const targets = 3

// share is a distribution: how many replicas each target gets, of a total number.
type share struct {
	min, max, weight [targets]uint8
	total            uint8
	got              [targets]uint8
}

func (s share) String() string {
	return fmt.Sprintf("%d replicas for min %v, max %v, weights %v: %v", s.total, s.min, s.max, s.weight, s.got)
}

// Distribution models a number of replicas that grows one by one, for all small targets.
type Distribution struct {
	// Most is the largest number of replicas.
	Most int
	// Unsteady distributes in proportion and rounds each share, which is not monotone.
	Unsteady bool
}

// Begin returns all small targets, without replicas.
func (d Distribution) Begin() []share {
	var all []share
	for i := range 1 << (3 * targets) {
		var s share
		for t := range targets {
			bits := i >> (3 * t)
			s.min[t], s.max[t], s.weight[t] = uint8(bits&1), uint8(2+bits>>1&1*3), uint8(1+bits>>2&1*2)
		}
		s.got = d.divide(s)
		all = append(all, s)
	}
	return all
}

func (d Distribution) divide(s share) (got [targets]uint8) {
	list, sum := make([]distribute.Target, targets), 0
	for t := range targets {
		list[t] = distribute.Target{Key: string(rune('a' + t)), Weight: int64(s.weight[t]), Min: int64(s.min[t]), Max: int64(s.max[t])}
		sum += int(s.weight[t])
	}
	if d.Unsteady {
		for t := range targets {
			got[t] = uint8(int(s.total) * int(s.weight[t]) / sum)
		}
		slices.Reverse(got[:int(s.total)%targets]) // what is left goes round
		return got
	}
	result, err := distribute.Distribute(int64(s.total), list, distribute.Options{})
	if err != nil {
		return got
	}
	for t := range targets {
		got[t] = uint8(result.Replicas[t])
	}
	return got
}

// Steps adds one replica.
func (d Distribution) Steps(s share) []Step[share] {
	if int(s.total) >= d.Most {
		return nil
	}
	to := s
	to.total++
	to.got = d.divide(to)
	step := Step[share]{What: "There is one replica more.", To: to}
	for t := range targets {
		if to.got[t] < s.got[t] {
			step.Broken = fmt.Sprintf("I8: Target %d loses a replica.", t)
		}
	}
	return []Step[share]{step}
}

// Rest implements [Model]: all distributions are at rest.
func (d Distribution) Rest(share) string { return "" }

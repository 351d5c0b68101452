// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

// judge holds the members against the laws.
func (f *fleet) judge() error {
	var maxima, minima int64
	for _, m := range f.members {
		if m.real.version == 0 {
			maxima += m.left()
			continue
		}
		if m.real.Min > m.real.Max || m.real.Max < 1 || m.real.Min < 1 {
			return fmt.Errorf("%s has %v", m.name, m.real.Bounds)
		}
		maxima, minima = maxima+m.real.Max, minima+m.real.Min
	}
	limit := int64(f.object.Spec.MaxReplicas)
	if f.object.Spec.Unreachable == nil {
		f.ceiling = max(limit, min(f.ceiling, int64(f.object.Status.CountedReplicas)))
		if maxima > f.ceiling {
			return fmt.Errorf("the maxima add up to %d, the limit is %d and %d was the most there could be", maxima, limit, f.ceiling)
		}
	}
	if counted := int64(f.object.Status.CountedReplicas); maxima > counted {
		return fmt.Errorf("the maxima add up to %d, and the status counts %d", maxima, counted)
	}
	return f.judgeMinima(minima)
}

// left returns what runs in a member without any autoscaler since it left, as far as it obeyed its last maximum.
func (m *member) left() int64 {
	if m.gone || m.managed {
		return 0
	}
	return min(m.real.left, m.removed.Max)
}

// judgeMinima wants that minima only move, once they have been met and as long as no cluster comes.
func (f *fleet) judgeMinima(sum int64) error {
	wanted := int64(*f.object.Spec.MinReplicas)
	moving := slices.ContainsFunc(f.object.Status.Clusters, func(c v1alpha1.ClusterStatus) bool { return c.Outstanding != nil })
	coming := slices.ContainsFunc(f.object.Status.Clusters, func(c v1alpha1.ClusterStatus) bool {
		// One for which others give waits again while it is not certain that they do.
		return c.State == v1alpha1.StateJoining || c.ConfirmedMaxReplicas == 0 && c.Outstanding != nil || c.State == v1alpha1.Waiting && moving
	})
	if coming || !f.steady {
		f.minimaMet = false
		return nil
	}
	if f.minimaMet && sum < wanted {
		return fmt.Errorf("the minima add up to %d of %d", sum, wanted)
	}
	f.minimaMet = sum >= wanted
	return nil
}

// judgePlan holds a plan against the laws.
func (f *fleet) judgePlan(v plan.View, p plan.Plan) error {
	shuffled := v
	shuffled.Clusters = slices.Clone(v.Clusters)
	f.random.Shuffle(len(shuffled.Clusters), reflect.Swapper(shuffled.Clusters))
	if again := plan.New(shuffled); !reflect.DeepEqual(again.Orders, p.Orders) {
		return fmt.Errorf("in another order of clusters: %v instead of %v", again.Orders, p.Orders)
	}
	for _, o := range p.Orders {
		if m := f.member(o.Cluster); !m.up || m.seen == nil || m.inFlight != nil {
			return fmt.Errorf("%s is written to though it is out of reach or busy", o.Cluster)
		}
		if o.Operation != plan.Remove && (o.Min > o.Max || o.Max < 1) {
			return fmt.Errorf("%s is sent %v", o.Cluster, o.Bounds)
		}
	}
	return nil
}

// calm has everything arrive, all links heal and the load stand still, and returns after how many rounds the fleet rests.
func (f *fleet) calm() (int, error) {
	for _, m := range f.members {
		m.up, m.capacity, m.gone = true, 100, false
		for _, o := range m.late {
			if _, err := f.land(m, o); err != nil {
				return 0, err
			}
		}
		m.late = nil
	}
	quiet := 0
	for round := range 60 {
		f.now = f.now.Add(150 * time.Second)
		before := f.object.Status
		p, err := f.sync(false)
		if err != nil {
			return 0, err
		}
		for _, m := range f.members {
			m.heard = f.now
			if err := f.answer(m, 0); err != nil {
				return 0, err
			}
			m.scale(f.now)
			m.observe(f.now)
		}
		if quiet++; len(p.Orders) > 0 || !reflect.DeepEqual(before, f.object.Status) {
			quiet = 0
		}
		if quiet == 6 {
			return round - quiet, f.judgeRest(p)
		}
	}
	return 0, fmt.Errorf("no rest after 60 rounds")
}

// judgeRest holds a fleet at rest against what was asked for.
func (f *fleet) judgeRest(p plan.Plan) error {
	var maxima, minima, left, used, limited, spare int64
	for _, m := range f.members {
		if m.real.version == 0 {
			left += m.left()
			continue
		}
		used++
		if !m.selected {
			return fmt.Errorf("%s is not selected and was left with %v", m.name, m.real.Bounds)
		}
		maxima, minima = maxima+m.real.Max, minima+m.real.Min
		preferred := f.preferredMax(m.name)
		if m.real.Max > preferred {
			return fmt.Errorf("%s has %v, its preference is %d", m.name, m.real.Bounds, preferred)
		}
		if m.load >= m.real.Max && m.real.Max < preferred {
			limited++
		}
		spare += max(0, m.real.Max-max(m.real.Min, m.load)-1)
	}
	if limit := int64(f.object.Spec.MaxReplicas); maxima+left > limit && maxima > used {
		return fmt.Errorf("at rest the maxima add up to %d of %d, and %d are left running elsewhere", maxima, limit, left)
	}
	if limited > 0 && spare > 0 {
		return fmt.Errorf("at rest %d clusters run their whole maximum, and %d are to spare elsewhere", limited, spare)
	}
	if wanted := min(int64(*f.object.Spec.MinReplicas), maxima); minima < wanted && slices.ContainsFunc(f.members, func(m *member) bool { return m.selected }) {
		return fmt.Errorf("at rest the minima add up to %d of %d", minima, wanted)
	}
	return nil
}

func (f *fleet) preferredMax(name string) int64 {
	for _, c := range f.object.Spec.Clusters {
		if c.Name == name {
			return min(int64(*c.MaxReplicas), int64(f.object.Spec.MaxReplicas))
		}
	}
	return int64(f.object.Spec.MaxReplicas)
}

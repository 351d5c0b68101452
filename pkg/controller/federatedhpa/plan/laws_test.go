// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// Random histories; a hundred thousand are a matter of minutes: go test ./pkg/controller/federatedhpa/plan -histories=100000
var (
	histories = flag.Int("histories", 4000, "random histories of the laws")
	history   = flag.Uint64("history", 0, "the only history to play, 0 for all")
)

// played is one history: its rounds to rest, or the law that it broke.
func played(seed uint64, steps int) (int, error) {
	f := newFleet(seed)
	for range steps {
		if err := f.happen(); err != nil {
			return 0, f.blame(seed, err)
		}
		if f.random.IntN(2) == 0 {
			if _, err := f.sync(true); err != nil {
				return 0, f.blame(seed, err)
			}
		}
	}
	f.note("calm")
	rounds, err := f.calm()
	if err != nil {
		return 0, f.blame(seed, err)
	}
	return rounds, nil
}

func (f *fleet) blame(seed uint64, err error) error {
	return fmt.Errorf("%w\nrepeat with -history=%d\n%s", err, seed, strings.Join(f.trail, "\n"))
}

var _ = Describe("Random histories", func() {
	It("keep the laws at every step, and come to rest", func() {
		longest := 0
		for seed := range uint64(*histories) {
			if *history != 0 && seed+1 != *history {
				continue
			}
			rounds, err := played(seed+1, 60)
			Expect(err).NotTo(HaveOccurred())
			longest = max(longest, rounds)
		}
		AddReportEntry("longest way to rest, in rounds", longest)
		Expect(longest).To(BeNumerically("<", 40))
	})
})

// edit is what users do.
func (f *fleet) edit(m *member) {
	if f.steady {
		return
	}
	f.object = f.object.DeepCopy()
	switch f.random.IntN(3) {
	case 0:
		m.selected = !m.selected
		f.note("%s selected: %v", m.name, m.selected)
	case 1:
		f.object.Spec.MaxReplicas = int32(6 + f.random.IntN(30))
		f.note("maxReplicas %d", f.object.Spec.MaxReplicas)
		f.ceiling = max(int64(f.object.Spec.MaxReplicas), int64(f.object.Status.CountedReplicas))
	case 2:
		f.object.Spec.MinReplicas = ptr.To(int32(1 + f.random.IntN(6)))
	}
}

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

// The numbers of federation v1's tests, where they are behaviours and not its step by step method.
var _ = Describe("The facts of the first federation", func() {
	DescribeTable("maxima",
		func(v plan.View, expected string) {
			Expect(aims(plan.New(v))).To(Equal(expected))
			carried(&v)
			Expect(aims(plan.New(v))).To(Equal(expected), "once it has been carried out")
			Expect(plan.New(v).Orders).To(BeEmpty())
		},
		Entry("F1: two new clusters share all", view(Federated(1, 10), none("c1"), none("c2")), "5/5"),
		Entry("F2: one that joins gets what an idle one has to spare", view(Federated(1, 10), has("c1", 1, 10, 0), none("c2")), "5/5"),
		Entry("F2: a busy one keeps what it runs", view(Federated(1, 10), has("c1", 1, 10, 9), none("c2")), "9/1"),
		Entry("F2: nothing is left, so it waits", view(Federated(1, 10), has("c1", 1, 10, 10), none("c2")), "10/-"),
		Entry("F3: demand of 2", view(Federated(1, 10), has("c1", 1, 7, 5), has("c2", 1, 1, 1, wants(2)), has("c3", 1, 2, 1)), "6/2/2"),
		Entry("F3: demand of 3", view(Federated(1, 10), has("c1", 1, 7, 5), has("c2", 1, 1, 1, wants(3)), has("c3", 1, 2, 1)), "5/3/2"),
		Entry("F4: nothing to give, nothing moves", view(Federated(1, 10), has("c1", 1, 9, 9, wants(12)), has("c2", 1, 1, 1, wants(2))), "9/1"),
		Entry("F6: no cluster is limited", view(Federated(4, 10), has("c1", 3, 6, 4), has("c2", 1, 4, 3)), "6/4"),
		Entry("F7: a raised maximum is handed out", view(Federated(4, 14), has("c1", 2, 5, 0), has("c2", 2, 5, 0)), "7/7"),
		Entry("F8: a lowered maximum is taken back", view(Federated(3, 8), has("c1", 2, 8, 0), has("c2", 1, 8, 0)), "4/4"),
	)

	It("F5: a minimum moves to where it is exceeded", func() {
		v := view(Federated(4, 10, Minima), has("c1", 3, 6, 3, wantsLess(2)), has("c2", 1, 4, 3))
		Expect(least(plan.New(v))).To(Equal("2/2"))
		Expect(orders(plan.New(v))).To(Equal([]string{"c2 2..4"}), "the receiver first")
		carried(&v)
		Expect(least(plan.New(v))).To(Equal("2/2"))
		Expect(aims(plan.New(v))).To(Equal("6/4"))
	})

	It("F6: no minimum moves where no cluster wants less", func() {
		v := view(Federated(4, 10, Minima), has("c1", 3, 6, 4), has("c2", 1, 4, 3))
		Expect(plan.New(v).Orders).To(BeEmpty())
	})

	DescribeTable("the examples of the modern rule",
		func(v plan.View, expected string) {
			stuck["stuck"] = true
			Expect(aims(plan.New(v))).To(Equal(expected))
			rounds := carried(&v)
			Expect(rounds).To(BeNumerically("<=", 3))
			Expect(aims(plan.New(v))).To(Equal(expected))
		},
		Entry("in proportion to demand, in one round", view(Federated(3, 30), has("c1", 1, 10, 10, wants(25)), has("c2", 1, 10, 2), has("c3", 1, 10, 2)), "24/3/3"),
		Entry("from one that cannot use it", isStuck(view(Federated(2, 12), has("c1", 1, 2, 2, wants(6)), has("stuck", 1, 10, 8, readyCondition(4)))), "7/5"),
		Entry("not from one out of reach", view(Federated(3, 30), has("c1", 1, 10, 10, wants(18)), has("c2", 1, 10, 3), has("c3", 1, 10, 3, away)), "16/4/10"),
		Entry("not without need", view(Federated(2, 30), has("c1", 1, 4, 3), has("c2", 1, 26, 3)), "4/26"),
		Entry("to a fourth", view(Federated(4, 30), has("c1", 1, 10, 2), has("c2", 1, 10, 2), has("c3", 1, 10, 2), none("c4")), "8/8/7/7"),
	)
})

// isStuck has the cluster of that name wait for its replicas for an hour.
func isStuck(v plan.View) plan.View {
	entry(&v, "stuck").NotReadySince = ago(3600e9)
	return v
}

var _ = Describe("What went wrong in the first federation", func() {
	It("ends where a cluster joins at the minimum (it looped)", func() {
		v := view(Federated(8, 10), has("c1", 5, 10, 7), none("c2"))
		Expect(carried(&v)).To(BeNumerically("<=", 4))
		p := plan.New(v)
		Expect(aims(p)).To(Equal("7/3"))
		Expect(least(p)).To(Equal("5/3"))
	})

	It("never means a maximum below the minimum, nor leaves 0..0 behind, when the bounds shrink", func() {
		v := view(Federated(1, 3, Strict), has("c1", 1, 2, 1), has("c2", 1, 2, 1), has("c3", 1, 2, 1), has("c4", 1, 2, 1), has("c5", 1, 2, 1))
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("1/-/-/-/-"), "what the others have left running counts")
		v = view(Federated(1, 3), has("c1", 1, 2, 1), has("c2", 1, 2, 1), has("c3", 1, 2, 1), has("c4", 1, 2, 1), has("c5", 1, 2, 1))
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("1/1/1/-/-"), "the maximum has room for three with an autoscaler")
		Expect(least(plan.New(v))).To(Equal("1/1/1/-/-"))
	})

	It("drops no cluster: 3..3 over three clusters", func() {
		v := view(Federated(3, 3), none("c1"), none("c2"), none("c3"))
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("1/1/1"))
	})

	It("decides the same every time, in whatever order the clusters come", func() {
		clusters := []plan.Cluster{has("c1", 1, 10, 2), has("c2", 1, 10, 2), has("c3", 1, 3, 3, wants(9))}
		first := orders(plan.New(view(Federated(3, 23), clusters...)))
		for range 200 {
			clusters[0], clusters[1], clusters[2] = clusters[1], clusters[2], clusters[0]
			Expect(orders(plan.New(view(Federated(3, 23), clusters...)))).To(Equal(first))
		}
	})

	It("uses as many clusters as the minimum allows, if that is asked for", func() {
		v := view(Federated(2, 10, Strict), none("c1"), none("c2"), none("c3"), none("c4"), none("c5"))
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("5/5/-/-/-"))
		Expect(least(plan.New(v))).To(Equal("1/1/-/-/-"))
	})

	It("serves 24/2/2 in one round of orders where the first took up to thirteen", func() {
		v := view(Federated(3, 30), has("c1", 1, 10, 10, wants(24)), has("c2", 1, 10, 2), has("c3", 1, 10, 2))
		p := plan.New(v)
		Expect(orders(p)).To(Equal([]string{"c2 1..3", "c3 1..3"}), "givers first")
		Expect(carried(&v)).To(Equal(2), "and the receiver once they have confirmed")
		Expect(aims(plan.New(v))).To(Equal("24/3/3"))
	})
})

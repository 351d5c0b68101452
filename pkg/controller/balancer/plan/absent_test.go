// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

// remove deletes the workload of a target.
func remove(v *View, i int) {
	absent(&v.Targets[i])
	v.Targets[i].Current, v.Targets[i].Replicas = 0, nil
}

// restore creates the workload of a target again, scaled to so many replicas.
func restore(v *View, i int, replicas int64) {
	t := &v.Targets[i]
	t.Hold, t.Known, t.Absent, t.Current = Hold{}, true, false, replicas
}

// run gives each target the replicas that it is scaled to. New ones are ready at once.
func run(v *View) {
	for i := range v.Targets {
		t := &v.Targets[i]
		if !t.Known {
			continue
		}
		t.Replicas = slices.Clone(t.Replicas[:min(len(t.Replicas), int(t.Current))])
		for len(t.Replicas) < int(t.Current) {
			t.Replicas = append(t.Replicas, Replica{Born: v.Now, Running: true, Ready: true, Since: v.Now, StartedAt: v.Now})
		}
	}
}

// passed is the view after some time in which each plan was carried out every 15 seconds.
func passed(v View, d time.Duration) View {
	v.Targets = slices.Clone(v.Targets)
	for range d / (15 * time.Second) {
		v = after(v, 15*time.Second, run)
	}
	return v
}

var _ = Describe("A target whose workload is deleted while it runs", func() {
	// gone has the workload of b deleted a moment ago, after all were at rest.
	gone := func(replicas int32, policy v1alpha1.BalancerPolicy, targets ...target) View {
		v := passed(view(replicas, policy, targets...), 10*time.Minute)
		remove(&v, 1)
		return v
	}

	It("keeps its share, which others take over after the timeout, and gets it back", func() {
		v := gone(10, builders.Even(), named("a"), named("b"))
		Expect(desired(New(v))).To(Equal("5/5"))
		v = passed(v, 10*time.Minute)
		Expect(desired(New(v))).To(Equal("10/5"))
		restore(&v, 1, 1)
		v = passed(v, 10*time.Minute)
		Expect(next(New(v))).To(Equal("5/5"))
	})

	It("is replaced after the timeout also if the clock that saw it go was ahead", func() {
		v := passed(gone(10, builders.Even(), named("a"), named("b")), 15*time.Second)
		v.Now = v.Now.Add(-24 * time.Hour)
		v = passed(v, 10*time.Minute)
		Expect(desired(New(v))).To(Equal("10/5"))
	})

	DescribeTable("has the share of a smaller total, and takes none of that from others",
		func(policy v1alpha1.BalancerPolicy, want, later string, b ...func(*target)) {
			for _, fallback := range []*v1alpha1.Fallback{builders.Fallback(), nil} {
				policy.Fallback = fallback
				v := gone(10, policy, named("a"), named("b", b...))
				v.Balancer.Spec.Replicas = ptr.To[int32](4)
				Expect(desired(New(v))).To(Equal(want))
				v = passed(v, 30*time.Second)
				Expect(desired(New(v))).To(Equal(want))
				if v = passed(v, 10*time.Minute); fallback != nil {
					Expect(next(New(v))).To(Equal(later))
				}
			}
		},
		Entry("of even ones", builders.Even(), "2/2", "4/0"),
		Entry("in proportion", builders.Shares(1, 3), "1/3", "4/0"),
		Entry("in an order", builders.InOrder("b", "a"), "0/4", "4/0"),
		Entry("of its minimum, which targets that come before it do not take over", builders.InOrder("a", "b"), "1/3", "1/0 O3", between(3, -1)),
	)

	It("has a share of a larger total", func() {
		v := gone(10, builders.Even(), named("a"), named("b"))
		v.Balancer.Spec.Replicas = ptr.To[int32](20)
		Expect(desired(New(v))).To(Equal("10/10"))
	})

	It("has none once it is drained", func() {
		v := gone(10, builders.Even(), named("a"), named("b"))
		v.Targets[1].Spec.State = v1alpha1.Drained
		Expect(desired(New(v))).To(Equal("10/0"))
	})
})

var _ = Describe("Targets that do not exist, whatever the spec", func() {
	It("have goals that add up to the total together with others, or the status says what is missing", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawSpec(t)
			for i := range v.Targets {
				if rapid.Bool().Draw(t, "absent") {
					remove(&v, i)
				}
			}
			v = passed(v, rapid.SampledFrom([]time.Duration{0, 30 * time.Second, 10 * time.Minute}).Draw(t, "for"))
			checkGoals(t, v)
		})
	})

	It("make nothing swing, neither as they go nor as they appear, after which all is as before", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := passed(drawSpec(t), 30*time.Minute)
			before := desired(New(v))
			var absent []int
			for i := range v.Targets {
				if rapid.Bool().Draw(t, "absent") {
					absent = append(absent, i)
					remove(&v, i)
				}
			}
			v = rests(t, v)
			checkGoals(t, v)
			for _, i := range absent {
				restore(&v, i, rapid.Int64Range(0, 9).Draw(t, "scaled to"))
			}
			v = rests(t, v)
			if now := desired(New(v)); now != before || next(New(v)) != before {
				t.Fatalf("%s before, %s afterwards, next %s", before, now, next(New(v)))
			}
		})
	})
})

// checkGoals checks that the goals of a plan add up to the total, or that it says what is missing.
func checkGoals(t *rapid.T, v View) {
	p := New(v)
	if p.Stop != (Hold{}) {
		t.Fatalf("%+v", p.Stop)
	}
	var goals, usable int64
	blocked := false
	for i, s := range told(v).Targets {
		desired := int64(s.Desired)
		goals += desired
		if p.Shares[i].Blocked() {
			blocked, desired = true, min(desired, max(0, int64(s.Observed-s.NotStarted)))
		}
		usable += desired
		if v.Targets[i].Absent && s.Desired > s.Base {
			t.Fatalf("%s does not exist and has %d of others", s.Name, s.Desired-s.Base)
		}
	}
	if usable+p.Overflow < p.Total || !blocked && goals+p.Overflow-p.Deficit != p.Total {
		t.Fatalf("goals %s of %d, of which %d are usable", desired(p), p.Total, usable)
	}
}

// rests waits for 15 minutes. A target goes to its goal, up when it has recovered and others have not, and down when they
// have; it turns no more often.
func rests(t *rapid.T, v View) View {
	turns, rising := make([]int, len(v.Targets)), make([]int, len(v.Targets))
	var trail []string
	for range 60 {
		p := New(v)
		trail = append(trail, fmt.Sprint(next(p), " of ", desired(p)))
		for i, s := range p.Shares {
			way := 0
			switch {
			case s.Next > s.Current:
				way = 1
			case s.Next < s.Current:
				way = -1
			}
			if way != 0 && way != rising[i] {
				turns[i], rising[i] = turns[i]+1, way
			}
			if turns[i] > 3 {
				t.Fatalf("%s goes up and down: %v", s.Name, slices.Compact(trail))
			}
		}
		v = passed(v, 15*time.Second)
	}
	if p := New(v); slices.ContainsFunc(p.Shares, Share.Moving) {
		t.Fatalf("no rest: %v", slices.Compact(trail))
	}
	return v
}

// drawSpec returns a view of targets that exist, with any policy and bounds.
func drawSpec(t *rapid.T) View {
	n := rapid.IntRange(1, 5).Draw(t, "targets")
	var targets []target
	var names []string
	for i := range n {
		lo := rapid.Int32Range(0, 5).Draw(t, "min")
		hi := rapid.SampledFrom([]int32{-1, lo, lo + 3, lo + 20}).Draw(t, "max")
		change := rapid.SampledFrom([]func(*target){func(*target) {}, between(lo, hi), percent("10%", "60%"), in(v1alpha1.Drained), in(v1alpha1.Draining)}).Draw(t, "bounds")
		names = append(names, string(rune('a'+i)))
		targets = append(targets, named(names[i], change))
	}
	weights := rapid.SliceOfN(rapid.Int32Range(0, 9), n, n).Draw(t, "weights")
	tiers := v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Tiers, Tiers: []v1alpha1.Tier{{Targets: names[:1]}, {Targets: names[1:]}}}
	policy := rapid.SampledFrom([]v1alpha1.BalancerPolicy{builders.Even(), builders.InOrder(rapid.Permutation(names).Draw(t, "order")...), builders.Shares(weights...), tiers}).Draw(t, "policy")
	if policy.Fallback = builders.Fallback(); rapid.Bool().Draw(t, "without fallback") {
		policy.Fallback = nil
	} else if rapid.Bool().Draw(t, "probing") {
		policy.Fallback.Probe = ptr.To[int32](1)
	}
	return view(rapid.Int32Range(0, 40).Draw(t, "replicas"), policy, targets...)
}

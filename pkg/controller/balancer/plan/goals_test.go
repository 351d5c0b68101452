// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

// ready gives a target all replicas, n of them ready, and the scale that asks for them.
func ready(n, all int) func(*target) {
	return func(t *target) {
		healthy(n)(t)
		t.Current = int64(all)
		for range all - n {
			t.Replicas = append(t.Replicas, crashing(time.Hour))
		}
	}
}

// frozen gives a target n machines, and no more can be created for now.
func frozen(n int) func(*target) {
	return func(t *target) { machines(n)(t); t.Capped = true }
}

// tier is a policy with one tier of the targets a and b.
func tier(shares map[string]int32) v1alpha1.BalancerPolicy {
	return v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Tiers, Tiers: []v1alpha1.Tier{{Targets: []string{"a", "b"}, Proportions: shares}}}
}

// recalling has the status remember what was written about targets.
func recalling(v View, past ...v1alpha1.TargetStatus) View {
	v.Balancer.Status.Targets = past
	return v
}

var _ = Describe("The goal of each target", func() {
	DescribeTable("depends on the policy and on what a target can take",
		func(replicas int, policy v1alpha1.BalancerPolicy, want string, a, b target) {
			Expect(desired(New(view(int32(replicas), policy, a, b)))).To(Equal(want))
		},
		Entry("in a tier, a target without a share has a share of 1", 8, tier(map[string]int32{"a": 3}), "6/2", named("a"), named("b")),
		Entry("in a tier, each target has its own share", 8, tier(map[string]int32{"a": 3, "b": 5}), "3/5", named("a"), named("b")),
		Entry("in a tier, a share of 0 gives nothing", 8, tier(map[string]int32{"a": 1, "b": 0}), "8/0", named("a"), named("b")),
		Entry("in a tier, a share below 0 gives nothing", 8, tier(map[string]int32{"a": 1, "b": -1}), "8/0", named("a"), named("b")),
		Entry("in an order, the first place of a target counts", 10, builders.InOrder("a", "b", "a"), "10/0", named("a"), named("b")),
		Entry("a minimum in percent is rounded down", 99, builders.InOrder("b", "a"), "0/99", named("a", percent("1%", "100%")), named("b")),
		Entry("a frozen machine target keeps its machines, although its maximum is higher", 10, builders.Even(), "2/8", named("a", between(0, 5), frozen(2)), named("b")),
		Entry("a frozen machine target is still limited by a lower maximum", 10, builders.Even(), "3/7", named("a", between(0, 3), frozen(8)), named("b")),
		Entry("a frozen machine target gets its minimum nevertheless", 10, builders.Even(), "4/6", named("a", between(4, -1), frozen(2)), named("b")),
		Entry("a target that was never observed keeps its share", 10, builders.Even(), "5/5", named("a", lost), named("b")),
	)

	It("is what a target that must not be changed has, also if its replicas fail and a probe is set", func() {
		v := view(10, builders.Even(), named("a", pods(5, 3), held), named("b"))
		v.Balancer.Spec.Policy.Fallback.Probe = ptr.To[int32](1)
		Expect(desired(New(v))).To(Equal("5/8"))
	})

	DescribeTable("of a target that cannot be seen is what it was scaled to",
		func(was int32, want string) {
			v := view(10, builders.InOrder("b", "a"), named("a", lost), named("b"))
			p := New(recalling(v, v1alpha1.TargetStatus{Name: "b", Replicas: 9}, v1alpha1.TargetStatus{Name: "a", Replicas: was}))
			Expect(desired(p)).To(Equal(want))
			Expect(p.Current()).To(Equal(Outcome{int64(was), 0}))
		},
		Entry("seven replicas", int32(7), "7/3"),
		Entry("one replica", int32(1), "1/9"),
		Entry("none", int32(0), "0/10"),
	)

	It("adds up to one replica if spec.replicas is not set", func() {
		v := view(10, builders.InOrder("a", "b"), named("a"), named("b"))
		v.Balancer.Spec.Replicas = nil
		Expect(desired(New(v))).To(Equal("1/0"))
		Expect(New(v).Total).To(BeEquivalentTo(1))
	})

	It("reports names and shares that count for nothing in alphabetical order", func() {
		p := New(view(10, builders.Shares(slices.Repeat([]int32{-1}, 20)...), named("a")))
		letters := strings.Split("abcdefghijklmnopqrst", "")
		Expect(p.Strangers).To(Equal(letters[1:]))
		Expect(p.Negative).To(Equal(letters))
	})

	DescribeTable("cannot be found, and nothing is scaled, if a workload reports a scale below 0",
		func(mention string, change ...func(*target)) {
			p := New(view(10, builders.Even(), named("a", append(change, asked(-1))...), named("b")))
			Expect(p.Stop.Phase).To(Equal(v1alpha1.PhaseApplyingPolicy))
			Expect(p.Stop.Reason).To(Equal("Invalid"))
			Expect(p.Stop.Message).To(And(ContainSubstring(mention), ContainSubstring("below 0")))
			Expect(p.Shares[1].Moving()).To(BeFalse())
		},
		Entry("of a target that is to be scaled", "move towards [5 5]"),
		Entry("of a target that must not be changed", `target "a"`, held),
	)
})

var _ = Describe("A Balancer that shares a target with an older one", func() {
	v := view(10, builders.Even(), named("a", healthy(3)), named("b", healthy(4)))
	v.Rival, v.Contested = "older", "b"

	It("stops, and names the target and the other Balancer", func() {
		Expect(New(v).Stop).To(Equal(Hold{Phase: v1alpha1.PhaseApplyingPolicy, Reason: "Conflict",
			Message: "target b is scaled by the older Balancer older: remove it from one of the two"}))
	})

	It("leaves every target as it is", func() {
		for i, n := range []int64{3, 4} {
			s := New(v).Shares[i]
			Expect([]int64{s.Current, s.Base, s.Desired, s.Next}).To(Equal([]int64{n, n, n, n}))
		}
		Expect(New(v).Current()).To(Equal(Outcome{3, 4}))
	})
})

var _ = Describe("One step towards the goals", func() {
	small := func(targets ...target) string { return next(New(view(8, builders.InOrder("a", "c", "b"), targets...))) }

	It("removes what the ready replicas of a target that must not be changed allow", func() {
		Expect(small(named("a", ready(2, 4), held), named("b", healthy(4), in(v1alpha1.Drained)), named("c", ready(2, 4), between(0, 4)))).To(Equal("4/2/4"))
	})

	It("removes what the usable replicas of a blocked target allow", func() {
		Expect(small(named("a", pods(4, 2), between(0, 4)), named("b", healthy(4), in(v1alpha1.Drained)), named("c", ready(2, 4), between(0, 4)))).To(Equal("4/2/4 O2"))
	})

	It("removes no machine before others are ready, if any of them may go, ready or not", func() {
		anyMayGo := func(t *target) { t.AnyMayGo = true }
		Expect(next(New(view(4, builders.InOrder("b", "a"), named("a", ready(2, 4), anyMayGo), named("b", asked(4)))))).To(Equal("4/4"))
		Expect(next(New(view(4, builders.InOrder("b", "a"), named("a", ready(2, 4)), named("b", asked(4)))))).To(Equal("2/4"), "of pods, those that are not ready go first")
	})

	It("removes machines even if none of them is ready, once enough replicas of other targets are", func() {
		drained := named("a", ready(0, 3), in(v1alpha1.Drained), func(t *target) { t.AnyMayGo = true })
		Expect(small(drained, named("b"), named("c", healthy(8)))).To(Equal("0/0/8"))
		Expect(small(drained, named("b"), named("c", ready(7, 8)))).To(Equal("3/0/8"), "others are not ready yet")
		Expect(small(drained, named("b"), named("c", healthy(5)))).To(Equal("3/0/8"), "others would have no room otherwise")
		some := named("a", ready(1, 3), in(v1alpha1.Drained), func(t *target) { t.AnyMayGo = true })
		Expect(small(some, named("b"), named("c", healthy(5)))).To(Equal("3/0/8"), "the same holds where some are ready")
	})

	It("adds all that others run in the place of a blocked target, also while its machines stay, because any of them may go", func() {
		stuck := func(n int) func(*target) {
			return func(t *target) { pods(4, n)(t); t.AnyMayGo, t.Machines = true, true }
		}
		of := func(a func(*target)) View {
			v := view(8, builders.Even(), named("a", a), named("b", machines(4)))
			v.Balancer.Spec.Policy.Fallback.Probe = ptr.To[int32](1)
			return v
		}
		Expect(next(New(of(stuck(3))))).To(Equal("4/7"), "one of them is ready, and may go before the others")
		v := of(stuck(4))
		Expect(next(New(v))).To(Equal("4/8"))
		v = after(v, time.Minute, func(v *View) { machines(8)(&v.Targets[1]) })
		Expect(next(New(v))).To(Equal("1/8"))
	})

	DescribeTable("adds, beside the surge, what a drained target keeps for now and is not ready", func(a func(*target), want string) {
		for _, state := range []v1alpha1.TargetState{v1alpha1.Drained, v1alpha1.Draining} {
			Expect(next(New(view(8, builders.Even(), named("a", a, in(state)), named("b", machines(3)))))).To(Equal(want))
		}
	},
		Entry("all of it", anyOf(4, 0), "4/8"),
		Entry("all but one", anyOf(4, 1), "4/8"),
		Entry("one", anyOf(4, 3), "4/6"),
		Entry("none", anyOf(4, 4), "4/5"),
		Entry("none, where those go first that are not ready", ready(1, 4), "1/5"),
	)

	It("adds nothing for what a blocked target keeps and could remove first, or for what it lacks", func() {
		v := view(8, builders.Even(), named("a", pods(4, 4), func(t *target) { t.Machines = true }), named("b", machines(4)))
		v.Balancer.Spec.Policy.Fallback.Probe = ptr.To[int32](1)
		Expect(next(New(v))).To(Equal("1/6"))
		v = view(9, builders.Even(), named("a", pods(2, 2), func(t *target) { t.AnyMayGo, t.Machines = true, true }), named("b", machines(4), in(v1alpha1.Drained)), named("c", machines(3)))
		Expect(next(New(v))).To(Equal("4/4/7"))
	})

	It("takes all replicas for ready where any may go and one is ready, so that they go one at a time", func() {
		small := func(a func(*target)) string {
			return next(New(view(4, builders.InOrder("b", "a"), named("a", a), named("b", healthy(4)))))
		}
		Expect(small(anyOf(3, 1))).To(Equal("2/4"))
		Expect(small(anyOf(3, 0))).To(Equal("0/4"))
	})

	It("adds one at a time if only the first target consists of machines", func() {
		Expect(next(New(view(8, builders.InOrder("b", "a"), named("a", machines(8)), named("b"))))).To(Equal("8/1"))
	})

	It("rounds the surge in percent up, and not beyond", func() {
		v := view(10, builders.InOrder("b", "a"), named("a", healthy(10)), named("b"))
		v.Balancer.Spec.Transition = &v1alpha1.Transition{MaxSurge: ptr.To(intstr.FromString("10%"))}
		Expect(next(New(v))).To(Equal("10/1"))
	})
})

// anyOf returns a target with the given numbers of machines and of ready machines. Any of them may be removed first.
func anyOf(current, started int) func(*target) {
	return func(t *target) { ready(started, current)(t); t.AnyMayGo, t.Machines = true, true }
}

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

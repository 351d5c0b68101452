// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

func healthy(n int) func(*target) { return pods(n, 0) }

func in(state v1alpha1.TargetState) func(*target) { return func(t *target) { t.Spec.State = state } }

func held(t *target) { t.Hold = Hold{v1alpha1.PhaseScaleSubresource, "Autoscaled", "x"} }

// lost is a target that cannot be observed; absent one that does not exist.
func lost(t *target) { held(t); t.Known = false }

func absent(t *target) { lost(t); t.Absent = true }

func percent(lo, hi string) func(*target) {
	return func(t *target) {
		t.Spec.MinReplicas, t.Spec.MaxReplicas = ptr.To(intstr.FromString(lo)), ptr.To(intstr.FromString(hi))
	}
}

func machines(n int) func(*target) {
	return func(t *target) { healthy(n)(t); t.AnyMayGo, t.Machines = true, true }
}

var _ = Describe("A plan", func() {
	DescribeTable("places",
		func(replicas int, policy v1alpha1.BalancerPolicy, want string, targets ...target) {
			Expect(desired(New(view(int32(replicas), policy, targets...)))).To(Equal(want))
		},
		Entry("evenly", 10, builders.Even(), "4/3/3", named("a"), named("b"), named("c")),
		Entry("by tiers, with shares within", 10, v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Tiers, Tiers: []v1alpha1.Tier{
			{Targets: []string{"a", "b"}, Proportions: map[string]int32{"a": 3}}, {Targets: []string{"c"}},
		}}, "6/2/2", named("a", between(0, 6)), named("b", between(0, 2)), named("c")),
		Entry("nothing in a drained target", 10, builders.Even(), "0/10", named("a", between(3, -1), in(v1alpha1.Drained)), named("b")),
		Entry("the minimum in a draining one", 10, builders.Even(), "3/7", named("a", between(3, -1), in(v1alpha1.Draining)), named("b")),
		Entry("percentages that together leave no gap", 3, builders.InOrder("a", "b"), "2/1", named("a", percent("50%", "50%")), named("b", percent("50%", "50%"))),
		Entry("the minimum if a percentage results in less", 4, builders.InOrder("a", "b"), "3/1", named("a", func(t *target) {
			t.Spec.MinReplicas, t.Spec.MaxReplicas = ptr.To(intstr.FromInt32(3)), ptr.To(intstr.FromString("50%"))
		}), named("b")),
		Entry("around a target that another one scales", 10, builders.Even(), "7/3", named("a", healthy(7), held), named("b")),
		Entry("around a target that is missing, keeping its share for it", 10, builders.Even(), "5/5", named("a", absent), named("b")),
		Entry("no raise in a frozen machine target", 10, builders.Even(), "2/8", named("a", machines(2), func(t *target) { t.Capped = true }), named("b")),
		Entry("all there can be", math.MaxInt32, builders.Even(), "1073741824/1073741823", named("a"), named("b")),
	)

	DescribeTable("stops, with what to do, for a stored object that",
		func(mention string, spoil func(*v1alpha1.BalancerSpec)) {
			v := view(10, builders.Even(), named("a"), named("b"))
			spoil(&v.Balancer.Spec)
			for i := range v.Targets {
				v.Targets[i].Spec = v.Balancer.Spec.Targets[i]
			}
			p := New(v)
			Expect(p.Stop.Reason).To(Equal("Invalid"))
			Expect(p.Stop.Message).To(ContainSubstring(mention))
			Expect(next(p)).To(Equal("Invalid"))
		},
		Entry("names a target twice", "rename one", func(s *v1alpha1.BalancerSpec) { s.Targets[1].Name = "a" }),
		Entry("has a workload twice", "names the same workload as another", func(s *v1alpha1.BalancerSpec) { s.Targets[1].ScaleTargetRef = s.Targets[0].ScaleTargetRef }),
		Entry("has a minimum above the maximum", "must not be above", func(s *v1alpha1.BalancerSpec) {
			s.Targets[0].MinReplicas, s.Targets[0].MaxReplicas = ptr.To(intstr.FromInt32(5)), ptr.To(intstr.FromInt32(3))
		}),
		Entry("has a negative bound", "use a number from 0", func(s *v1alpha1.BalancerSpec) { s.Targets[0].MinReplicas = ptr.To(intstr.FromInt32(-1)) }),
		Entry("has a bound of words", "or a percentage", func(s *v1alpha1.BalancerSpec) { s.Targets[0].MaxReplicas = ptr.To(intstr.FromString("many")) }),
		Entry("selects everything", "matches every pod", func(s *v1alpha1.BalancerSpec) { s.Selector = metav1.LabelSelector{} }),
		Entry("selects by garbage", "selector", func(s *v1alpha1.BalancerSpec) {
			s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}
		}),
		Entry("has no known policy", "is not known", func(s *v1alpha1.BalancerSpec) { s.Policy.PolicyName = "random" }),
		Entry("lacks its policy's block", "requires the field", func(s *v1alpha1.BalancerSpec) { s.Policy.PolicyName = v1alpha1.Priority }),
		Entry("has no timeout", "exactly one of", func(s *v1alpha1.BalancerSpec) { s.Policy.Fallback = &v1alpha1.Fallback{} }),
		Entry("has a surge of words", "transition", func(s *v1alpha1.BalancerSpec) {
			s.Transition = &v1alpha1.Transition{MaxSurge: ptr.To(intstr.FromString("x"))}
		}),
	)

	It("takes an unknown name in an order, and a second mention, for nothing", func() {
		p := New(view(10, builders.InOrder("x", "a", "a", "b"), named("a", healthy(9), asked(9), between(0, 9)), named("b", pods(1, 1))))
		Expect(desired(p)).To(Equal("9/1 O1"))
	})

	It("names shares of no target", func() {
		p := New(view(10, builders.Shares(1, 1, 1), named("a"), named("b")))
		Expect(p.Strangers).To(Equal([]string{"c"}))
		Expect(desired(p)).To(Equal("5/5"))
	})

	DescribeTable("reports which parts of a policy have no effect",
		func(policy v1alpha1.BalancerPolicy, reason, mention string) {
			v := view(10, policy, named("a"), named("b"))
			p := New(v)
			resolved := meta.FindStatusCondition(NewStatus(v, p, Outcome{0, 0}).Conditions, v1alpha1.ConditionTargetsResolved)
			Expect(resolved.Reason).To(Equal(reason))
			Expect(resolved.Message).To(ContainSubstring(mention))
		},
		Entry("nothing", builders.Shares(1, 1), "Resolved", "all targets"),
		Entry("no share", builders.Shares(0, 1), "Resolved", "all targets"),
		Entry("less than none", builders.Shares(-5, 1), "NegativeShares", "for a, which counts as 0: use 0"),
		Entry("less than none, twice", builders.Shares(-5, -1), "NegativeShares", "a, b"),
		Entry("a name without a target", builders.Shares(1, 1, 1), "UnknownNames", "contains c, which is not the name of a target"),
	)

	It("stands in for a missing target when its time is over, and takes it back when it is there and ready", func() {
		v := after(view(10, builders.Even(), named("a", absent), named("b", healthy(5))), 30*time.Second)
		Expect(desired(New(v))).To(Equal("5/5"))
		v = after(v, 31*time.Second)
		Expect(desired(New(v))).To(Equal("5/10"))
		v = after(v, time.Minute, func(v *View) { v.Targets[0] = named("a", asked(0)) })
		Expect(desired(New(v))).To(Equal("5/5"), "it exists, and has not failed yet")
	})

	DescribeTable("moves one step",
		func(transition *v1alpha1.Transition, want string, targets ...target) {
			v := view(8, builders.InOrder("b", "a"), targets...)
			v.Balancer.Spec.Transition = transition
			Expect(next(New(v))).To(Equal(want))
		},
		Entry("a quarter more at first", nil, "8/2", named("a", healthy(8)), named("b")),
		Entry("then as many less as are ready", nil, "6/2", named("a", healthy(8)), named("b", healthy(2))),
		Entry("none less before that", nil, "8/2", named("a", healthy(8)), named("b", asked(2))),
		Entry("with a surge of its own", &v1alpha1.Transition{MaxSurge: ptr.To(intstr.FromInt32(8))}, "8/8", named("a", healthy(8)), named("b")),
		Entry("with unavailability of its own", &v1alpha1.Transition{MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromString("50%"))}, "4/0", named("a", healthy(8)), named("b")),
		Entry("by one with machines", nil, "8/1", named("a", machines(8)), named("b", machines(0))),
		Entry("a quarter more, also of pods any of which may be deleted", nil, "8/2", named("a", healthy(8), func(t *target) { t.AnyMayGo = true }), named("b")),
		Entry("of machines, any of which may be deleted, only what is ready elsewhere", nil, "8/1", named("a", machines(8)), named("b", func(t *target) { t.AnyMayGo, t.Current = true, 1 })),
	)

	It("keeps room for a target that is missing while others move", func() {
		v := view(8, builders.Even(), named("a", absent), named("b", healthy(6)), named("c"))
		Expect(desired(New(v))).To(Equal("3/3/2"))
		Expect(next(New(v))).To(Equal("0/5/1"))
	})

	It("is at rest once it is carried out, whatever the view", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			for range 200 {
				p := New(v)
				if !slices.ContainsFunc(p.Shares, Share.Moving) {
					again := after(v, 0)
					if got := New(again); next(got) != next(p) && p.Stop == (Hold{}) {
						t.Fatalf("at rest with %s, then %s", next(p), next(got))
					}
					return
				}
				v = after(v, time.Second, obey)
			}
			t.Fatalf("no rest: %s of %s", next(New(v)), desired(New(v)))
		})
	})

	It("reaches rest at once if nothing happens but its own writes", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			v.Balancer.Status = drawMemory(t, v)
			reports := rapid.Bool().Draw(t, "workloads report what their controllers have seen")
			var statuses []v1alpha1.BalancerStatus
			for range 200 {
				asked := v.Targets
				v.Targets = slices.Clone(v.Targets)
				v = after(v, 0)
				if statuses = append(statuses, v.Balancer.Status); len(statuses) > 1 && equality.Semantic.DeepEqual(statuses[len(statuses)-2], v.Balancer.Status) {
					return
				}
				for i := range v.Targets {
					v.Targets[i].Settling = v.Targets[i].Settling || reports && v.Targets[i].Current != asked[i].Current
				}
			}
			t.Fatalf("no rest: %+v, then %+v", statuses[len(statuses)-2].Targets, statuses[len(statuses)-1].Targets)
		})
	})

	It("keeps bounds, counts everything, and moves no target that is held", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			p := New(v)
			if p.Stop != (Hold{}) {
				return
			}
			var base int64
			for i, s := range p.Shares {
				base += s.Base
				known := v.Targets[i].Known
				if known && s.Hold != (Hold{}) && (s.Moving() || s.Desired != s.Current) {
					t.Fatalf("held target %s moves from %d to %d", s.Name, s.Current, s.Desired)
				}
				if s.Next < 0 || s.Desired < 0 {
					t.Fatalf("target %s has %d, then %d", s.Name, s.Next, s.Desired)
				}
				if lo := v.Targets[i].Spec.MinReplicas; s.Hold == (Hold{}) && lo.Type == intstr.Int && v.Targets[i].Spec.State == "" && s.Desired < int64(lo.IntVal) {
					t.Fatalf("target %s has %d, less than its minimum %s", s.Name, s.Desired, lo)
				}
			}
			if base < p.Total-p.Overflow {
				t.Fatalf("%d of %d placed, overflow only %d", base, p.Total, p.Overflow)
			}
		})
	})

	It("has others run no more of a target than failed there, where as many run", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			v.Balancer.Spec.Policy.Fallback.Probe = nil
			p := New(v)
			surplus := -p.Total - p.Deficit + p.Overflow
			for i, s := range p.Shares {
				surplus += s.Desired - s.Fallback
				late := int64(len(slices.DeleteFunc(slices.Clone(v.Targets[i].Replicas), func(r Replica) bool { return r.Running })))
				if run := int64(len(v.Targets[i].Replicas)) - late; v.Targets[i].Known && late <= run && s.Fallback > late {
					t.Fatalf("%d of %s run elsewhere, and only %d failed while %d run", s.Fallback, s.Name, late, run)
				}
			}
			if p.Stop == (Hold{}) && surplus > 0 {
				t.Fatalf("%d more than all that is asked for and all that fails", surplus)
			}
		})
	})

	It("does not remove what may still run because its Node is not ready", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			unreachable := make([]int64, len(v.Targets))
			for i := range v.Targets {
				for j := range v.Targets[i].Replicas {
					if r := &v.Targets[i].Replicas[j]; !r.Running && rapid.Bool().Draw(t, "unreachable") {
						r.Unreachable = true
						unreachable[i]++
					}
				}
			}
			for i, s := range New(v).Shares {
				if s.Desired < min(s.Base, unreachable[i]) {
					t.Fatalf("target %s: %d of %d, although %d may run", s.Name, s.Desired, s.Base, unreachable[i])
				}
			}
		})
	})

	It("does not depend on the order of replicas, and has no panic in it", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			want := next(New(v))
			for i := range v.Targets {
				slices.Reverse(v.Targets[i].Replicas)
			}
			if got := next(New(v)); got != want {
				t.Fatalf("%s, in reverse %s", want, got)
			}
		})
	})
})

// obey gives every target the replicas it is asked for, all ready.
func obey(v *View) {
	for i := range v.Targets {
		t := &v.Targets[i]
		if !t.Known {
			continue
		}
		t.Replicas = nil
		for range t.Current {
			t.Replicas = append(t.Replicas, Replica{Born: v.Now.Add(-time.Hour), StartedAt: v.Now.Add(-time.Hour), Since: v.Now.Add(-time.Hour), Running: true, Ready: true})
		}
	}
}

func drawView(t *rapid.T) View {
	n := rapid.IntRange(2, 5).Draw(t, "targets")
	var targets []target
	var names []string
	for i := range n {
		names = append(names, string(rune('a'+i)))
		targets = append(targets, drawTarget(t, names[i]))
	}
	weights := rapid.SliceOfN(rapid.Int32Range(-1, 9), n, n).Draw(t, "weights")
	policy := rapid.SampledFrom([]v1alpha1.BalancerPolicy{builders.Even(), builders.InOrder(names[1:]...), builders.Shares(weights...)}).Draw(t, "policy")
	v := view(rapid.Int32Range(0, 40).Draw(t, "replicas"), policy, targets...)
	if rapid.Bool().Draw(t, "probing") {
		v.Balancer.Spec.Policy.Fallback.Probe = ptr.To[int32](1)
	}
	if n := rapid.Int32Range(0, 5).Draw(t, "quorum"); n > 0 {
		v.Balancer.Spec.Policy.Fallback.BlockedWhen = &v1alpha1.BlockedWhen{MinCount: &n}
	}
	if rapid.Bool().Draw(t, "with transition") {
		v.Balancer.Spec.Transition = &v1alpha1.Transition{MaxSurge: ptr.To(intstr.FromInt32(rapid.Int32Range(0, 5).Draw(t, "surge"))), MaxUnavailable: ptr.To(intstr.FromInt32(rapid.Int32Range(0, 5).Draw(t, "unavailable")))}
	}
	return v
}

// drawMemory is what an earlier plan may have left in the status.
func drawMemory(t *rapid.T, v View) v1alpha1.BalancerStatus {
	past := rapid.Custom(func(t *rapid.T) *metav1.Time {
		return rapid.SampledFrom([]*metav1.Time{nil, {Time: v.Now}, {Time: v.Now.Add(-30 * time.Second)}, {Time: v.Now.Add(-2 * time.Minute)}}).Draw(t, "time")
	})
	var status v1alpha1.BalancerStatus
	for _, target := range v.Targets {
		status.Targets = append(status.Targets, v1alpha1.TargetStatus{
			Name: target.Spec.Name, Replicas: int32(target.Current), UnstartedSince: past.Draw(t, "unstarted since"),
			NotStarted: rapid.Int32Range(0, 5).Draw(t, "not started"), Fallback: rapid.Int32Range(0, 5).Draw(t, "fallback"), BlockedSince: past.Draw(t, "blocked since"), RecoveredAt: past.Draw(t, "recovered at"), Blocks: rapid.Int32Range(0, 7).Draw(t, "blocks"),
		})
	}
	return status
}

func drawTarget(t *rapid.T, name string) target {
	lo := rapid.Int32Range(0, 5).Draw(t, "min")
	hi := rapid.SampledFrom([]int32{-1, lo, lo + 3, lo + 20}).Draw(t, "max")
	all := rapid.IntRange(0, 20).Draw(t, "pods")
	change := []func(*target){between(lo, hi), pods(all, rapid.IntRange(0, all).Draw(t, "stuck")), asked(rapid.Int64Range(0, 25).Draw(t, "asked"))}
	if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
		change = append(change, rapid.SampledFrom([]func(*target){held, absent, lost, in(v1alpha1.Drained), in(v1alpha1.Draining),
			func(t *target) { t.AnyMayGo = true }, func(t *target) { t.Capped = true }, percent("10%", "60%")}).Draw(t, "how"))
	}
	return named(name, change...)
}

// FuzzNew wants a plan, and a status, for whatever may have been stored.
func FuzzNew(f *testing.F) {
	for _, text := range []string{
		`{}`,
		`{"spec":{"targets":[{"name":"a"},{"name":"b"}],"policy":{"policyName":"even"},"selector":{"matchLabels":{"a":"b"}}}}`,
		`{"spec":{"replicas":7,"targets":[{"name":"a","minReplicas":1},{"name":"b","maxReplicas":"50%"}],"policy":{"policyName":"proportional","proportions":{"targetProportions":{"a":1,"b":2}}},"selector":{"matchLabels":{"a":"b"}}}}`,
		`{"spec":{"replicas":2147483647,"targets":[{"name":"a","minReplicas":"100%","maxReplicas":0}],"policy":{"policyName":"tiers","tiers":[{"targets":["a","a"],"proportions":{"b":-1}}],"fallback":{"startupTimeout":"-1h","probe":-1,"recoveryDelaySeconds":2147483647}},"transition":{"maxSurge":-1},"selector":{"matchLabels":{"a":"b"}}}}`,
		`{"status":{"targets":[{"name":"a","replicas":-5,"ready":-1,"blocks":-2147483648,"blockedSince":"0001-01-01T00:00:00Z"}]}}`,
	} {
		for _, shape := range []uint8{0, 3} { // all targets are known, and two are absent
			f.Add([]byte(text), shape)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, shape uint8) {
		b := &v1alpha1.Balancer{}
		if json.Unmarshal(text, b) != nil {
			return
		}
		v := View{Now: noon, Balancer: b}
		for i, spec := range b.Spec.Targets {
			tt := target{Spec: spec, Known: shape>>(i%8)&1 == 0, Absent: shape>>(i%8)&1 != 0}
			pods(i%9, i%3)(&tt)
			v.Targets = append(v.Targets, tt)
		}
		p := New(v)
		var o Outcome
		for _, s := range p.Shares {
			if s.Next < 0 && p.Stop == (Hold{}) {
				t.Fatalf("target %s is asked for %d", s.Name, s.Next)
			}
			o = append(o, s.Next)
		}
		status(v, p, o)
	})
}

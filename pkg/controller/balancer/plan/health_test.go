// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

// Each story is about target a of two equal ones with 10 replicas in all; b is well.
var _ = Describe("Health", func() {
	story := func(change ...func(*v1alpha1.Fallback)) View {
		v := view(10, builders.Even(), named("a", healthy(5)), named("b", healthy(5)))
		v.Balancer.Spec.Policy.Fallback = builders.Fallback(change...)
		return v
	}
	// has gives a its replicas, by how long before the plan each of them began, and b all that it is asked for.
	has := func(replicas ...Replica) func(*View) {
		return func(v *View) {
			shift := v.Now.Sub(noon)
			v.Targets[0].Replicas = nil
			for _, r := range replicas {
				r.Born = r.Born.Add(shift)
				for _, at := range []*time.Time{&r.Since, &r.StartedAt} {
					if !at.IsZero() {
						*at = at.Add(shift)
					}
				}
				v.Targets[0].Replicas = append(v.Targets[0].Replicas, r)
			}
			healthy(int(v.Targets[1].Current))(&v.Targets[1])
		}
	}
	well, young := running(time.Hour), pending(time.Second)
	four := []Replica{well, well, well, well}

	It("blocks a target whose pods are replaced before each is late, and keeps it so", func() {
		v := after(story(), time.Second, has(append(four, young)...))
		for range 6 {
			Expect(desired(New(v))).To(Equal("5/5"))
			v = after(v, 10*time.Second, has(append(four, young)...))
		}
		v = after(v, 2*time.Second, has(append(four, young)...))
		for range 30 {
			Expect(desired(New(v))).To(Equal("5/6"))
			Expect(told(v).Targets[0].NotStarted).To(BeEquivalentTo(1))
			v = after(v, 10*time.Second, has(append(four, young)...))
		}
	})

	It("does not block a target in which one pod after the other starts", func() {
		v := story()
		for range 30 {
			v = after(v, 30*time.Second, has(well, well, well, running(5*time.Second), young))
			Expect(desired(New(v))).To(Equal("5/5"))
		}
	})

	It("gives a scale that was just written its time", func() {
		v := after(story(), time.Hour, func(v *View) { *v.Balancer.Spec.Replicas = 20 })
		five := append(four, well)
		v = after(v, time.Second, has(five...))
		v = after(v, 59*time.Second, has(five...))
		Expect(desired(New(v))).To(Equal("10/10"))
		v = after(v, 2*time.Second, has(five...))
		Expect(desired(New(v))).To(Equal("10/15"))
	})

	It("returns when to check again, and decides then", func() {
		v := after(story(), 0, has(append(four, pending(20*time.Second))...))
		p := New(v)
		Expect(p.Again).To(Equal(40*time.Second + time.Millisecond))
		v = after(v, p.Again, has(append(four, pending(60*time.Second+time.Millisecond))...))
		Expect(desired(New(v))).To(Equal("5/6"))
	})

	It("takes a replica for recovered only when it has been ready for a while", func() {
		v := after(story(), 0, has(append(four, pending(2*time.Minute))...))
		v = after(v, 10*time.Second, has(append(four, pending(2*time.Minute))...))
		Expect(desired(New(v))).To(Equal("5/6"))
		v = after(v, time.Minute, has(append(four, crashing(time.Second))...))
		Expect(desired(New(v))).To(Equal("5/6"), "it runs, but is not ready")
		v = after(v, time.Minute, has(append(four, running(29*time.Second))...))
		Expect(desired(New(v))).To(Equal("5/6"))
		Expect(New(v).Again).To(Equal(time.Second + time.Millisecond))
		v = after(v, time.Second, has(append(four, running(30*time.Second))...))
		Expect(desired(New(v))).To(Equal("5/5"))
	})

	It("waits for recoveryDelaySeconds, and twice as long the next time", func() {
		v := story(func(f *v1alpha1.Fallback) { f.RecoveryDelaySeconds = ptr.To[int32](100) })
		for _, want := range []time.Duration{100 * time.Second, 200 * time.Second} {
			for range 2 {
				v = after(v, 10*time.Second, has(append(four, pending(2*time.Minute))...))
			}
			v = after(v, 5*time.Minute, has(append(four, running(want-time.Second))...))
			Expect(desired(New(v))).To(Equal("5/6"))
			v = after(v, time.Second, has(append(four, running(want))...))
			Expect(desired(New(v))).To(Equal("5/5"))
		}
	})

	It("reads a timeout in seconds, and one with a unit, which is 0 if it is negative", func() {
		for timeout, blocked := range map[time.Duration]bool{time.Minute: true, 90 * time.Second: true, 3 * time.Minute: false, -time.Minute: true} {
			v := story(func(f *v1alpha1.Fallback) {
				f.StartupTimeoutSeconds, f.StartupTimeout = nil, &metav1.Duration{Duration: timeout}
			})
			for range 2 {
				v = after(v, 10*time.Second, has(append(four, pending(2*time.Minute))...))
			}
			Expect(desired(New(v)) == "5/6").To(Equal(blocked), "%v", timeout)
		}
	})

	It("shows which target is blocked", func() {
		v := after(story(), 0, has(append(four, pending(2*time.Minute))...))
		v = after(v, 10*time.Second, has(append(four, pending(2*time.Minute))...))
		targets := told(v).Targets
		Expect([]string{targets[0].Reason, targets[1].Reason}).To(Equal([]string{"Blocked", ""}))
	})

	It("waits longer each time for a target that fails again soon after", func() {
		v := story()
		block := func() { v = after(v, 10*time.Second, has(append(four, pending(2*time.Minute))...)) }
		recovers := func(since time.Duration) string {
			v = after(v, time.Minute, has(append(four, running(since))...))
			return desired(New(v))
		}
		block()
		block()
		Expect(recovers(31 * time.Second)).To(Equal("5/5"))
		block()
		block()
		Expect(recovers(31 * time.Second)).To(Equal("5/6"))
		Expect(recovers(59 * time.Second)).To(Equal("5/6"))
		Expect(recovers(60 * time.Second)).To(Equal("5/5"))
		v = after(v, 24*time.Hour, has(append(four, well)...))
		block()
		block()
		Expect(recovers(31*time.Second)).To(Equal("5/5"), "that was long ago")
	})

	It("asks a blocked target for what runs and the probe", func() {
		v := story(func(f *v1alpha1.Fallback) { f.Probe = ptr.To[int32](1) })
		late := pending(2 * time.Minute)
		v = after(v, 0, has(well, well, late, late, late))
		Expect(desired(New(v))).To(Equal("3/8"))
		v = after(v, time.Minute, has(well, well, late))
		Expect(desired(New(v))).To(Equal("3/8"))
		v = after(v, time.Minute, has(well, well, running(30*time.Second)))
		Expect(desired(New(v))).To(Equal("5/5"), "the probe has succeeded")
		Expect(next(New(v))).To(Equal("5/7"), "additional replicas are removed only as others become ready")
	})

	It("keeps a target blocked until its probe has succeeded, also if more must fail before it is blocked", func() {
		v := story(func(f *v1alpha1.Fallback) {
			f.Probe, f.BlockedWhen = ptr.To[int32](1), &v1alpha1.BlockedWhen{MinCount: ptr.To[int32](2)}
		})
		late := pending(2 * time.Minute)
		v = after(v, 0, has(well, well, late, late, late))
		Expect(desired(New(v))).To(Equal("3/8"))
		v = after(v, time.Minute, has(well, well, late))
		Expect(desired(New(v))).To(Equal("3/8"))
		v = after(v, time.Minute, has(well, well, running(30*time.Second)))
		Expect(desired(New(v))).To(Equal("5/5"))
		v = after(v, time.Minute, has(append(four, late)...))
		Expect(desired(New(v))).To(Equal("5/5"), "one is no quorum")
	})

	It("counts a quorum before it blocks a target, and until it recovers", func() {
		v := story(func(f *v1alpha1.Fallback) { f.BlockedWhen = &v1alpha1.BlockedWhen{Percent: ptr.To[int32](30)} })
		late := pending(2 * time.Minute)
		v = after(v, time.Second, has(append(four, late)...))
		Expect(desired(New(v))).To(Equal("5/5"))
		v = after(v, time.Second, has(well, well, well, late, late))
		Expect(desired(New(v))).To(Equal("5/7"))
		v = after(v, time.Minute, has(append(four, late)...))
		Expect(desired(New(v))).To(Equal("5/5"))
	})

	It("gives replicas their time that are requested where fewer are stuck than block a target", func() {
		v := story(func(f *v1alpha1.Fallback) { f.BlockedWhen = &v1alpha1.BlockedWhen{MinCount: ptr.To[int32](2)} })
		stuck := has(append(four, pending(2*time.Minute))...)
		for range 3 {
			v = after(v, time.Minute, stuck)
		}
		v = after(v, time.Second, func(v *View) { *v.Balancer.Spec.Replicas = 20 })
		v = after(v, time.Second, stuck)
		Expect(desired(New(v))).To(Equal("10/10"))
		v = after(v, 60*time.Second, stuck)
		Expect(desired(New(v))).To(Equal("10/10"))
		v = after(v, time.Second, stuck)
		Expect(desired(New(v))).To(Equal("10/16"))
	})

	It("takes a crash loop for a failure only if told to", func() {
		loops := crashing(2 * time.Minute)
		v := after(story(), 0, has(append(four, loops)...))
		Expect(desired(New(v))).To(Equal("5/5"))
		v = after(story(func(f *v1alpha1.Fallback) { f.StartCriterion = v1alpha1.Ready }), 0, has(append(four, loops)...))
		Expect(desired(New(v))).To(Equal("5/6"))
	})

	It("takes no crash loop for a recovery that is ready for a moment, if a replica must be ready", func() {
		v := story(func(f *v1alpha1.Fallback) { f.StartCriterion = v1alpha1.Ready })
		loops := crashing(2 * time.Minute)
		for range 2 {
			v = after(v, 10*time.Second, has(append(four, loops)...))
		}
		Expect(desired(New(v))).To(Equal("5/6"))
		loops.Ready, loops.Since = true, noon.Add(-time.Second)
		v = after(v, 10*time.Second, has(append(four, loops)...))
		Expect(desired(New(v))).To(Equal("5/6"))
		Expect(New(v).Again).To(Equal(29*time.Second + time.Millisecond))
		loops.Since = noon.Add(-30 * time.Second)
		v = after(v, 29*time.Second, has(append(four, loops)...))
		Expect(desired(New(v))).To(Equal("5/5"))
	})

	It("does not block a target in which one pod after the other gets ready, each in time", func() {
		v := story(func(f *v1alpha1.Fallback) { f.StartCriterion = v1alpha1.Ready })
		slow := func(age, ready time.Duration) Replica {
			r := crashing(age)
			if r.Since = (time.Time{}); ready > 0 {
				r.Ready, r.Since = true, noon.Add(-ready)
			}
			return r
		}
		for range 10 {
			v = after(v, 5*time.Second, has(well, well, well, slow(51*time.Second, time.Second), slow(time.Second, 0)))
			Expect(desired(New(v))).To(Equal("5/5"))
			v = after(v, 45*time.Second, has(well, well, well, slow(96*time.Second, 46*time.Second), slow(46*time.Second, 0)))
			Expect(desired(New(v))).To(Equal("5/5"))
		}
	})

	It("blocks a target that lacks a pod also while an old one gets ready again and again, if a replica must be ready", func() {
		v := story(func(f *v1alpha1.Fallback) { f.StartCriterion = v1alpha1.Ready })
		flaps := well
		flaps.Since = noon.Add(-time.Second)
		for range 7 {
			v = after(v, 10*time.Second, has(well, well, well, flaps))
			Expect(desired(New(v))).To(Equal("5/5"))
		}
		v = after(v, 10*time.Second, has(well, well, well, flaps))
		Expect(desired(New(v))).To(Equal("5/6"))
	})

	It("needs no patience where there is no capacity", func() {
		exhausted := young
		exhausted.OutOfStock = true
		Expect(desired(New(after(story(), 0, has(append(four, exhausted)...))))).To(Equal("5/6"))
	})

	It("never falls back without being told to", func() {
		v := story()
		v.Balancer.Spec.Policy.Fallback = nil
		v = after(v, 100*time.Hour, has())
		Expect(desired(New(v))).To(Equal("5/5"))
		Expect(New(v).Again).To(BeZero())
	})

	It("reads a workload's own counts where there is nothing else", func() {
		counts := func(observed, ready int64) func(*View) {
			return func(v *View) {
				v.Targets[0].Counted, v.Targets[0].Counts, v.Targets[0].Replicas = true, Counts{Observed: observed, Ready: ready}, nil
				healthy(int(v.Targets[1].Current))(&v.Targets[1])
			}
		}
		v := after(story(), 0, counts(5, 3))
		v = after(v, 40*time.Second, counts(5, 3))
		v = after(v, 40*time.Second, counts(5, 4))
		Expect(desired(New(v))).To(Equal("5/5"), "one has got ready meanwhile")
		v = after(v, 62*time.Second, counts(5, 4))
		Expect(desired(New(v))).To(Equal("5/6"))
		v = after(v, 10*time.Second, counts(5, 5))
		Expect(desired(New(v))).To(Equal("5/5"))
	})

	Describe("with a hundred replicas in each target, of which one is stuck", func() {
		many := func(n int, r Replica) []Replica { return slices.Repeat([]Replica{r}, n) }
		stuck := pending(2 * time.Minute)
		grown := func(change ...func(*v1alpha1.Fallback)) View {
			v := story(change...)
			*v.Balancer.Spec.Replicas = 200
			v = after(v, 0, has(append(many(99, well), stuck)...))
			v = after(v, time.Second, has(append(many(99, well), stuck)...))
			Expect(desired(New(v))).To(Equal("100/101"))
			return after(v, time.Minute, has(append(many(99, well), stuck)...), func(v *View) { *v.Balancer.Spec.Replicas = 300 })
		}
		elsewhere := func(v View) int64 { return New(v).Shares[0].Fallback }

		It("has one more run elsewhere when both grow, from the request until the stuck one runs", func() {
			v := grown()
			for _, now := range [][]Replica{
				append(many(99, well), stuck), slices.Concat(many(99, well), many(50, young), many(1, stuck)), slices.Concat(many(99, well), many(50, running(5*time.Second)), many(1, stuck)),
				slices.Concat(many(99, well), many(50, running(time.Minute)), many(1, stuck)), slices.Concat(many(99, well), many(50, running(time.Minute)), many(1, running(29*time.Second))),
			} {
				Expect(desired(New(v))).To(Equal("150/151"))
				Expect(elsewhere(v)).To(BeEquivalentTo(1))
				v = after(v, time.Second, has(now...))
			}
			v = after(v, time.Second, has(append(many(149, running(time.Minute)), running(30*time.Second))...))
			Expect(desired(New(v))).To(Equal("150/150"))
		})

		It("has one more run elsewhere also if the stuck one is replaced again and again", func() {
			v := story()
			*v.Balancer.Spec.Replicas = 200
			v = after(v, time.Second, has(append(many(99, well), stuck)...))
			for range 30 {
				v = after(v, 5*time.Second, has(append(many(99, well), young)...))
				Expect(desired(New(v))).To(Equal("100/101"))
			}
			v = after(v, time.Second, has(append(many(99, well), young)...), func(v *View) { *v.Balancer.Spec.Replicas = 300 })
			Expect(desired(New(v))).To(Equal("150/151"))
			v = after(v, time.Second, has(append(many(99, well), young)...))
			Expect(desired(New(v))).To(Equal("150/151"), "the new ones are not created yet")
		})

		It("takes none from the other target for replicas of this one that are in time but do not run yet", func() {
			v := story()
			*v.Balancer.Spec.Replicas = 200
			for range 2 {
				v = after(v, time.Second, has(append(many(99, well), stuck)...))
			}
			v = after(v, time.Minute, has(append(many(99, well), stuck)...), func(v *View) { v.Balancer.Spec.Policy = builders.Shares(150, 50) })
			Expect(desired(New(v))).To(Equal("150/51"))
			Expect(next(New(v))).To(Equal("150/101"))
		})

		It("has those run elsewhere, too, that do not start either", func() {
			v := grown(func(f *v1alpha1.Fallback) { f.Probe = ptr.To[int32](1) })
			Expect(desired(New(v))).To(Equal("150/151"))
			v = after(v, time.Second, has(slices.Concat(many(99, well), many(20, young), many(1, stuck))...))
			Expect(desired(New(v))).To(Equal("150/151"), "30 are not created yet")
			v = after(v, 59*time.Second, has(slices.Concat(many(99, well), many(20, young), many(1, stuck))...))
			Expect(desired(New(v))).To(Equal("150/151"))
			v = after(v, 2*time.Second, has(slices.Concat(many(99, well), many(20, young), many(1, stuck))...))
			Expect(desired(New(v))).To(Equal("100/201"), "none of them has started")
			Expect(elsewhere(v)).To(BeEquivalentTo(51))
		})

		It("counts what starts one after the other as in time", func() {
			v := grown()
			for n := range 10 {
				v = after(v, 50*time.Second, has(slices.Concat(many(99, well), many(n, running(time.Minute)), many(1, running(time.Second)), many(1, stuck))...))
				Expect(desired(New(v))).To(Equal("150/151"))
			}
		})

		It("has everything that does not run run elsewhere once more fail than run, until that has been ready for a while", func() {
			v := grown()
			v = after(v, time.Minute, has(slices.Concat(many(49, well), many(50, stuck), many(51, young))...))
			Expect(desired(New(v))).To(Equal("150/251"))
			for _, recovered := range []Replica{young, running(29 * time.Second)} {
				v = after(v, time.Second, has(append(many(49, well), many(101, recovered)...)...))
				Expect(desired(New(v))).To(Equal("150/251"))
			}
			v = after(v, time.Second, has(slices.Concat(many(49, well), many(60, running(30*time.Second)), many(41, young))...))
			Expect(desired(New(v))).To(Equal("150/191"), "it ends as they run, and not at once where more run than failed")
		})

		It("remembers what runs elsewhere while nothing can be done", func() {
			v := grown()
			v = after(v, time.Second, has(append(many(99, well), many(51, young)...)...), func(v *View) { v.Rival, v.Contested = "older", "b" })
			Expect(elsewhere(v)).To(BeEquivalentTo(1))
			v = after(v, time.Second, has(append(many(99, well), many(51, young)...)...), func(v *View) { v.Rival, v.Contested = "", "" })
			Expect(desired(New(v))).To(Equal("150/151"))
		})
	})

	Describe("of replicas whose Nodes are not ready", func() {
		lost := func(since time.Duration) []Replica {
			return slices.Repeat([]Replica{well.OnNode(node(false, since))}, 5)
		}
		back := func(since time.Duration) Replica { return well.OnNode(node(true, since)) }

		It("blocks the target after the timeout, and keeps them beside the probe until they are gone", func() {
			v := story(func(f *v1alpha1.Fallback) { f.Probe = ptr.To[int32](1) })
			v = after(v, 0, has(lost(0)...))
			Expect(New(v).Again).To(Equal(time.Minute + time.Millisecond))
			v = after(v, time.Minute, has(lost(time.Minute)...))
			Expect(desired(New(v))).To(Equal("5/5"))
			v = after(v, time.Second, has(lost(61*time.Second)...))
			for range 3 {
				Expect(desired(New(v))).To(Equal("5/10"))
				v = after(v, time.Minute, has(lost(5*time.Minute)...))
			}
			v = after(v, time.Minute, has(slices.Repeat([]Replica{young}, 5)...))
			Expect(desired(New(v))).To(Equal("1/10"), "they were evicted")
		})

		DescribeTable("keeps them beside the probe when their Nodes are back, until they count", func(criterion v1alpha1.StartCriterion) {
			v := story(func(f *v1alpha1.Fallback) { f.Probe, f.StartCriterion = ptr.To[int32](1), criterion })
			for range 2 {
				v = after(v, 61*time.Second, has(lost(61*time.Second)...))
			}
			marked := crashing(time.Hour)
			marked.Since = noon.Add(-2 * time.Minute)
			v = after(v, time.Second, has(slices.Repeat([]Replica{marked.OnNode(node(true, time.Second))}, 5)...))
			Expect(desired(New(v))).To(Equal("5/10"), "their kubelet has not restored their readiness yet")
			v = after(v, time.Second, has(slices.Repeat([]Replica{back(2 * time.Second)}, 5)...))
			Expect(desired(New(v))).To(Equal("5/10"))
			v = after(v, 28*time.Second, has(slices.Repeat([]Replica{back(30 * time.Second)}, 5)...))
			Expect(desired(New(v))).To(Equal("5/5"))
		},
			Entry("where they must run", v1alpha1.Running),
			Entry("where they must be ready", v1alpha1.Ready),
		)

		It("keeps no replica beside the probe that only restarts", func() {
			v := story(func(f *v1alpha1.Fallback) { f.Probe, f.StartCriterion = ptr.To[int32](1), v1alpha1.Ready })
			for range 3 {
				v = after(v, time.Minute, has(slices.Repeat([]Replica{crashing(2 * time.Minute)}, 5)...))
			}
			Expect(desired(New(v))).To(Equal("1/10"))
			v = after(v, time.Second, has(running(time.Second)))
			Expect(desired(New(v))).To(Equal("1/10"), "a probe that has just started is one")
		})

		It("counts them again once their Nodes have been ready for a while, which is longer the next time", func() {
			v := story()
			for _, delay := range []time.Duration{30 * time.Second, 60 * time.Second} {
				for range 2 {
					v = after(v, 61*time.Second, has(lost(61*time.Second)...))
				}
				Expect(desired(New(v))).To(Equal("5/10"))
				v = after(v, time.Second, has(slices.Repeat([]Replica{back(delay - time.Second)}, 5)...))
				Expect(desired(New(v))).To(Equal("5/10"))
				v = after(v, time.Second, has(slices.Repeat([]Replica{back(delay)}, 5)...))
				Expect(desired(New(v))).To(Equal("5/5"))
			}
		})

		It("moves nothing if Nodes come and go, each for less than the timeout", func() {
			v := story()
			for range 10 {
				v = after(v, 50*time.Second, has(append(slices.Repeat([]Replica{well}, 3), back(time.Second), lost(45 * time.Second)[0])...))
				Expect(desired(New(v))).To(Equal("5/5"))
				v = after(v, 5*time.Second, has(append(slices.Repeat([]Replica{well}, 3), back(6*time.Second), back(time.Second))...))
				Expect(desired(New(v))).To(Equal("5/5"))
			}
		})

		It("moves nothing if no target has anything else", func() {
			v := story(func(f *v1alpha1.Fallback) { f.Probe = ptr.To[int32](1) })
			for range 5 {
				v = after(v, 61*time.Second, has(lost(61*time.Second)...), func(v *View) { v.Targets[1].Replicas = lost(61 * time.Second) })
				Expect(next(New(v))).To(HavePrefix("5/5"))
			}
		})
	})

	It("stands still while the target cannot be seen", func() {
		v := after(story(), 0, has(append(four, pending(2*time.Minute))...))
		v = after(v, time.Second, has(append(four, pending(2*time.Minute))...))
		v = after(v, time.Hour, has(), func(v *View) { lost(&v.Targets[0]) })
		Expect(desired(New(v))).To(Equal("5/6"))
	})
})

// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan/plantest"
)

// Each story is about target a of two equal ones with 10 replicas in all; b is well.
var _ = Describe("Health", func() {
	story := func(change ...func(*v1alpha1.Fallback)) View {
		v := view(10, plantest.Even(), named("a", healthy(5)), named("b", healthy(5)))
		v.Balancer.Spec.Policy.Fallback = plantest.Fallback(change...)
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

	It("stands still while the target cannot be seen", func() {
		v := after(story(), 0, has(append(four, pending(2*time.Minute))...))
		v = after(v, time.Second, has(append(four, pending(2*time.Minute))...))
		v = after(v, time.Hour, has(), func(v *View) { lost(&v.Targets[0]) })
		Expect(desired(New(v))).To(Equal("5/6"))
	})
})

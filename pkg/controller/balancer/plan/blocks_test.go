// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

// having is a target that is asked for as many replicas as these.
func having(replicas ...Replica) func(*target) {
	return func(t *target) { t.Current, t.Replicas = int64(len(replicas)), replicas }
}

// counting is a target that is asked for five replicas, with only the numbers of its workload.
func counting(observed, ready int64) func(*target) {
	return func(t *target) { t.Current, t.Counted, t.Counts = 5, true, Counts{Observed: observed, Ready: ready} }
}

// ago is an instant before noon, as the status stores it.
func ago(d time.Duration) *metav1.Time { return ptr.To(before(d)) }

// Each spec is about target a of two equal ones with 10 replicas in all. Target b has 5, which run.
var _ = Describe("What the status remembers of a target", func() {
	five := func(a func(*target), past v1alpha1.TargetStatus, change ...func(*v1alpha1.Fallback)) View {
		past.Name = "a"
		v := recalling(view(10, builders.Even(), named("a", a), named("b", healthy(5))), past)
		v.Balancer.Spec.Policy.Fallback = builders.Fallback(change...)
		return v
	}
	untilReady := func(f *v1alpha1.Fallback) { f.StartCriterion = v1alpha1.Ready }
	well := running(time.Hour)
	// with are four replicas that run, and one more.
	with := func(r Replica) func(*target) { return having(well, well, well, well, r) }

	Describe("since when replicas are missing", func() {
		It("is forgotten once none is", func() {
			s := told(five(counting(5, 5), v1alpha1.TargetStatus{Ready: 4, UnstartedSince: ago(30 * time.Second)})).Targets[0]
			Expect(s.UnstartedSince).To(BeNil())
			Expect(s.NotStarted).To(BeZero())
		})

		It("starts anew if a count shows progress", func() {
			s := told(five(counting(5, 4), v1alpha1.TargetStatus{Ready: 3, UnstartedSince: ago(30 * time.Second)})).Targets[0]
			Expect(s.UnstartedSince).To(HaveValue(Equal(before(0))))
		})

		It("stays if an old replica gets ready again", func() {
			v := five(having(well, well, well, well), v1alpha1.TargetStatus{Ready: 3, UnstartedSince: ago(30 * time.Second)})
			v.Targets[0].Current = 5
			Expect(told(v).Targets[0].UnstartedSince).To(HaveValue(Equal(before(30 * time.Second))))
		})

		DescribeTable("starts anew when a replica starts",
			func(want time.Duration, started, ready time.Duration, change ...func(*v1alpha1.Fallback)) {
				fresh := running(started)
				fresh.Since = noon.Add(-ready)
				v := five(having(well, well, well, fresh), v1alpha1.TargetStatus{UnstartedSince: ago(30 * time.Second)}, change...)
				v.Targets[0].Current = 5
				Expect(told(v).Targets[0].UnstartedSince).To(HaveValue(Equal(before(want))))
			},
			Entry("and runs", 20*time.Second, 20*time.Second, 5*time.Second),
			Entry("and is ready, where it must be", 5*time.Second, 20*time.Second, 5*time.Second, untilReady),
			Entry("and is ready after the whole timeout", 5*time.Second, 65*time.Second, 5*time.Second, untilReady),
			Entry("but not when it gets ready after that", 30*time.Second, 66*time.Second, 5*time.Second, untilReady),
			Entry("and was ready before it ran, by the clock of a kubelet", 20*time.Second, 20*time.Second, time.Hour, untilReady),
		)

		It("lies not ahead, even if the status says so", func() {
			v := five(having(well, well, well, well), v1alpha1.TargetStatus{UnstartedSince: ago(-time.Hour)})
			v.Targets[0].Current = 5
			Expect(told(v).Targets[0].UnstartedSince).To(HaveValue(Equal(before(0))))
			s := told(five(pods(5, 1), v1alpha1.TargetStatus{BlockedSince: ago(-time.Hour), Blocks: 1})).Targets[0]
			Expect(s.BlockedSince).To(HaveValue(Equal(before(0))))
			Expect(s.Blocks).To(BeEquivalentTo(1))
		})

		It("does not begin before the workload's controller has seen the latest change", func() {
			v := five(having(well, well, well, well), v1alpha1.TargetStatus{})
			v.Targets[0].Current, v.Targets[0].Settling = 5, true
			Expect(told(v).Targets[0]).To(And(HaveField("UnstartedSince", BeNil()), HaveField("NotStarted", BeZero()), HaveField("Reason", BeEmpty())))
			v.Targets[0].Settling = false
			Expect(told(v).Targets[0].UnstartedSince).To(HaveValue(Equal(before(0))))
		})

		It("ends the wait for a replica that was never created", func() {
			v := five(having(well, well, well, well), v1alpha1.TargetStatus{UnstartedSince: ago(20 * time.Second)})
			v.Targets[0].Current = 5
			Expect(New(v).Again).To(Equal(40*time.Second + time.Millisecond))
			v = recalling(v, v1alpha1.TargetStatus{Name: "a", UnstartedSince: ago(time.Hour)})
			Expect(desired(New(v))).To(Equal("5/6"))
			Expect(New(v).Again).To(BeZero(), "nothing changes without an event")
		})

		It("is a whole second that is not earlier", func() {
			v := five(pods(5, 1), v1alpha1.TargetStatus{})
			Expect(told(v).Targets[0].BlockedSince).To(HaveValue(Equal(before(0))))
			v.Now = v.Now.Add(300 * time.Millisecond)
			Expect(told(v).Targets[0].BlockedSince).To(HaveValue(Equal(before(-time.Second))))
		})
	})

	DescribeTable("tells whether replicas of a blocked target have recovered",
		func(want string, r Replica) {
			v := five(with(r), v1alpha1.TargetStatus{BlockedSince: ago(10 * time.Minute), Blocks: 1})
			Expect(desired(New(v))).To(Equal(want))
		},
		Entry("one that started before counts, ready or not", "5/5", crashing(20*time.Minute)),
		Entry("one that started after does not count until it is ready", "5/6", crashing(5*time.Minute)),
		Entry("one that started after and is ready counts", "5/5", running(5*time.Minute)),
	)

	It("keeps a target blocked that has no more than its probe, also while it must not be changed, or nothing can be done", func() {
		few := func(change func(*View)) bool {
			v := five(having(well, well, pending(time.Hour)), v1alpha1.TargetStatus{BlockedSince: ago(10 * time.Minute), Blocks: 1}, func(f *v1alpha1.Fallback) {
				f.Probe, f.BlockedWhen = ptr.To[int32](1), &v1alpha1.BlockedWhen{MinCount: ptr.To[int32](2)}
			})
			change(&v)
			return New(v).Shares[0].Blocked()
		}
		Expect(few(func(*View) {})).To(BeTrue())
		Expect(few(func(v *View) { held(&v.Targets[0]) })).To(BeTrue())
		Expect(few(func(v *View) { v.Rival, v.Contested = "older", "a" })).To(BeTrue())
		Expect(few(func(v *View) { with(pending(time.Hour))(&v.Targets[0]) })).To(BeFalse(), "it has its share, and less is late than blocks it")
	})

	It("gives replicas the whole timeout after a silence of the API server", func() {
		v := five(with(pending(time.Hour)), v1alpha1.TargetStatus{})
		v.Back = before(time.Minute).Time
		Expect(desired(New(v))).To(Equal("5/5"))
		v.Back = before(61 * time.Second).Time
		Expect(desired(New(v))).To(Equal("5/6"))
	})

	It("tells that a pod whose image took long to pull counts once it has been ready for a while", func() {
		pulled, _ := PodReplica(podIn(corev1.PodRunning, accepted, container(0, runs(10*time.Second), none), conditioned(corev1.PodReady, corev1.ConditionTrue, 10*time.Second)))
		v := five(with(pulled), v1alpha1.TargetStatus{BlockedSince: ago(5 * time.Minute), Blocks: 1})
		Expect(desired(New(v))).To(Equal("5/6"))
		Expect(New(v).Again).To(Equal(20*time.Second + time.Millisecond))
	})

	It("doubles the wait for a recovery at most five times", func() {
		recovering := func(since time.Duration) Plan {
			return New(five(with(running(since)), v1alpha1.TargetStatus{BlockedSince: ago(time.Hour), Blocks: 9}))
		}
		Expect(desired(recovering(959 * time.Second))).To(Equal("5/6"))
		Expect(recovering(959 * time.Second).Again).To(Equal(time.Second + time.Millisecond))
		Expect(desired(recovering(960 * time.Second))).To(Equal("5/5"))
	})

	DescribeTable("counts blocks that follow soon after a recovery",
		func(recovered *metav1.Time, blocks int) {
			v := five(pods(5, 1), v1alpha1.TargetStatus{RecoveredAt: recovered, Blocks: 3})
			Expect(told(v).Targets[0].Blocks).To(BeEquivalentTo(blocks))
		},
		Entry("after less than twice the longest wait and the timeout", ago(2*960*time.Second+59*time.Second), 4),
		Entry("after that time, as the first", ago(2*960*time.Second+60*time.Second), 1),
		Entry("without a recovery, as the first", nil, 1),
	)

	It("stands in for what runs if nothing can be seen, as long as there is a fallback", func() {
		v := five(lost, v1alpha1.TargetStatus{Replicas: 5, Observed: 5, NotStarted: 5, BlockedSince: ago(time.Hour)})
		Expect(desired(New(v))).To(Equal("5/10"))
		Expect(New(v).Shares[0].Blocked()).To(BeTrue())
		v.Balancer.Spec.Policy.Fallback = nil
		Expect(desired(New(v))).To(Equal("5/5"))
		Expect(New(v).Shares[0].Blocked()).To(BeFalse())
	})

	It("tells how many run elsewhere if nothing can be seen, also where most run", func() {
		v := recalling(view(200, builders.Even(), named("a", lost), named("b", healthy(108))), v1alpha1.TargetStatus{
			Name: "a", Replicas: 100, Observed: 100, NotStarted: 8, Fallback: 8, BlockedSince: ago(time.Hour)})
		Expect(desired(New(v))).To(Equal("100/108"))
	})

	DescribeTable("is not all that counts: a workload that never existed lacks its share of five replicas",
		func(minCount, missing int32, want string) {
			v := five(absent, v1alpha1.TargetStatus{UnstartedSince: ago(time.Hour)}, func(f *v1alpha1.Fallback) {
				f.BlockedWhen = &v1alpha1.BlockedWhen{MinCount: &minCount}
			})
			Expect(told(v).Targets[0].NotStarted).To(Equal(missing))
			Expect(desired(New(v))).To(Equal(want))
		},
		Entry("others stand in if one blocks a target", int32(1), int32(5), "5/10"),
		Entry("others stand in if five block a target", int32(5), int32(5), "5/10"),
		Entry("none stands in if six block a target, and no time counts", int32(6), int32(0), "5/5"),
	)

	It("is not all that counts: a workload that never existed and has no share lacks nothing", func() {
		v := five(absent, v1alpha1.TargetStatus{UnstartedSince: ago(time.Hour)})
		v.Targets[0].Spec.State = v1alpha1.Drained
		Expect(told(v).Targets[0].NotStarted).To(BeZero())
		Expect(desired(New(v))).To(Equal("0/10"))
	})

	DescribeTable("of a workload with only numbers is what it reports, and 0 for negative numbers",
		func(observed, ready int, want []int32) {
			s := told(five(counting(int64(observed), int64(ready)), v1alpha1.TargetStatus{})).Targets[0]
			Expect([]int32{s.Observed, s.Ready}).To(Equal(want))
		},
		Entry("some", 5, 3, []int32{5, 3}),
		Entry("none", 0, 0, []int32{0, 0}),
		Entry("less than none", -1, -1, []int32{0, 0}),
	)

	It("counts replicas also without a fallback", func() {
		v := five(ready(2, 5), v1alpha1.TargetStatus{})
		v.Balancer.Spec.Policy.Fallback = nil
		s := told(v).Targets[0]
		Expect([]int32{s.Observed, s.Ready, s.NotStarted}).To(Equal([]int32{5, 2, 0}))
	})

	DescribeTable("has replicas that must be ready be late",
		func(want string, again time.Duration, r Replica) {
			p := New(five(with(r), v1alpha1.TargetStatus{UnstartedSince: ago(0)}, untilReady))
			Expect(desired(p)).To(Equal(want))
			Expect(p.Again).To(Equal(again))
		},
		Entry("a minute after they stopped being ready", "5/5", 50*time.Second+time.Millisecond, func() Replica { r := running(time.Hour); r.Ready, r.Since = false, noon.Add(-10*time.Second); return r }()),
		Entry("a minute after they were created if they never were ready", "5/6", time.Minute+time.Millisecond, Replica{Born: noon.Add(-2 * time.Minute), Running: true, StartedAt: noon.Add(-2 * time.Minute)}),
		Entry("a minute after they were created if they never ran", "5/6", time.Minute+time.Millisecond, Replica{Born: noon.Add(-2 * time.Minute), Since: noon.Add(-10 * time.Second)}),
	)

	DescribeTable("is asked again at the earliest time at which it may change",
		func(again time.Duration, a, b []Replica) {
			v := view(10, builders.Even(), named("a", having(a...)), named("b", having(b...)))
			Expect(New(v).Again).To(Equal(again + time.Millisecond))
		},
		Entry("for the first of two replicas", 10*time.Second, []Replica{pending(50 * time.Second), pending(20 * time.Second)}, nil),
		Entry("for the second of two replicas", 10*time.Second, []Replica{pending(20 * time.Second), pending(50 * time.Second)}, nil),
		Entry("for the first of two targets", 10*time.Second, []Replica{pending(50 * time.Second)}, []Replica{pending(20 * time.Second)}),
		Entry("for the second of two targets", 10*time.Second, []Replica{pending(20 * time.Second)}, []Replica{pending(50 * time.Second)}),
		Entry("at the end of the timeout, a moment later", time.Duration(0), []Replica{pending(time.Minute)}, nil),
	)

	DescribeTable("changes after the timeout",
		func(again time.Duration, change func(*v1alpha1.Fallback)) {
			Expect(New(five(with(pending(0)), v1alpha1.TargetStatus{}, change)).Again).To(Equal(again + time.Millisecond))
		},
		Entry("in seconds", time.Minute, func(*v1alpha1.Fallback) {}),
		Entry("with a unit", 90*time.Second, func(f *v1alpha1.Fallback) {
			f.StartupTimeoutSeconds, f.StartupTimeout = nil, &metav1.Duration{Duration: 90 * time.Second}
		}),
		Entry("below 0, at once", time.Duration(0), func(f *v1alpha1.Fallback) {
			f.StartupTimeoutSeconds, f.StartupTimeout = nil, &metav1.Duration{Duration: -time.Minute}
		}),
		Entry("that a stored object lacks, at once", time.Duration(0), func(f *v1alpha1.Fallback) { f.StartupTimeoutSeconds = nil }),
	)
})

var _ = DescribeTable("How many replicas must fail before a target is blocked",
	func(all, stuck, percent int, want bool) {
		v := view(int32(2*all), builders.Even(), named("a", pods(all, stuck)), named("b", healthy(all)))
		v.Balancer.Spec.Policy.Fallback.BlockedWhen = &v1alpha1.BlockedWhen{Percent: ptr.To(int32(percent))}
		Expect(New(v).Shares[0].Blocked()).To(Equal(want))
	},
	Entry("a fifth of five is one", 5, 1, 20, true),
	Entry("a fifth of six is rounded up to two", 6, 1, 20, false),
	Entry("all of a hundred is not all but one", 100, 99, 100, false),
	Entry("all of a hundred", 100, 100, 100, true),
)

var _ = It("A plan reports that a target becomes blocked or recovers, until the status shows that", func() {
	v := view(10, builders.Even(), named("a", healthy(5)), named("b", healthy(5)))
	Expect(New(v).ChangesBlocked(v)).To(BeFalse(), "no target is blocked")
	pods(5, 1)(&v.Targets[0])
	v.Targets[0].Replicas = v.Targets[0].Replicas[5:]
	Expect(New(v).ChangesBlocked(v)).To(BeTrue(), "a fails")
	v = after(v, time.Second)
	Expect(New(v).ChangesBlocked(v)).To(BeFalse(), "the status shows that")
	v.Targets[0].Replicas = named("a", healthy(5)).Replicas
	Expect(New(v).ChangesBlocked(v)).To(BeTrue(), "a has recovered")
	v = after(v, time.Second)
	Expect(New(v).ChangesBlocked(v)).To(BeFalse())
})

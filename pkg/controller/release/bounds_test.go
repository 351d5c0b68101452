// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// allocated is how much memory something takes on its way.
func allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// namespaced has a pod be of another namespace than all others.
func namespaced(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = name } }

var _ = Describe("A user of the target cluster", func() {
	DescribeTable("who wants more pods than there can be takes no more than a few machines' worth of memory",
		func(count int, wantRaises, wantOutcomes string, s *story) {
			var p Plan
			Expect(allocated(func() { p = NewPlan(s.uncreated(count, "w").View) })).To(BeNumerically("<", 16<<20))
			Expect(raises(p)).To(Equal(wantRaises))
			Expect(outcomes(p)).To(Equal(wantOutcomes))
		},
		Entry("of pods that no machine holds", 60_000_000, "", "NoReserve:1", tell().pool("a", 1, 2, 10).full().waits(pod("p", 5000, by(set("w"))))),
		Entry("where there is no pool", math.MaxInt32, "", "NoReserve:1", tell().waits(pod("p", 1000, by(set("w"))))),
		Entry("of pods that fit", math.MaxInt32, "a+2(a-1 a-2)", "Released:1", tell().pool("a", 1, 2, 10).full().waits(pod("p", 1000, by(set("w"))))),
		Entry("of pods that fit, up to max", math.MaxInt32, "a+1(a-1)", "Released:1", tell().pool("a", 1, 2, 2).full().waits(pod("p", 1000, by(set("w"))))),
	)

	It("leaves a neighbour the reserve that his own pods cannot use, however many they are and however different", func() {
		s := tell().pool("a", 1, 2, 10).full()
		for i := range 3 * MaxShapes {
			s.waits(pod(fmt.Sprintf("x%d-0", i), 5000, namespaced("crowd")))
		}
		s.waits(pod("p", 1000))
		p := NewPlan(s.View)
		Expect(raises(p)).To(Equal("a+1(a-1)"))
		Expect(p.Pods).To(HaveKeyWithValue("default/p", Released))
		Expect(outcomes(p)).To(Equal(fmt.Sprintf("BeyondBounds:%d NoReserve:%d Released:1", 2*MaxShapes+1, MaxShapes-1)))
	})

	It("has DaemonSets that no machine holds count for nothing", func() {
		s := tell().pool("a", 1, 2, 10).full().waits(pods(4, "p", 1000)...)
		for range 3 {
			s.daemon(5000)
		}
		Expect(raises(NewPlan(s.View))).To(Equal("a+1(a-1)"))
	})
})

var _ = Describe("A decision that is interrupted", func() {
	It("carries out what has been found, and says what has not been looked at", func() {
		s := tell().pool("a", 1, 2, 10).full().waits(pods(4, "p", 1000)...)
		s.Interrupted = func() bool { return true }
		p := NewPlan(s.View)
		Expect(raises(p)).To(BeEmpty())
		Expect(outcomes(p)).To(Equal("BeyondBounds:4"))
	})

	It("ends at once, however many machines and DaemonSets there are", func() {
		s := tell().pool("a", 1, 500, 1000).full().waits(pods(4, "p", 1000)...)
		for i := range MaxDaemons {
			s.daemon(1)
			s.Daemons[i].Owner = types.UID(fmt.Sprint("daemon-", i))
		}
		left := 10
		s.Interrupted = func() bool { left--; return left < 0 }
		var p Plan
		Expect(allocated(func() { p = NewPlan(s.View) })).To(BeNumerically("<", 1<<20))
		Expect(raises(p)).To(BeEmpty())
		Expect(outcomes(p)).To(Equal("BeyondBounds:4"))
	})
})

var _ = It("counts pods by outcome in the metric, with those that were not looked at", func() {
	Expect(PodsByOutcome(Plan{Pods: map[string]Outcome{"a": Released, "b": Released, "c": BeyondBounds}, Beyond: 7})).To(Equal(map[Outcome]float64{Released: 2, BeyondBounds: 8}))
})

var _ = Describe("What one decision looks at", func() {
	It("is divided fairly: who has little gets all of it, and nothing is left unused", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			limit := rapid.IntRange(0, 40).Draw(t, "limit")
			items := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "b", "c", "c", "c", "c", "c"}), 0, 80).Draw(t, "items")
			taken, left := Fairly(items, func(s string) string { return s }, limit)
			if len(taken) != min(limit, len(items)) || len(taken)+len(left) != len(items) {
				t.Fatalf("%d and %d of %d under %d", len(taken), len(left), len(items), limit)
			}
			count := func(of []string, name string) int { return strings.Count(strings.Join(of, ""), name) }
			for _, name := range slices.Compact(slices.Sorted(slices.Values(left))) {
				for _, other := range []string{"a", "b", "c"} {
					if count(taken, other) > count(taken, name)+1 {
						t.Fatalf("%s is left out with %d, and %s gets %d", name, count(taken, name), other, count(taken, other))
					}
				}
			}
		})
	})

	It("is the same as if all pods were sorted, in whatever order they come", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			var all []*corev1.Pod
			for i := range rapid.IntRange(0, 60).Draw(t, "pods") {
				p := pod(fmt.Sprint("p", i/2), 1, namespaced(rapid.SampledFrom([]string{"a", "b", "b", "c"}).Draw(t, "namespace")+strconv.Itoa(i%2)))
				p.Spec.Priority = rapid.SampledFrom([]*int32{nil, ptr.To[int32](0), ptr.To[int32](7)}).Draw(t, "priority")
				p.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Second))
				all = append(all, p)
			}
			limit := rapid.IntRange(0, 40).Draw(t, "limit")
			want := BySorting(all, limit)
			if got := MostImportant(rapid.Permutation(all).Draw(t, "order"), limit); !slices.Equal(got, want) {
				t.Fatalf("%v instead of %v", podNames(got), podNames(want))
			}
		})
	})

	It("takes no more memory if far more wait", func() {
		var all []*corev1.Pod
		for i := range 20 * MaxPods {
			all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "crowd", Name: strconv.Itoa(i * 7919 % (20 * MaxPods))}})
		}
		var chosen []*corev1.Pod
		Expect(allocated(func() { chosen = MostImportant(all, MaxPods) })).To(BeNumerically("<", 1<<20))
		Expect(chosen).To(HaveLen(MaxPods))
	})

	It("is bounded for a preview, too", func() {
		preview, err := NewPreview(settings)
		Expect(err).NotTo(HaveOccurred())
		o := spare()
		for i := range MaxPods + 10 {
			o.Pods = append(o.Pods, pod(fmt.Sprintf("x-%d", i), 5000, namespaced("crowd")))
		}
		o.Pods = append(o.Pods, pod("p", 1000, excessive))
		o.Pods = append(o.Pods, pod("q", 1000))
		Expect(preview.SetObjects(o, noon)).To(Succeed())
		plan := preview.Plan()
		Expect(raises(plan)).To(Equal("p+1(a)"))
		Expect(plan.Beyond).To(Equal(12))
		Expect(plan.Pods).To(And(HaveLen(MaxPods), HaveKeyWithValue("default/p", Unclear)))
	})
})

func podNames(pods []*corev1.Pod) (names []string) {
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

// excessive is a pod that says more than is read of one.
func excessive(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = slices.Repeat([]corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: corev1.DoNotSchedule}}, fit.MaxRules+1)
}

// SPDX-License-Identifier: Apache-2.0

package plan_test

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

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

// allocated is how much memory something takes on its way.
func allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

var _ = Describe("A user of the target cluster", func() {
	DescribeTable("who asks for more pods than there can be takes no more memory than a few machines' pods do",
		func(count int, wantRaises, wantOutcomes string, s *story) {
			var p Plan
			Expect(allocated(func() { p = New(s.uncreated(count, "w").View) })).To(BeNumerically("<", 16<<20))
			Expect(Raises(p)).To(Equal(wantRaises))
			Expect(outcomes(p)).To(Equal(wantOutcomes))
		},
		Entry("of pods that no machine holds", 60_000_000, "", "NoReserve:1", tell().pool("a", 1, 2, 10).full().waits(Pod("p", 5000, ByReplicaSet(set("w"))))),
		Entry("where there is no pool", math.MaxInt32, "", "NoReserve:1", tell().waits(Pod("p", 1000, ByReplicaSet(set("w"))))),
		Entry("of pods that fit", math.MaxInt32, "a+2(a-1 a-2)", "Released:1", tell().pool("a", 1, 2, 10).full().waits(Pod("p", 1000, ByReplicaSet(set("w"))))),
		Entry("of pods that fit, up to max", math.MaxInt32, "a+1(a-1)", "Released:1", tell().pool("a", 1, 2, 2).full().waits(Pod("p", 1000, ByReplicaSet(set("w"))))),
	)

	It("leaves a neighbour the reserve that his own pods cannot use, however many they are and however different", func() {
		s := tell().pool("a", 1, 2, 10).full()
		for i := range 3 * MaxShapes {
			s.waits(Pod(fmt.Sprintf("x%d-0", i), 5000, InNamespace("crowd")))
		}
		s.waits(Pod("p", 1000))
		p := New(s.View)
		Expect(Raises(p)).To(Equal("a+1(a-1)"))
		Expect(p.Pods).To(HaveKeyWithValue("default/p", Released))
		Expect(outcomes(p)).To(Equal(fmt.Sprintf("BeyondBounds:%d NoReserve:%d Released:1", 2*MaxShapes+1, MaxShapes-1)))
	})

	It("does not have pods looked at that the scheduler has not tried, if those like them are beyond the bounds", func() {
		s := tell().pool("a", 1, 2, 10).full().waits(Pods(MaxShapes, "x", 5000, func(p *corev1.Pod) { p.Labels = map[string]string{"app": p.Name} })...)
		s.waits(Pod("p-0", 1000), Pod("p-1", 1000, Untried))
		Expect(New(s.View).Pods).To(And(HaveKeyWithValue("default/p-0", BeyondBounds), Not(HaveKey("default/p-1"))))
	})

	It("has DaemonSets that no machine holds count for nothing", func() {
		s := tell().pool("a", 1, 2, 10).full().waits(Pods(4, "p", 1000)...)
		for range 3 {
			s.daemon(5000)
		}
		Expect(Raises(New(s.View))).To(Equal("a+1(a-1)"))
	})
})

var _ = Describe("A decision that is interrupted", func() {
	It("carries out what has been found, and reports what has not been considered", func() {
		s := tell().pool("a", 1, 2, 10).full().waits(Pods(4, "p", 1000)...)
		s.Interrupted = func() bool { return true }
		p := New(s.View)
		Expect(Raises(p)).To(BeEmpty())
		Expect(outcomes(p)).To(Equal("BeyondBounds:4"))
	})

	DescribeTable("carries out what has been found, and no more, if the interruption is later",
		func(calls int, want string) {
			s := tell().pool("a", 1, 2, 10, dedicated("shop", 1)).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000))
			s.Interrupted = func() bool { calls--; return calls < 0 }
			Expect(outcomes(New(s.View))).To(Equal(want))
		},
		Entry("while it reads nodes", 2, "BeyondBounds:2"),
		Entry("while it looks for machines that are dedicated", 3, "BeyondBounds:2"),
		Entry("while it looks for machines that are for all", 4, "BeyondBounds:1 Released:1"),
		Entry("too late", 9, "Released:2"),
	)

	It("ends at once, however many machines and DaemonSets there are", func() {
		s := tell().pool("a", 1, 500, 1000).full().waits(Pods(4, "p", 1000)...)
		for i := range MaxDaemons {
			s.daemon(1)
			s.Daemons[i].Owner = types.UID(fmt.Sprint("daemon-", i))
		}
		left := 10
		s.Interrupted = func() bool { left--; return left < 0 }
		var p Plan
		Expect(allocated(func() { p = New(s.View) })).To(BeNumerically("<", 1<<20))
		Expect(Raises(p)).To(BeEmpty())
		Expect(outcomes(p)).To(Equal("BeyondBounds:4"))
	})
})

var _ = Describe("What one decision looks at", func() {
	It("is divided fairly: a namespace with little gets all of it, and nothing is left unused", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			limit := rapid.IntRange(0, 40).Draw(t, "limit")
			items := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "b", "c", "c", "c", "c", "c"}), 0, 80).Draw(t, "items")
			taken, left := TakeFairly(items, func(s string) string { return s }, limit)
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

	DescribeTable("is taken in its order, one item more for those who come first by name",
		func(items string, limit int, wantTaken, wantLeft string) {
			taken, left := TakeFairly(strings.Split(items, ""), func(s string) string { return s }, limit)
			Expect(strings.Join(taken, "")).To(Equal(wantTaken))
			Expect(strings.Join(left, "")).To(Equal(wantLeft))
		},
		Entry("all that there are", "baba", 4, "baba", ""),
		Entry("half of each", "bbaa", 2, "ba", "ba"),
		Entry("an odd number of two", "bbaa", 3, "baa", "b"),
		Entry("two more than equal parts of three", "cccbbbaaa", 8, "ccbbbaaa", "c"),
		Entry("none", "ab", 0, "", "ab"),
	)

	It("is the most important: by priority, then by age, then by name", func() {
		pods := []*corev1.Pod{
			Pod("worthless", 1, worth(-1)), Pod("usual", 1, createdAt(Noon)), Pod("same", 1, createdAt(Noon), worth(0)), Pod("older", 1, createdAt(Noon.Add(-1))),
			Pod("usual", 1, createdAt(Noon), InNamespace("another")), Pod("worthy", 1, createdAt(Noon), worth(1)),
		}
		want := []string{"default/worthy", "default/older", "default/same", "another/usual", "default/usual", "default/worthless"}
		Expect(podNames(MostImportant(pods, 6))).To(Equal(want))
		slices.Reverse(pods)
		Expect(podNames(MostImportant(pods, 6))).To(Equal(want))
	})

	It("is the same as if all pods were sorted, in whatever order they are offered", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			var all []*corev1.Pod
			for i := range rapid.IntRange(0, 60).Draw(t, "pods") {
				p := Pod(fmt.Sprint("p", i/2), 1, InNamespace(rapid.SampledFrom([]string{"a", "b", "b", "c"}).Draw(t, "namespace")+strconv.Itoa(i%2)))
				p.Spec.Priority = rapid.SampledFrom([]*int32{nil, ptr.To[int32](0), ptr.To[int32](7)}).Draw(t, "priority")
				p.CreationTimestamp = metav1.NewTime(Noon.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Second))
				all = append(all, p)
			}
			limit := rapid.IntRange(0, 40).Draw(t, "limit")
			want := BySorting(all, limit)
			if got := MostImportant(rapid.Permutation(all).Draw(t, "order"), limit); !slices.Equal(got, want) {
				t.Fatalf("%v instead of %v", podNames(got), podNames(want))
			}
		})
	})

	DescribeTable("takes no more memory if far more wait", func(limit int) {
		all := []*corev1.Pod{Pod("p", 1)}
		for i := range 20 * MaxPods {
			all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "crowd", Name: strconv.Itoa(i * 7919 % (20 * MaxPods))}})
		}
		var chosen []*corev1.Pod
		Expect(allocated(func() { chosen = MostImportant(all, limit) })).To(BeNumerically("<", 1<<20))
		Expect(chosen).To(HaveLen(limit))
	},
		Entry("some of which are considered", MaxPods),
		Entry("none of which is considered", 1),
	)

	It("is not fewer pods if many are alike", func() {
		p := New(tell().pool("a", 1, 5, 10).full().waits(Pods(2*MaxShapes, "p", 10)...).View)
		Expect(outcomes(p)).To(Equal(fmt.Sprintf("Released:%d", 2*MaxShapes)))
	})

	It("is shown by the number of pods beyond the bound", func() {
		s := tell()
		s.Beyond = 3
		Expect(New(s.View).Beyond).To(Equal(3))
	})
})

func podNames(pods []*corev1.Pod) (names []string) {
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

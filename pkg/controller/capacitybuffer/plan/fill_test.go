// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

// filling has buffers that fill once in one MachineDeployment, whose machines hold one chunk each, as
// the second sync sees it.
func filling(buffers ...plan.Buffer) plan.View {
	return After(plan.View{FillOnce: true, Now: Now, Buffers: buffers, Pools: []plan.Pool{Site("a", "cpu=1", 99)}})
}

// later has pods bound a minute later.
func later(v plan.View, pods ...*corev1.Pod) plan.View {
	v.Now, v.Bound = v.Now.Add(time.Minute), pods
	return v
}

func deadline(seconds int64) func(*plan.Buffer) {
	return func(b *plan.Buffer) { b.Object.Spec.FillDeadlineSeconds = &seconds }
}

// used is how far a buffer has been used, and whether it has ended, as in "1 of 3" or "3 of 3 Fulfilled".
func used(b plan.Buffer) string {
	s := b.Object.Status
	text := fmt.Sprintf("%d of %d", ptr.Deref(s.ConsumedReplicas, -1), ptr.Deref(s.Replicas, -1))
	for _, kind := range []string{v1beta1.ConditionFulfilled, v1beta1.ConditionExpired} {
		if meta.IsStatusConditionTrue(s.Conditions, kind) {
			text += " " + kind
		}
	}
	return text
}

// minute is a time after all buffers of these tests were created.
var minute = Now.Add(time.Minute)

var _ = Describe("A buffer that fills once (law 13)", func() {
	It("holds only what has not been used, and ends when all has", func() {
		v := filling(Once("b", 3, "cpu=1"))
		Expect(Spread(v)).To(Equal("a=3"))
		Expect(used(v.Buffers[0])).To(Equal("0 of 3"))
		v = After(later(v, Bound("1", minute)))
		Expect(Spread(v)).To(Equal("a=2"))
		Expect(used(v.Buffers[0])).To(Equal("1 of 3"))
		Expect(Standing(After(v).Buffers[0].Object)).To(Equal("3 Provisioning=FitsExistingCapacity Ready=Complete"))
		v = After(later(v, Bound("1", minute), Bound("2", minute), Bound("3", minute), Bound("4", minute)))
		Expect(Spread(v)).To(BeEmpty())
		Expect(used(v.Buffers[0])).To(Equal("3 of 3 Fulfilled"), "more pods than chunks use no more")
		Expect(Standing(v.Buffers[0].Object)).To(Equal("3 Provisioning=BufferEmpty Ready=BufferFilled"))
		Expect(plan.New(v).Decisions[0].After(v.Now.Add(time.Hour)).Status).To(Equal(v.Buffers[0].Object.Status), "law 9")
	})

	It("never takes back what has been used, when pods go or come again", func() {
		v := After(later(filling(Once("b", 3, "cpu=1")), Bound("1", minute), Bound("2", minute)))
		v = After(later(v))
		Expect(used(v.Buffers[0])).To(Equal("2 of 3"))
		Expect(Spread(v)).To(Equal("a=1"))
		v = After(later(v, Bound("1b", minute), Bound("2b", minute)))
		Expect(used(v.Buffers[0])).To(Equal("2 of 3"), "they replace the first ones")
	})

	It("stays ended whatever happens to its pods, its spec and its PodTemplate", func() {
		v := After(later(filling(Once("b", 1, "cpu=1")), Bound("1", minute)))
		Expect(used(v.Buffers[0])).To(Equal("1 of 1 Fulfilled"))
		v.Buffers[0].Object.Spec.Replicas, v.Buffers[0].Object.Generation = ptr.To[int32](5), 3
		v = After(later(v))
		Expect(used(v.Buffers[0])).To(Equal("1 of 1 Fulfilled"))
		v.Buffers[0].Template = nil
		v = After(later(v))
		Expect(used(v.Buffers[0])).To(Equal("1 of 1 Fulfilled"))
		Expect(Spread(v)).To(BeEmpty())
		Expect(Standing(v.Buffers[0].Object)).To(Equal("1 Provisioning=BufferEmpty Ready=BufferFilled"))
		Expect(meta.IsStatusConditionFalse(v.Buffers[0].Object.Status.Conditions, v1beta1.ConditionReadyForProvisioning)).To(BeTrue())
	})

	It("follows its number of chunks until it ends", func() {
		v := After(later(filling(Once("b", 3, "cpu=1")), Bound("1", minute), Bound("2", minute)))
		v.Buffers[0].Object.Spec.Replicas = ptr.To[int32](5)
		v = After(later(v))
		Expect(Spread(v)).To(Equal("a=3"))
		v.Buffers[0].Object.Spec.Replicas = ptr.To[int32](2)
		v = After(later(v))
		Expect(used(v.Buffers[0])).To(HavePrefix("2 of "))
		Expect(used(v.Buffers[0])).To(HaveSuffix("Fulfilled"))
		Expect(Spread(v)).To(BeEmpty())
	})

	It("does not end while it asks for no chunks", func() {
		v := After(later(filling(Once("b", 0, "cpu=1")), Bound("1", minute)))
		Expect(used(v.Buffers[0])).To(Equal("0 of 0"))
	})

	It("ends at its deadline, with part of it used, and looks again then", func() {
		v := filling(Once("b", 3, "cpu=1", deadline(90)))
		v = After(later(v, Bound("1", minute)))
		Expect(plan.New(v).Again).To(Equal(30 * time.Second))
		Expect(used(v.Buffers[0])).To(Equal("1 of 3"))
		v.Now = v.Now.Add(29 * time.Second)
		Expect(Spread(After(v))).To(Equal("a=2"))
		v.Now = v.Now.Add(time.Second)
		v = After(v)
		Expect(used(v.Buffers[0])).To(Equal("1 of 3 Expired"))
		Expect(Spread(v)).To(BeEmpty())
		Expect(Standing(v.Buffers[0].Object)).To(Equal("3 Provisioning=BufferEmpty Ready=FillDeadlineExceeded"))
		v = After(later(v, Bound("1", minute), Bound("2", v.Now), Bound("3", v.Now)))
		Expect(used(v.Buffers[0])).To(Equal("1 of 3 Expired"), "pods that come later use nothing")
	})

	It("is filled, not late, if its last pod comes as its deadline passes", func() {
		v := filling(Once("b", 1, "cpu=1", deadline(60)))
		v = After(later(v, Bound("1", minute)))
		Expect(used(v.Buffers[0])).To(Equal("1 of 1 Fulfilled"))
	})

	It("counts its deadline from the time that its shape is known", func() {
		v := plan.View{FillOnce: true, Now: Now, Buffers: []plan.Buffer{Once("b", 3, "cpu=1", deadline(60))}, Pools: []plan.Pool{Site("a", "cpu=1", 99)}}
		template := v.Buffers[0].Template
		v.Buffers[0].Template = nil
		v = After(v)
		v.Now, v.Buffers[0].Template = Now.Add(time.Hour), template
		v = After(After(v))
		Expect(Spread(v)).To(Equal("a=3"))
		v.Now = v.Now.Add(time.Minute)
		Expect(used(After(v).Buffers[0])).To(Equal("0 of 3 Expired"))
	})

	It("has as long a deadline as anybody writes", func() {
		v := filling(Once("b", 1, "cpu=1", deadline(math.MaxInt64)))
		v.Now = v.Now.Add(1000 * time.Hour)
		Expect(used(After(v).Buffers[0])).To(Equal("0 of 1"))
	})

	It("keeps its machines while its shape cannot be read, without those that have been used", func() {
		v := After(later(filling(Once("b", 3, "cpu=1")), Bound("1", minute)))
		v.Buffers[0].Lacks = "no right"
		v = After(later(v))
		Expect(Spread(v)).To(Equal("a=2"))
		Expect(used(v.Buffers[0])).To(Equal("1 of 3"))
	})

	It("has what quotas leave of the rest", func() {
		v := filling(Once("b", 3, "cpu=1"))
		v.Quotas = []*corev1.ResourceQuota{Quota("q", "cpu=2", "cpu=1")}
		v = After(later(v, Bound("1", minute)))
		Expect(Spread(v)).To(Equal("a=1"))
		Expect(used(v.Buffers[0])).To(Equal("1 of 2"))
		limited := meta.FindStatusCondition(v.Buffers[0].Object.Status.Conditions, v1beta1.ConditionLimitedByQuotas)
		Expect(limited.Message).To(Equal("ResourceQuotas leave room for 1 of 2 chunks: q"))
	})

	It("is refilled again after its deadline if that is what it asks for", func() {
		v := filling(Once("b", 1, "cpu=1", deadline(60)))
		v.Now = v.Now.Add(time.Hour)
		v = After(v)
		Expect(used(v.Buffers[0])).To(Equal("0 of 1 Expired"))
		v.Buffers[0].Object.Spec.RefillStrategy = ptr.To(v1beta1.RefillRecreate)
		v = After(later(v))
		Expect(Spread(v)).To(Equal("a=1"))
		Expect(used(v.Buffers[0])).To(Equal("-1 of 1"))
	})

	It("is refilled again if that is what it asks for", func() {
		v := After(later(filling(Once("b", 1, "cpu=1")), Bound("1", minute)))
		v.Buffers[0].Object.Spec.RefillStrategy = ptr.To(v1beta1.RefillRecreate)
		v = After(later(v, Bound("1", minute)))
		Expect(Spread(v)).To(Equal("a=1"))
		Expect(used(v.Buffers[0])).To(Equal("-1 of 1"))
	})

	DescribeTable("is used by the pods that it is for",
		func(pod *corev1.Pod, want int, change ...func(*plan.Buffer)) {
			v := After(later(filling(Once("b", 3, "cpu=1", change...)), pod))
			Expect(ptr.Deref(v.Buffers[0].Object.Status.ConsumedReplicas, -1)).To(BeEquivalentTo(want))
		},
		Entry("with the labels of its PodTemplate", Bound("p", minute), 1),
		Entry("bound a second after it was created", Bound("p", Now.Add(time.Second)), 1),
		Entry("not those bound in the second in which it was created", Bound("p", Now), 0),
		Entry("bound after it was created, though they are older", Bound("p", Now.Add(-time.Hour), scheduled(minute)), 1),
		Entry("not those bound before", Bound("p", Now.Add(-time.Hour)), 0),
		Entry("not those created and bound before, as a condition shows", Bound("p", Now.Add(-time.Hour), scheduled(Now.Add(-time.Minute))), 0),
		Entry("not those that wait", Bound("p", minute, func(p *corev1.Pod) { p.Spec.NodeName = "" }), 0),
		Entry("those that have succeeded", Bound("p", minute, ended(corev1.PodSucceeded)), 1),
		Entry("not those that have failed, which are replaced", Bound("p", minute, ended(corev1.PodFailed)), 0),
		Entry("not those that are being deleted, which are replaced", Bound("p", minute, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: minute} }), 0),
		Entry("not those of another namespace", Bound("p", minute, func(p *corev1.Pod) { p.Namespace = "ci" }), 0),
		Entry("not those with other labels", Bound("p", minute, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }), 0),
		Entry("those of its workload", Bound("p", minute, run("StatefulSet", "web")), 1, ofWorkload("{apiGroup: apps, kind: StatefulSet, name: web}")),
		Entry("not those of another workload", Bound("p", minute, run("StatefulSet", "db")), 0, ofWorkload("{apiGroup: apps, kind: StatefulSet, name: web}")),
		Entry("those that a scale selects", Bound("p", minute), 1, ofScale("app=web")),
		Entry("not those that a scale does not select", Bound("p", minute), 0, ofScale("app=db")),
		Entry("those that its machines are dedicated to", Bound("p", minute, func(p *corev1.Pod) { p.Labels = nil }), 1, dedicated("namespace")),
		Entry("those of another namespace that its machines are dedicated to", Bound("p", minute, func(p *corev1.Pod) { p.Namespace = "ci" }), 1, dedicated("namespace/ci")),
		Entry("not those that its machines are not dedicated to", Bound("p", minute), 0, dedicated("namespace/ci")),
	)

	It("shares no pod with another buffer", func() {
		older := Once("b", 2, "cpu=1", func(b *plan.Buffer) { b.Object.CreationTimestamp.Time = Now.Add(-time.Minute) })
		v := After(later(filling(Once("a", 2, "cpu=1"), older), Bound("1", minute), Bound("2", minute), Bound("3", minute)))
		Expect(used(v.Buffers[0])).To(Equal("1 of 2"))
		Expect(used(v.Buffers[1])).To(Equal("2 of 2 Fulfilled"), "the older one comes first")
		v = After(later(v, Bound("1", minute), Bound("2", minute), Bound("3", minute)))
		Expect(used(v.Buffers[0])).To(Equal("1 of 2"), "the pods of one that has ended stay its own")
		v = After(later(v, Bound("4", minute.Add(time.Hour))))
		v = After(later(v, Bound("4", minute.Add(time.Hour)), Bound("5", minute.Add(time.Hour))))
		Expect(used(v.Buffers[0])).To(Equal("2 of 2 Fulfilled"), "pods that come after the end of one are not its own")
	})

	It("is used by the pods that were bound first", func() {
		newer := Once("b", 2, "cpu=1", func(b *plan.Buffer) { b.Object.CreationTimestamp.Time = Now.Add(5 * time.Minute) })
		v := filling(Once("a", 2, "cpu=1"), newer)
		v = After(later(v, Bound("1", Now.Add(6*time.Minute)), Bound("2", minute), Bound("3", minute)))
		Expect(used(v.Buffers[0])).To(Equal("2 of 2 Fulfilled"))
		Expect(used(v.Buffers[1])).To(Equal("1 of 2"))
	})

	DescribeTable("is refused", func(change func(*plan.Buffer), fillOnce bool, why, says string) {
		v := plan.View{FillOnce: fillOnce, Now: Now, Buffers: []plan.Buffer{Once("b", 3, "cpu=1", change)}, Pools: []plan.Pool{Site("a", "cpu=1", 99)}, Bound: []*corev1.Pod{Bound("1", Now)}}
		p := plan.New(v)
		Expect(p.Requests).To(BeEmpty())
		Expect(p.Decisions[0].Problem).To(And(HaveField("Reason", why), HaveField("Message", ContainSubstring(says))))
		Expect(reason.CapacityBuffer[v1beta1.ConditionReadyForProvisioning].Find(why).Meaning).NotTo(BeEmpty())
	},
		Entry("if the manager does not serve it", func(*plan.Buffer) {}, false, reason.RefillNotEnabled, "--capacity-buffer-fill-once"),
		Entry("with a percentage", func(b *plan.Buffer) { b.Object.Spec.Percentage = ptr.To[int32](5) }, true, reason.RefillInvalid, "neither percentage nor limits"),
		Entry("with limits", func(b *plan.Buffer) { b.Object.Spec.Limits = v1beta1.ResourceList{} }, true, reason.RefillInvalid, "neither percentage nor limits"),
		Entry("without replicas", func(b *plan.Buffer) { b.Object.Spec.Replicas = nil }, true, reason.RefillInvalid, "set replicas"),
		Entry("with a PodTemplate without labels", func(b *plan.Buffer) { b.Template.Template.Labels = nil }, true, reason.RefillInvalid, "needs labels"),
		Entry("with a strategy that is unknown", func(b *plan.Buffer) { b.Object.Spec.RefillStrategy = ptr.To("recreateUpToLimit") }, true, reason.RefillInvalid, `"recreateUpToLimit"`),
	)

	It("keeps what has been used while the manager does not serve it", func() {
		v := After(later(filling(Once("b", 3, "cpu=1"), Once("c", 1, "cpu=1")), Bound("1", minute), Bound("2", minute), Bound("3", minute), Bound("4", minute)))
		Expect(used(v.Buffers[0]) + used(v.Buffers[1])).To(Equal("3 of 3 Fulfilled1 of 1 Fulfilled"))
		v.FillOnce, v.Bound = false, nil
		v = After(v)
		Expect(v.Buffers[0].Object.Status.ConsumedReplicas).To(HaveValue(BeEquivalentTo(3)))
		v.FillOnce = true
		Expect(Spread(After(v))).To(BeEmpty())
	})

	It("is compared with a bounded number of pods (law 8)", func() {
		var all []plan.Buffer
		var pods []*corev1.Pod
		for i := range 3000 {
			all = append(all, Once(fmt.Sprintf("b%04d", i), 1, "cpu=1", func(b *plan.Buffer) { b.Template.Template.Labels = map[string]string{"app": "db"} }))
			pods = append(pods, Bound(fmt.Sprintf("p%04d", i), minute))
		}
		other := Once("b", 1, "cpu=1", func(b *plan.Buffer) { b.Object.Namespace = "ci" })
		refused := 0
		for _, d := range plan.New(plan.View{FillOnce: true, Now: minute, Buffers: append(all, other), Bound: pods}).Decisions {
			if d.Problem != nil {
				Expect(d.Problem.Reason).To(Equal(reason.TooManyBuffers))
				Expect(d.Buffer.Namespace).To(Equal(Shop))
				refused++
			}
		}
		Expect(refused).To(BeNumerically("~", 3000-5_000_000/3000, 2))
	})

	It("never uses less than before, holds what has not been used, and ends for good, whatever pods do", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := filling(Once("a", rapid.IntRange(0, 4).Draw(t, "a"), "cpu=1"), Once("b", rapid.IntRange(0, 4).Draw(t, "b"), "cpu=1", deadline(rapid.Int64Range(1, 600).Draw(t, "deadline"))))
			for range rapid.IntRange(1, 8).Draw(t, "steps") {
				var pods []*corev1.Pod
				for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
					pods = append(pods, Bound(fmt.Sprint(i), Now.Add(time.Duration(rapid.IntRange(-5, 10).Draw(t, "minute"))*time.Minute)))
				}
				next := After(later(v, pods...))
				held := 0
				for i, b := range next.Buffers {
					was, is := v.Buffers[i].Object, b.Object
					if is.Consumed() < was.Consumed() || was.Ended() && (!is.Ended() || is.Consumed() != was.Consumed()) {
						t.Fatalf("%s: %s after %s", is.Name, used(b), used(v.Buffers[i]))
					}
					held += is.Outstanding()
				}
				if want := strings.TrimPrefix(fmt.Sprintf("a=%d", held), "a=0"); Spread(next) != want {
					t.Fatalf("%s for %d chunks", Spread(next), held)
				}
				v = next
			}
		})
	})
})

func scheduled(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}

func ended(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func run(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}}
	}
}

// ofWorkload has a buffer name a workload in place of its PodTemplate.
func ofWorkload(ref string) func(*plan.Buffer) {
	return func(b *plan.Buffer) {
		other := NewBuffer("", "{scalableRef: "+ref+"}", WithWorkload(3, PodSpec("cpu=1")))
		b.Object.Spec.PodTemplateRef, b.Object.Spec.ScalableRef, b.Workload = nil, other.Object.Spec.ScalableRef, other.Workload
	}
}

// ofScale has a buffer name a workload of another kind, whose scale selects pods.
func ofScale(selector string) func(*plan.Buffer) {
	return func(b *plan.Buffer) {
		ofWorkload("{apiGroup: example.com, kind: Rollout, name: web}")(b)
		selects, err := labels.Parse(selector)
		Expect(err).NotTo(HaveOccurred())
		b.Workload, b.Scale, b.Newest = nil, &plan.Scale{Replicas: 3, Selector: selects}, Bound("newest", Now)
	}
}

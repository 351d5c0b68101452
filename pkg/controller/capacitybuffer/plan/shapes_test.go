// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

// rolledOut is a buffer of a Rollout with ten replicas, whose newest pod is like that.
func rolledOut(spec corev1.PodSpec, change ...func(*plan.Buffer)) plan.Buffer {
	b := ofRollout(&plan.Scale{Replicas: 10, Selector: labels.Everything()})
	b.Newest = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "web-1", Labels: map[string]string{"app": "web"}}, Spec: spec}
	for _, c := range change {
		c(&b)
	}
	return b
}

// controlledBy has a workload control the newest pod.
func controlledBy(kind, name string) func(*plan.Buffer) {
	return func(b *plan.Buffer) {
		b.Newest.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}}
	}
}

var _ = DescribeTable("What the status says about a shape or a number that is not known (laws 1 and 2)",
	func(b plan.Buffer, why, message string) {
		d := plan.New(plan.View{Buffers: []plan.Buffer{b}}).Decisions[0]
		Expect([]string{d.Problem.Reason, d.Problem.Message}).To(Equal([]string{why, message}))
		Expect(d.Chunks).To(BeZero())
		s := plan.NewStatus(d, Now)
		Expect([]string{s.Conditions[0].Reason, s.Conditions[0].Message}).To(Equal([]string{why, message}))
		Expect(s.Conditions[3].Message).To(Equal("see the condition ReadyForProvisioning: " + message))
		Expect(s.Replicas).To(BeNil())
	},
	Entry("a PodTemplate that is gone", NewBuffer("b", "{"+ByTemplate+", replicas: 3}"), reason.PodTemplateNotFound, "PodTemplate web does not exist in namespace shop"),
	Entry("a workload that is gone", NewBuffer("b", "{"+ByWorkload+", replicas: 3}"), reason.WorkloadNotFound, "Deployment web does not exist in namespace shop, or has ended"),
	Entry("a scale that is not read yet", ofRollout(nil), reason.WorkloadUnread, "the scale of Rollout web has not been read yet"),
	Entry("a scale that may not be read", ofRollout(&plan.Scale{Err: errors.New("forbidden"), Lacks: "grant the right"}), reason.RightMissing, "grant the right"),
	Entry("a scale that does not exist", ofRollout(&plan.Scale{Err: apierrors.NewNotFound(schema.GroupResource{}, "web")}), reason.WorkloadNotFound, "Rollout web does not exist in namespace shop, or has no scale"),
	Entry("a kind that is not served", ofRollout(&plan.Scale{Err: &meta.NoKindMatchError{}}), reason.KindNotSupported, `the cluster does not serve kind Rollout of group "example.com"`),
	Entry("a scale that cannot be read", ofRollout(&plan.Scale{Err: errors.New("timeout")}), reason.WorkloadUnread, "timeout"),
	Entry("a workload without pods", ofRollout(&plan.Scale{Replicas: 3, Selector: labels.Everything()}), reason.PodNotFound, "no pod of Rollout web shows what a chunk is like"),
	Entry("a buffer without a number", NewBuffer("b", "{"+ByTemplate+"}", WithTemplate(one)), reason.NumberMissing, "the number of chunks is missing: set replicas, percentage or limits"),
	Entry("limits of nothing that chunks request", NewBuffer("b", "{"+ByTemplate+", replicas: 3, limits: {nvidia.com/gpu: 1}}", WithTemplate(one)), reason.LimitsDoNotMatch, "spec.limits names no resource that a chunk requests"),
	Entry("pods that another controller has", rolledOut(one, dedicated("workload"), controlledBy("Job", "web")), reason.DedicationInvalid,
		`annotation dedicated: the pods of Rollout web have another controller: use "namespace"`),
	Entry("too many owners", Chunks("b", 1, "cpu=1", dedicated("namespace/a,namespace/b,namespace/c,namespace/d,namespace/e,namespace/f,namespace/g,namespace/h,namespace/i")), reason.DedicationInvalid,
		"annotation dedicated: at most 8 workloads and namespaces are possible"),
)

var _ = DescribeTable("No number is told where none is known (law 2)",
	func(spec string) {
		Expect(plan.New(plan.View{Buffers: []plan.Buffer{NewBuffer("b", "{"+ByTemplate+spec+"}", WithTemplate(one))}}).Decisions[0].Asked).To(BeZero())
	},
	Entry("none is asked for", ""),
	Entry("limits do not match", ", replicas: 3, limits: {nvidia.com/gpu: 1}"),
)

var _ = Describe("A workload of another kind (laws 1 and 2)", func() {
	pools := []plan.Pool{Site("a", "cpu=4", 9)}

	It("has chunks like its newest pod, and a percentage of its replicas", func() {
		p := plan.New(plan.View{Buffers: []plan.Buffer{rolledOut(PodSpec("cpu=3"))}, Pools: pools})
		Expect(p.Decisions[0].Chunks).To(Equal(2))
		Expect(Requests(p)).To(Equal("a=2"))
	})

	It("has chunks with the labels of its newest pod", func() {
		like := Chunks("b", 1, "cpu=1", apart).Template.Template.Spec
		Expect(Requests(plan.New(plan.View{Buffers: []plan.Buffer{rolledOut(like)}, Pools: pools}))).To(Equal("a=2"))
	})

	It("has chunks that may run on any machine, wherever its newest pod runs", func() {
		b := rolledOut(PodSpec("cpu=3", func(s *corev1.PodSpec) { s.NodeName = "n" }))
		Expect(Requests(plan.New(plan.View{Buffers: []plan.Buffer{b}, Pools: pools}))).To(Equal("a=2"))
	})

	It("has no chunks if its newest pod is too large to be read", func() {
		many := PodSpec("cpu=3", func(s *corev1.PodSpec) {
			s.NodeName, s.Tolerations = "n", make([]corev1.Toleration, fit.MaxTolerations+1)
		})
		b := rolledOut(many, func(b *plan.Buffer) { b.Newest = fit.SlimMovable(b.Newest) })
		d := plan.New(plan.View{Buffers: []plan.Buffer{b}, Pools: pools}).Decisions[0]
		Expect([]string{d.Problem.Reason, d.Problem.Message}).To(Equal([]string{reason.ShapeUnclear, "it cannot be decided where a chunk can run: it has more than 64 tolerations"}))
	})

	It("may have machines of its own if it controls its pods", func() {
		v := plan.View{Buffers: []plan.Buffer{rolledOut(PodSpec("cpu=3"), dedicated("workload"), controlledBy("Rollout", "web"))}, Pools: pools}
		Expect(dedications(After(v))).To(Equal("a: shop/Rollout/web=2"))
	})
})

var _ = It("A pod of a template is not bound, not gated, and has the labels and annotations of the template", func() {
	pod := plan.CompletedPod(Shop, &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "x"}},
		Spec:       corev1.PodSpec{NodeName: "n", SchedulingGates: []corev1.PodSchedulingGate{{Name: "wait"}}, PriorityClassName: "important"},
	})
	Expect(pod).To(Equal(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "chunk", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "x"}},
		Spec:       corev1.PodSpec{PriorityClassName: "important"},
	}))
})

var _ = Describe("Chunks that a buffer had", func() {
	had := func(n int32, change ...func(*plan.Buffer)) plan.View {
		b := Chunks("b", 1, "cpu=1", change...)
		b.Object.Status.Replicas = ptr.To(n)
		return plan.View{Buffers: []plan.Buffer{b}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}, Reserves: reserved("a", 1)}
	}
	lacking := func(b *plan.Buffer) { b.Lacks = "no right" }

	It("stay, with their machines, while it cannot be read (law 5)", func() {
		v := had(1, lacking)
		Expect(plan.New(v).Requests).To(BeEmpty())
		Expect(plan.NewStatus(plan.New(v).Decisions[0], Now).Replicas).To(HaveValue(BeEquivalentTo(1)))
	})

	It("stay no number if there were none", func() {
		d := plan.New(had(0, lacking)).Decisions[0]
		Expect(plan.NewStatus(d, Now).Replicas).To(BeNil())
	})

	It("go if its PodTemplate is gone", func() {
		v := had(2, func(b *plan.Buffer) { b.Template = nil })
		Expect(plan.New(v).Decisions[0].Chunks).To(BeZero())
		Expect(Requests(plan.New(v))).To(Equal("a=-"))
	})

	It("stay one where too little is known of the MachineDeployment (law 5)", func() {
		v := had(1, lacking)
		v.Pools[0].Node = nil
		v.Reserves = reserved("a", 9)
		Expect(plan.New(v).Requests).To(BeEmpty())
	})
})

var _ = It("The decision is made again after ten minutes, if there is a buffer", func() {
	Expect(plan.New(plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1")}}).Again).To(Equal(10 * time.Minute))
	Expect(plan.New(plan.View{Pools: []plan.Pool{Site("a", "cpu=4", 9)}}).Again).To(BeZero())
})

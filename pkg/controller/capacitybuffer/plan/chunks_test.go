// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"fmt"
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

var one = PodSpec("cpu=1,memory=1Gi")

func container(requests string, always bool) corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: Amounts(requests)}}
	if always {
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	}
	return c
}

func withInit(c corev1.Container) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{c} }
}

var _ = DescribeTable("How many chunks a buffer has (laws 1 and 2)",
	func(spec string, want string, given ...func(*plan.Buffer)) {
		v := plan.View{Buffers: []plan.Buffer{NewBuffer("b", "{"+spec+"}", given...)}}
		d := plan.New(v).Decisions[0]
		Expect(Outcome(d)).To(Equal(want))
		Expect(reason.CapacityBuffer["ReadyForProvisioning"].Find(plan.NewStatus(d, Now).Conditions[0].Reason).Meaning).NotTo(BeEmpty())
	},
	Entry("replicas", ByTemplate+", replicas: 3", "3", WithTemplate(one)),
	Entry("replicas of 0", ByTemplate+", replicas: 0", "0", WithTemplate(one)),
	Entry("the largest number of replicas", ByTemplate+", replicas: 2147483647", "2147483647", WithTemplate(one)),
	Entry("limits alone", ByTemplate+", limits: {cpu: 4}", "4", WithTemplate(one)),
	Entry("limits, rounded down", ByTemplate+", limits: {cpu: 4900m}", "4", WithTemplate(one)),
	Entry("limits below replicas", ByTemplate+", replicas: 3, limits: {cpu: 2}", "2", WithTemplate(one)),
	Entry("limits above replicas", ByTemplate+", replicas: 2, limits: {cpu: 9}", "2", WithTemplate(one)),
	Entry("the smaller of two limits", ByTemplate+", limits: {cpu: 8, memory: 3Gi}", "3", WithTemplate(one)),
	Entry("limits of which one does not matter", ByTemplate+", limits: {cpu: 8, nvidia.com/gpu: 1}", "8", WithTemplate(one)),
	Entry("limits that do not match", ByTemplate+", limits: {nvidia.com/gpu: 1}", reason.LimitsDoNotMatch, WithTemplate(one)),
	Entry("limits that do not match beside replicas", ByTemplate+", replicas: 1, limits: {nvidia.com/gpu: 1}", reason.LimitsDoNotMatch, WithTemplate(one)),
	Entry("limits without a resource", ByTemplate+", limits: {}", reason.LimitsDoNotMatch, WithTemplate(one)),
	Entry("limits below one chunk", ByTemplate+", limits: {cpu: 900m}", "0", WithTemplate(one)),
	Entry("limits of 0", ByTemplate+", limits: {cpu: 0}", "0", WithTemplate(one)),
	Entry("limits below 0", ByTemplate+", limits: {cpu: -3}", "0", WithTemplate(one)),
	Entry("limits of another resource", ByTemplate+", limits: {nvidia.com/gpu: 5}", "2", WithTemplate(PodSpec("nvidia.com/gpu=2"))),
	Entry("limits that are huge", ByTemplate+", limits: {memory: 8E}", "2147483647", WithTemplate(PodSpec("memory=1"))),
	Entry("a request that is huge", ByTemplate+", limits: {memory: 1Ti}", "0", WithTemplate(PodSpec("memory=8E"))),
	Entry("requests that are huge together", ByTemplate+", limits: {memory: 1Ti}", "0", WithTemplate(PodSpec("memory=8E", func(s *corev1.PodSpec) { s.Containers = append(s.Containers, container("memory=8E", false)) }))),
	Entry("limits whose thousandths exceed 64 bits", ByTemplate+", limits: {memory: 9223372036854776}", "2", WithTemplate(PodSpec("memory=4611686018427388"))),
	Entry("limits a little below a request whose thousandths hardly fit into 64 bits", ByTemplate+", limits: {memory: 9223372036854774500m}", "0", WithTemplate(PodSpec("memory=9223372036854775"))),
	Entry("a request of thousandths", ByTemplate+", limits: {cpu: 1}", "1000", WithTemplate(PodSpec("cpu=1m"))),
	Entry("a request of 0", ByTemplate+", limits: {cpu: 1}", reason.LimitsDoNotMatch, WithTemplate(PodSpec("cpu=0"))),
	Entry("a chunk without requests", ByTemplate+", replicas: 3", "3", WithTemplate(PodSpec(""))),
	Entry("a chunk without requests beside limits", ByTemplate+", limits: {cpu: 1}", reason.LimitsDoNotMatch, WithTemplate(PodSpec(""))),
	Entry("a limit of a container that requests nothing", ByTemplate+", limits: {cpu: 4}", "2", WithTemplate(PodSpec("", func(s *corev1.PodSpec) {
		s.Containers[0].Resources = corev1.ResourceRequirements{Limits: Amounts("cpu=2")}
	}))),
	Entry("a limit of a container that requests less", ByTemplate+", limits: {cpu: 4}", "4", WithTemplate(PodSpec("cpu=1", func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Limits = Amounts("cpu=2")
	}))),
	Entry("a limit of another resource than the container requests", ByTemplate+", limits: {cpu: 4, memory: 9Gi}", "4", WithTemplate(PodSpec("cpu=1", func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Limits = Amounts("memory=1Gi")
	}))),
	Entry("a limit of a whole pod", ByTemplate+", limits: {cpu: 4}", "2", WithTemplate(PodSpec("", func(s *corev1.PodSpec) {
		s.Resources = &corev1.ResourceRequirements{Limits: Amounts("cpu=2")}
	}))),
	Entry("a limit of a whole pod whose containers request less", ByTemplate+", limits: {cpu: 4}", "4", WithTemplate(PodSpec("cpu=1", func(s *corev1.PodSpec) {
		s.Resources = &corev1.ResourceRequirements{Limits: Amounts("cpu=2")}
	}))),
	Entry("a limit of a whole pod whose containers request another resource", ByTemplate+", limits: {cpu: 4}", "2", WithTemplate(PodSpec("memory=1Gi", func(s *corev1.PodSpec) {
		s.Resources = &corev1.ResourceRequirements{Limits: Amounts("cpu=2")}
	}))),
	Entry("huge pages of a whole pod, which are requested in full", ByTemplate+", limits: {hugepages-2Mi: 8Mi}", "2", WithTemplate(PodSpec("hugepages-2Mi=2Mi", func(s *corev1.PodSpec) {
		s.Resources = &corev1.ResourceRequirements{Limits: Amounts("hugepages-2Mi=4Mi")}
	}))),
	Entry("an init container that requests more", ByTemplate+", limits: {cpu: 4}", "2", WithTemplate(PodSpec("cpu=1", withInit(container("cpu=2", false))))),
	Entry("an init container that requests less", ByTemplate+", limits: {cpu: 4}", "4", WithTemplate(PodSpec("cpu=1", withInit(container("cpu=1", false))))),
	Entry("a sidecar", ByTemplate+", limits: {cpu: 4}", "2", WithTemplate(PodSpec("cpu=1", withInit(container("cpu=1", true))))),
	Entry("overhead", ByTemplate+", limits: {cpu: 4}", "2", WithTemplate(PodSpec("cpu=1", func(s *corev1.PodSpec) { s.Overhead = Amounts("cpu=1") }))),
	Entry("two containers", ByTemplate+", limits: {cpu: 4}", "2", WithTemplate(PodSpec("cpu=1", func(s *corev1.PodSpec) { s.Containers = append(s.Containers, container("cpu=1", false)) }))),
	Entry("a percentage of a PodTemplate", ByTemplate+", replicas: 3, percentage: 500", "3", WithTemplate(one)),
	Entry("a percentage of a PodTemplate alone", ByTemplate+", percentage: 500", reason.NumberMissing, WithTemplate(one)),
	Entry("a PodTemplate that is gone", ByTemplate+", replicas: 3", reason.PodTemplateNotFound),
	Entry("two references", ByTemplate+", "+ByWorkload+", replicas: 3", reason.ReferenceInvalid, WithTemplate(one), WithWorkload(3, one)),
	Entry("no reference", "replicas: 3", reason.ReferenceInvalid),
	Entry("a chunk that claims devices", ByTemplate+", replicas: 3", reason.ShapeUnclear, WithTemplate(PodSpec("", func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{}} }))),
	Entry("a percentage", ByWorkload+", percentage: 20", "2", WithWorkload(10, one)),
	Entry("a percentage, rounded up", ByWorkload+", percentage: 20", "3", WithWorkload(11, one)),
	Entry("a percentage of one", ByWorkload+", percentage: 1", "1", WithWorkload(1, one)),
	Entry("a percentage of 0", ByWorkload+", percentage: 0", "0", WithWorkload(10, one)),
	Entry("a percentage of no replicas", ByWorkload+", percentage: 20", "0", WithWorkload(0, one)),
	Entry("a percentage above 100", ByWorkload+", percentage: 250", "8", WithWorkload(3, one)),
	Entry("the largest percentage", ByWorkload+", percentage: 2147483647", "2147483647", WithWorkload(2147483647, one)),
	Entry("a percentage below replicas", ByWorkload+", percentage: 20, replicas: 5", "5", WithWorkload(10, one)),
	Entry("a percentage above replicas", ByWorkload+", percentage: 20, replicas: 1", "2", WithWorkload(10, one)),
	Entry("a percentage of 0 beside replicas", ByWorkload+", percentage: 0, replicas: 4", "4", WithWorkload(10, one)),
	Entry("a percentage above limits", ByWorkload+", percentage: 50, limits: {cpu: 3}", "3", WithWorkload(10, one)),
	Entry("all three", ByWorkload+", percentage: 50, replicas: 7, limits: {cpu: 6}", "6", WithWorkload(10, one)),
	Entry("a workload and limits alone", ByWorkload+", limits: {cpu: 6}", "6", WithWorkload(10, one)),
	Entry("a workload and no number", ByWorkload, reason.NumberMissing, WithWorkload(10, one)),
	Entry("a workload that is gone", ByWorkload+", percentage: 20", reason.WorkloadNotFound),
	Entry("a StatefulSet", "scalableRef: {apiGroup: apps, kind: StatefulSet, name: web}, percentage: 20", "2", WithWorkload(10, one)),
	Entry("a ReplicaSet", "scalableRef: {apiGroup: apps, kind: ReplicaSet, name: web}, percentage: 20", "2", WithWorkload(10, one)),
	Entry("a ReplicationController", "scalableRef: {kind: ReplicationController, name: web}, percentage: 20", "2", WithWorkload(10, one)),
	Entry("a Job", "scalableRef: {apiGroup: batch, kind: Job, name: web}, percentage: 20", "2", WithWorkload(10, one)),
	Entry("another kind", "scalableRef: {apiGroup: argoproj.io, kind: Rollout, name: web}, percentage: 20", reason.WorkloadUnread),
	Entry("a kind of another group", "scalableRef: {apiGroup: example.com, kind: Deployment, name: web}, percentage: 20", reason.WorkloadUnread),
)

var _ = It("The smallest of several limits counts, in whatever order they are read (law 2)", func() {
	spec := PodSpec("cpu=1,memory=1,ephemeral-storage=1,example.com/a=1,example.com/b=1")
	b := NewBuffer("b", "{"+ByTemplate+", limits: {cpu: 9, memory: 8, ephemeral-storage: 7, example.com/a: 6, example.com/b: 5}}", WithTemplate(spec))
	for range 20 {
		Expect(plan.New(plan.View{Buffers: []plan.Buffer{b}}).Decisions[0].Asked).To(Equal(5))
	}
})

func important(s *corev1.PodSpec) { s.PriorityClassName = "important" }

// ends has a pod end after a minute.
func ends(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](60) }

var _ = DescribeTable("What quotas leave of three chunks with one CPU each (law 3)",
	func(want string, spec corev1.PodSpec, quotas ...*corev1.ResourceQuota) {
		v := plan.View{Quotas: quotas, Buffers: []plan.Buffer{NewBuffer("b", "{"+ByTemplate+", replicas: 3}", WithTemplate(spec))}}
		Expect(Outcome(plan.New(v).Decisions[0])).To(Equal(want))
	},
	Entry("all", "3", one, Quota("q", "requests.cpu=10", "requests.cpu=7")),
	Entry("some", "2 of 3 by q", one, Quota("q", "requests.cpu=10", "requests.cpu=8")),
	Entry("some, by the short name", "2 of 3 by q", one, Quota("q", "cpu=10", "cpu=8")),
	Entry("some, rounded down", "2 of 3 by q", one, Quota("q", "cpu=2900m", "")),
	Entry("none", "0 of 3 by q", one, Quota("q", "cpu=3", "cpu=3")),
	Entry("none, with more used than allowed", "0 of 3 by q", one, Quota("q", "cpu=3", "cpu=9")),
	Entry("all, by a quota of another resource", "3", one, Quota("q", "requests.nvidia.com/gpu=0", "")),
	Entry("all, by a quota of a resource of which they request 0", "3", PodSpec("cpu=0,memory=1Gi"), Quota("q", "cpu=0", "")),
	Entry("all, by a quota of limits and of pods", "3", one, Quota("q", "limits.cpu=0,pods=0", "")),
	Entry("the least of two quotas", "1 of 3 by p,q", one, Quota("q", "cpu=1", ""), Quota("p", "memory=2Gi", "")),
	Entry("the least of two quotas, also if the other one is read last", "1 of 3 by p,q", one, Quota("p", "cpu=1", ""), Quota("q", "memory=2Gi", "")),
	Entry("all, by a quota of another namespace", "3", one, Quota("q", "cpu=0", "", func(q *corev1.ResourceQuota) { q.Namespace = Namespace })),
	Entry("all, by a quota of pods without requests", "3", one, Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeBestEffort))),
	Entry("some, by a quota of pods with requests", "0 of 3 by q", one, Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeNotBestEffort))),
	Entry("all, by a quota of pods that end", "3", one, Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeTerminating))),
	Entry("some, by a quota of pods that do not end", "0 of 3 by q", one, Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeNotTerminating))),
	Entry("all, by a quota of two scopes", "3", one, Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort))),
	Entry("all, by a quota of a priority class", "3", one, Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpIn, "important"))),
	Entry("some, by a quota of its priority class", "0 of 3 by q", PodSpec("cpu=1", important), Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpIn, "important"))),
	Entry("all, by a quota of other priority classes", "3", PodSpec("cpu=1", important), Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpNotIn, "important"))),
	Entry("some, by a quota of any priority class", "0 of 3 by q", PodSpec("cpu=1", important), Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpExists))),
	Entry("some, by a quota of no priority class", "0 of 3 by q", one, Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpDoesNotExist))),
	Entry("all, by a quota of any priority class, without one", "3", one, Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpExists))),
	Entry("some, by a quota of other priority classes, without one", "0 of 3 by q", one, Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpNotIn, "important"))),
	Entry("all, by a quota of another priority class", "3", PodSpec("cpu=1", important), Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpIn, "minor"))),
	Entry("some, by a quota of pods without requests", "0 of 3 by q", PodSpec("example.com/license=1"), Quota("q", "requests.example.com/license=0", "", WithScopes(corev1.ResourceQuotaScopeBestEffort))),
	Entry("all, by a quota of pods without requests, with CPU alone", "3", PodSpec("cpu=1"), Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeBestEffort))),
	Entry("all, by a quota of a priority class without a name, without one", "3", one, Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpIn, ""))),
	Entry("all, by a quota of pods without requests, with memory alone", "3", PodSpec("memory=1Gi"), Quota("q", "memory=0", "", WithScopes(corev1.ResourceQuotaScopeBestEffort))),
	Entry("all, by a quota of pods with requests, with neither CPU nor memory", "3", PodSpec("example.com/license=1"), Quota("q", "requests.example.com/license=0", "", WithScopes(corev1.ResourceQuotaScopeNotBestEffort))),
	Entry("all, by a quota of pods that end, which do not", "3", PodSpec("cpu=1", ends), Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeNotTerminating))),
	Entry("some, by a quota of pods that end, which do", "0 of 3 by q", PodSpec("cpu=1", ends), Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeTerminating))),
	Entry("all, by a quota of a scope that is not known here", "3", one, Quota("q", "cpu=0", "", WithScopes(corev1.ResourceQuotaScopeCrossNamespacePodAffinity))),
	Entry("all, by a quota of no priority class", "3", PodSpec("cpu=1", important), Quota("q", "cpu=0", "", WithClasses(corev1.ScopeSelectorOpDoesNotExist))),
)

var _ = It("Quotas are shared out, the oldest buffer first (law 3)", func() {
	young, old := Chunks("a", 3, "cpu=1"), Chunks("b", 3, "cpu=1")
	old.Object.CreationTimestamp.Time = Now.Add(-time.Hour)
	p := plan.New(plan.View{Quotas: []*corev1.ResourceQuota{Quota("q", "cpu=4", "")}, Buffers: []plan.Buffer{young, old}})
	Expect(Outcome(p.Decisions[0])).To(Equal("1 of 3 by q"))
	Expect(Outcome(p.Decisions[1])).To(Equal("3"))
})

var _ = DescribeTable("Quotas are shared out by what chunks request, to an older buffer and a younger one (law 3)",
	func(older, younger plan.Buffer, want string, quotas ...*corev1.ResourceQuota) {
		older.Object.Name, younger.Object.Name = "older", "a-younger" // the name does not matter
		older.Object.CreationTimestamp.Time = Now.Add(-time.Hour)
		p := plan.New(plan.View{Quotas: quotas, Buffers: []plan.Buffer{younger, older}, Pools: []plan.Pool{Site("a", "cpu=4,memory=16Gi", 99)}})
		Expect(Outcome(p.Decisions[1]) + "; " + Outcome(p.Decisions[0]) + "; " + Requests(p)).To(Equal(want))
	},
	Entry("large chunks first", Chunks("", 3, "cpu=2"), Chunks("", 3, "cpu=1"), "2 of 3 by q; 1 of 3 by q; a=2", Quota("q", "cpu=5", "")),
	Entry("small chunks first", Chunks("", 3, "cpu=1"), Chunks("", 3, "cpu=2"), "3; 1 of 3 by q; a=2", Quota("q", "cpu=5", "")),
	Entry("large chunks of which none fits take nothing", Chunks("", 3, "cpu=4"), Chunks("", 3, "cpu=1"), "0 of 3 by q; 3; a=1", Quota("q", "cpu=3", "")),
	Entry("chunks take of each quota as many as there are, not as many as are asked for", Chunks("", 3, "cpu=1,memory=1Gi"), Chunks("", 4, "cpu=1"),
		"2 of 3 by memory; 3 of 4 by cpu; a=2", Quota("cpu", "cpu=5", ""), Quota("memory", "memory=2Gi", "")),
	Entry("chunks take of a quota that does not limit them", Chunks("", 2, "cpu=2"), Chunks("", 2, "cpu=1"), "2; 1 of 2 by q; a=2", Quota("q", "requests.cpu=5", "")),
	Entry("chunks take under both names", Chunks("", 2, "cpu=2"), Chunks("", 2, "cpu=1"), "2; 1 of 2 by q; a=2", Quota("q", "requests.cpu=9,cpu=5", "")),
	Entry("chunks take nothing of a quota of other pods", Chunks("", 2, "cpu=2"), NewBuffer("", "{"+ByTemplate+", replicas: 2}", WithTemplate(PodSpec("cpu=1", important))), "2; 1 of 2 by q; a=2",
		Quota("q", "cpu=1", "", WithClasses(corev1.ScopeSelectorOpIn, "important"))),
	Entry("chunks take nothing of a quota of the same name in another namespace", Chunks("", 2, "cpu=2"), Chunks("", 2, "cpu=1", func(b *plan.Buffer) { b.Object.Namespace = "a" }), "2; 1 of 2 by q; a=2",
		Quota("q", "cpu=4", ""), Quota("q", "cpu=1", "", func(q *corev1.ResourceQuota) { q.Namespace = "a" })),
)

var _ = It("Quotas count up to 32 of a namespace, the first by name (law 8)", func() {
	var all []*corev1.ResourceQuota
	for i := range 32 {
		all = append(all, Quota(fmt.Sprintf("q%02d", i), "cpu=10", ""))
	}
	none := []*corev1.ResourceQuota{Quota("q31a", "cpu=0", "")}
	v := plan.View{Quotas: append(none, all...), Buffers: []plan.Buffer{Chunks("b", 3, "cpu=1")}}
	Expect(Outcome(plan.New(v).Decisions[0])).To(Equal("3"))
	none[0].Name = "q30a"
	Expect(Outcome(plan.New(v).Decisions[0])).To(Equal("0 of 3 by q30a"))
})

var _ = DescribeTable("A condition says how quotas limit chunks (law 3)",
	func(hard, want, provisioning string) {
		v := plan.View{Quotas: []*corev1.ResourceQuota{Quota("q", hard, "")}, Buffers: []plan.Buffer{Chunks("b", 3, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}}
		conditions := plan.NewStatus(plan.New(v).Decisions[0], Now).Conditions
		Expect(conditions[1].Reason + ": " + conditions[1].Message).To(Equal(want))
		Expect(conditions[2].Reason + ": " + conditions[2].Message).To(Equal(provisioning))
	},
	Entry("not at all", "cpu=3", reason.NotLimited+": ResourceQuotas leave room for all chunks", reason.RequiresNewCapacity+": room for 0 of 3 chunks is ready in a"),
	Entry("to some", "cpu=2", reason.ResourceQuotasAllocated+": ResourceQuotas leave room for 2 of 3 chunks: q", reason.RequiresNewCapacity+": room for 0 of 2 chunks is ready in a"),
	Entry("to none", "cpu=0", reason.ResourceQuotasAllocated+": ResourceQuotas leave room for 0 of 3 chunks: q", reason.BufferEmpty+": ResourceQuotas leave no room for chunks: q"),
)

// ofRollout is a buffer of a workload of another kind, with that scale.
func ofRollout(s *plan.Scale) plan.Buffer {
	return NewBuffer("b", "{scalableRef: {apiGroup: example.com, kind: Rollout, name: web}, percentage: 20, replicas: 1}", func(b *plan.Buffer) { b.Scale = s })
}

var _ = DescribeTable("Why the shape of a workload of another kind is not known (law 1)",
	func(s *plan.Scale, want string) {
		Expect(plan.New(plan.View{Buffers: []plan.Buffer{ofRollout(s)}}).Decisions[0].Problem.Reason).To(Equal(want))
	},
	Entry("it has not been read", nil, reason.WorkloadUnread),
	Entry("it does not exist", &plan.Scale{Err: apierrors.NewNotFound(schema.GroupResource{}, "web")}, reason.WorkloadNotFound),
	Entry("its kind is not served", &plan.Scale{Err: &meta.NoKindMatchError{}}, reason.KindNotSupported),
	Entry("the cluster does not answer", &plan.Scale{Err: errors.New("timeout")}, reason.WorkloadUnread),
	Entry("it has no pods", &plan.Scale{Replicas: 3, Selector: labels.Everything()}, reason.PodNotFound),
)

var _ = It("A percentage of a workload whose scale cannot be read is not known", func() {
	b := ofRollout(&plan.Scale{Err: errors.New("timeout")})
	b.Object.Status.Replicas = ptr.To[int32](2)
	d := plan.New(plan.View{Buffers: []plan.Buffer{b}}).Decisions[0]
	Expect([]any{d.Asked, d.Chunks}).To(Equal([]any{0, 2}))
	Expect(plan.NewStatus(d, Now).Replicas).To(HaveValue(BeEquivalentTo(2)))
})

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
	Entry("a kind that is not served", ofRollout(&plan.Scale{Err: &meta.NoKindMatchError{}}), reason.KindNotSupported, `the cluster does not serve kind Rollout of group "example.com": correct scalableRef`),
	Entry("a scale that cannot be read", ofRollout(&plan.Scale{Err: errors.New("timeout")}), reason.WorkloadUnread, "timeout"),
	Entry("a workload without pods", ofRollout(&plan.Scale{Replicas: 3, Selector: labels.Everything()}), reason.PodNotFound, "no pod of Rollout web exists that shows the shape of a chunk: start one, or use podTemplateRef and replicas"),
	Entry("a buffer without a number", NewBuffer("b", "{"+ByTemplate+"}", WithTemplate(one)), reason.NumberMissing, "the number of chunks is missing: set replicas, percentage or limits"),
	Entry("limits of nothing that chunks request", NewBuffer("b", "{"+ByTemplate+", replicas: 3, limits: {nvidia.com/gpu: 1}}", WithTemplate(one)), reason.LimitsDoNotMatch, "spec.limits names no resource that a chunk requests: limit one that it requests"),
	Entry("pods that another controller has", rolledOut(one, dedicated("workload"), controlledBy("Job", "web")), reason.DedicationInvalid,
		`annotation dedicated: another controller owns the pods of Rollout web: use "namespace"`),
	Entry("too many owners", Chunks("b", 1, "cpu=1", dedicated("namespace/a,namespace/b,namespace/c,namespace/d,namespace/e,namespace/f,namespace/g,namespace/h,namespace/i")), reason.DedicationInvalid,
		"annotation dedicated: name at most 8 workloads and namespaces"),
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
		Expect([]string{d.Problem.Reason, d.Problem.Message}).To(Equal([]string{reason.ShapeUnclear, "Evenkeel cannot decide where a chunk can run: it has more than 64 tolerations"}))
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

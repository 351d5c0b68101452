// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
)

var (
	one = podSpec("cpu=1,memory=1Gi")
	web = "podTemplateRef: {name: web}"
	run = "scalableRef: {apiGroup: apps, kind: Deployment, name: web}"
)

func container(requests string, always bool) corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: amounts(requests)}}
	if always {
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	}
	return c
}

func withInit(c corev1.Container) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{c} }
}

var _ = DescribeTable("How many chunks a buffer has (laws 1 and 2)",
	func(spec string, want string, given ...func(*Buffer)) {
		v := View{Buffers: []Buffer{buffer("b", "{"+spec+"}", given...)}}
		d := NewPlan(v).Decisions[0]
		Expect(outcome(d)).To(Equal(want))
		Expect(reason.CapacityBuffer["ReadyForProvisioning"].Find(NewStatus(d, now).Conditions[0].Reason).Meaning).NotTo(BeEmpty())
	},
	Entry("replicas", web+", replicas: 3", "3", template(one)),
	Entry("replicas of 0", web+", replicas: 0", "0", template(one)),
	Entry("the largest number of replicas", web+", replicas: 2147483647", "2147483647", template(one)),
	Entry("limits alone", web+", limits: {cpu: 4}", "4", template(one)),
	Entry("limits, rounded down", web+", limits: {cpu: 4900m}", "4", template(one)),
	Entry("limits below replicas", web+", replicas: 3, limits: {cpu: 2}", "2", template(one)),
	Entry("limits above replicas", web+", replicas: 2, limits: {cpu: 9}", "2", template(one)),
	Entry("the smaller of two limits", web+", limits: {cpu: 8, memory: 3Gi}", "3", template(one)),
	Entry("limits of which one does not matter", web+", limits: {cpu: 8, nvidia.com/gpu: 1}", "8", template(one)),
	Entry("limits that do not match", web+", limits: {nvidia.com/gpu: 1}", reason.LimitsDoNotMatch, template(one)),
	Entry("limits that do not match beside replicas", web+", replicas: 1, limits: {nvidia.com/gpu: 1}", reason.LimitsDoNotMatch, template(one)),
	Entry("limits without a resource", web+", limits: {}", reason.LimitsDoNotMatch, template(one)),
	Entry("limits below one chunk", web+", limits: {cpu: 900m}", "0", template(one)),
	Entry("limits of 0", web+", limits: {cpu: 0}", "0", template(one)),
	Entry("limits below 0", web+", limits: {cpu: -3}", "0", template(one)),
	Entry("limits of another resource", web+", limits: {nvidia.com/gpu: 5}", "2", template(podSpec("nvidia.com/gpu=2"))),
	Entry("limits that are huge", web+", limits: {memory: 8E}", "2147483647", template(podSpec("memory=1"))),
	Entry("a request that is huge", web+", limits: {memory: 1Ti}", "0", template(podSpec("memory=8E"))),
	Entry("a request of thousandths", web+", limits: {cpu: 1}", "1000", template(podSpec("cpu=1m"))),
	Entry("a request of 0", web+", limits: {cpu: 1}", reason.LimitsDoNotMatch, template(podSpec("cpu=0"))),
	Entry("a chunk without requests", web+", replicas: 3", "3", template(podSpec(""))),
	Entry("a chunk without requests beside limits", web+", limits: {cpu: 1}", reason.LimitsDoNotMatch, template(podSpec(""))),
	Entry("a limit of a container that requests nothing", web+", limits: {cpu: 4}", "2", template(podSpec("", func(s *corev1.PodSpec) {
		s.Containers[0].Resources = corev1.ResourceRequirements{Limits: amounts("cpu=2")}
	}))),
	Entry("a limit of a container that requests less", web+", limits: {cpu: 4}", "4", template(podSpec("cpu=1", func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Limits = amounts("cpu=2")
	}))),
	Entry("a limit of another resource than the container requests", web+", limits: {cpu: 4, memory: 9Gi}", "4", template(podSpec("cpu=1", func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Limits = amounts("memory=1Gi")
	}))),
	Entry("a limit of a whole pod", web+", limits: {cpu: 4}", "2", template(podSpec("", func(s *corev1.PodSpec) {
		s.Resources = &corev1.ResourceRequirements{Limits: amounts("cpu=2")}
	}))),
	Entry("an init container that requests more", web+", limits: {cpu: 4}", "2", template(podSpec("cpu=1", withInit(container("cpu=2", false))))),
	Entry("an init container that requests less", web+", limits: {cpu: 4}", "4", template(podSpec("cpu=1", withInit(container("cpu=1", false))))),
	Entry("a sidecar", web+", limits: {cpu: 4}", "2", template(podSpec("cpu=1", withInit(container("cpu=1", true))))),
	Entry("overhead", web+", limits: {cpu: 4}", "2", template(podSpec("cpu=1", func(s *corev1.PodSpec) { s.Overhead = amounts("cpu=1") }))),
	Entry("two containers", web+", limits: {cpu: 4}", "2", template(podSpec("cpu=1", func(s *corev1.PodSpec) { s.Containers = append(s.Containers, container("cpu=1", false)) }))),
	Entry("a percentage of a PodTemplate", web+", replicas: 3, percentage: 500", "3", template(one)),
	Entry("a percentage of a PodTemplate alone", web+", percentage: 500", reason.NumberMissing, template(one)),
	Entry("a PodTemplate that is gone", web+", replicas: 3", reason.PodTemplateNotFound),
	Entry("two references", web+", "+run+", replicas: 3", reason.ReferenceInvalid, template(one), workload(3, one)),
	Entry("no reference", "replicas: 3", reason.ReferenceInvalid),
	Entry("a chunk that claims devices", web+", replicas: 3", reason.ShapeUnclear, template(podSpec("", func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{}} }))),
	Entry("a percentage", run+", percentage: 20", "2", workload(10, one)),
	Entry("a percentage, rounded up", run+", percentage: 20", "3", workload(11, one)),
	Entry("a percentage of one", run+", percentage: 1", "1", workload(1, one)),
	Entry("a percentage of 0", run+", percentage: 0", "0", workload(10, one)),
	Entry("a percentage of no replicas", run+", percentage: 20", "0", workload(0, one)),
	Entry("a percentage above 100", run+", percentage: 250", "8", workload(3, one)),
	Entry("the largest percentage", run+", percentage: 2147483647", "2147483647", workload(2147483647, one)),
	Entry("a percentage below replicas", run+", percentage: 20, replicas: 5", "5", workload(10, one)),
	Entry("a percentage above replicas", run+", percentage: 20, replicas: 1", "2", workload(10, one)),
	Entry("a percentage of 0 beside replicas", run+", percentage: 0, replicas: 4", "4", workload(10, one)),
	Entry("a percentage above limits", run+", percentage: 50, limits: {cpu: 3}", "3", workload(10, one)),
	Entry("all three", run+", percentage: 50, replicas: 7, limits: {cpu: 6}", "6", workload(10, one)),
	Entry("a workload and limits alone", run+", limits: {cpu: 6}", "6", workload(10, one)),
	Entry("a workload and no number", run, reason.NumberMissing, workload(10, one)),
	Entry("a workload that is gone", run+", percentage: 20", reason.WorkloadNotFound),
	Entry("a StatefulSet", "scalableRef: {apiGroup: apps, kind: StatefulSet, name: web}, percentage: 20", "2", workload(10, one)),
	Entry("a ReplicaSet", "scalableRef: {apiGroup: apps, kind: ReplicaSet, name: web}, percentage: 20", "2", workload(10, one)),
	Entry("a ReplicationController", "scalableRef: {kind: ReplicationController, name: web}, percentage: 20", "2", workload(10, one)),
	Entry("a Job", "scalableRef: {apiGroup: batch, kind: Job, name: web}, percentage: 20", "2", workload(10, one)),
	Entry("another kind", "scalableRef: {apiGroup: argoproj.io, kind: Rollout, name: web}, percentage: 20", reason.WorkloadUnread),
	Entry("a kind of another group", "scalableRef: {apiGroup: example.com, kind: Deployment, name: web}, percentage: 20", reason.WorkloadUnread),
)

func scope(scopes ...corev1.ResourceQuotaScope) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) { q.Spec.Scopes = scopes }
}

func classes(operator corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values},
		}}
	}
}

func important(s *corev1.PodSpec) { s.PriorityClassName = "important" }

// ends has a pod end after a minute.
func ends(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](60) }

var _ = DescribeTable("What quotas leave of three chunks with one CPU each (law 3)",
	func(want string, spec corev1.PodSpec, quotas ...*corev1.ResourceQuota) {
		v := View{Quotas: quotas, Buffers: []Buffer{buffer("b", "{"+web+", replicas: 3}", template(spec))}}
		Expect(outcome(NewPlan(v).Decisions[0])).To(Equal(want))
	},
	Entry("all", "3", one, quota("q", "requests.cpu=10", "requests.cpu=7")),
	Entry("some", "2 of 3 by q", one, quota("q", "requests.cpu=10", "requests.cpu=8")),
	Entry("some, by the short name", "2 of 3 by q", one, quota("q", "cpu=10", "cpu=8")),
	Entry("some, rounded down", "2 of 3 by q", one, quota("q", "cpu=2900m", "")),
	Entry("none", "0 of 3 by q", one, quota("q", "cpu=3", "cpu=3")),
	Entry("none, with more used than allowed", "0 of 3 by q", one, quota("q", "cpu=3", "cpu=9")),
	Entry("all, by a quota of another resource", "3", one, quota("q", "requests.nvidia.com/gpu=0", "")),
	Entry("all, by a quota of a resource of which they request 0", "3", podSpec("cpu=0,memory=1Gi"), quota("q", "cpu=0", "")),
	Entry("all, by a quota of limits and of pods", "3", one, quota("q", "limits.cpu=0,pods=0", "")),
	Entry("the least of two quotas", "1 of 3 by p,q", one, quota("q", "cpu=1", ""), quota("p", "memory=2Gi", "")),
	Entry("all, by a quota of another namespace", "3", one, quota("q", "cpu=0", "", func(q *corev1.ResourceQuota) { q.Namespace = ns })),
	Entry("all, by a quota of pods without requests", "3", one, quota("q", "cpu=0", "", scope(corev1.ResourceQuotaScopeBestEffort))),
	Entry("some, by a quota of pods with requests", "0 of 3 by q", one, quota("q", "cpu=0", "", scope(corev1.ResourceQuotaScopeNotBestEffort))),
	Entry("all, by a quota of pods that end", "3", one, quota("q", "cpu=0", "", scope(corev1.ResourceQuotaScopeTerminating))),
	Entry("some, by a quota of pods that do not end", "0 of 3 by q", one, quota("q", "cpu=0", "", scope(corev1.ResourceQuotaScopeNotTerminating))),
	Entry("all, by a quota of two scopes", "3", one, quota("q", "cpu=0", "", scope(corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort))),
	Entry("all, by a quota of a priority class", "3", one, quota("q", "cpu=0", "", classes(corev1.ScopeSelectorOpIn, "important"))),
	Entry("some, by a quota of its priority class", "0 of 3 by q", podSpec("cpu=1", important), quota("q", "cpu=0", "", classes(corev1.ScopeSelectorOpIn, "important"))),
	Entry("all, by a quota of other priority classes", "3", podSpec("cpu=1", important), quota("q", "cpu=0", "", classes(corev1.ScopeSelectorOpNotIn, "important"))),
	Entry("some, by a quota of any priority class", "0 of 3 by q", podSpec("cpu=1", important), quota("q", "cpu=0", "", classes(corev1.ScopeSelectorOpExists))),
	Entry("some, by a quota of no priority class", "0 of 3 by q", one, quota("q", "cpu=0", "", classes(corev1.ScopeSelectorOpDoesNotExist))),
	Entry("all, by a quota of any priority class, without one", "3", one, quota("q", "cpu=0", "", classes(corev1.ScopeSelectorOpExists))),
	Entry("some, by a quota of other priority classes, without one", "0 of 3 by q", one, quota("q", "cpu=0", "", classes(corev1.ScopeSelectorOpNotIn, "important"))),
	Entry("all, by a quota of another priority class", "3", podSpec("cpu=1", important), quota("q", "cpu=0", "", classes(corev1.ScopeSelectorOpIn, "minor"))),
	Entry("some, by a quota of pods without requests", "0 of 3 by q", podSpec("example.com/license=1"), quota("q", "requests.example.com/license=0", "", scope(corev1.ResourceQuotaScopeBestEffort))),
	Entry("all, by a quota of pods without requests, with memory alone", "3", podSpec("memory=1Gi"), quota("q", "memory=0", "", scope(corev1.ResourceQuotaScopeBestEffort))),
	Entry("all, by a quota of pods with requests, with neither CPU nor memory", "3", podSpec("example.com/license=1"), quota("q", "requests.example.com/license=0", "", scope(corev1.ResourceQuotaScopeNotBestEffort))),
	Entry("all, by a quota of pods that end, which do not", "3", podSpec("cpu=1", ends), quota("q", "cpu=0", "", scope(corev1.ResourceQuotaScopeNotTerminating))),
	Entry("some, by a quota of pods that end, which do", "0 of 3 by q", podSpec("cpu=1", ends), quota("q", "cpu=0", "", scope(corev1.ResourceQuotaScopeTerminating))),
	Entry("all, by a quota of a scope that is not known here", "3", one, quota("q", "cpu=0", "", scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity))),
	Entry("all, by a quota of no priority class", "3", podSpec("cpu=1", important), quota("q", "cpu=0", "", classes(corev1.ScopeSelectorOpDoesNotExist))),
)

var _ = It("Quotas are shared out, the oldest buffer first (law 3)", func() {
	young, old := chunks("a", 3, "cpu=1"), chunks("b", 3, "cpu=1")
	old.Object.CreationTimestamp.Time = now.Add(-time.Hour)
	p := NewPlan(View{Quotas: []*corev1.ResourceQuota{quota("q", "cpu=4", "")}, Buffers: []Buffer{young, old}})
	Expect(outcome(p.Decisions[0])).To(Equal("1 of 3 by q"))
	Expect(outcome(p.Decisions[1])).To(Equal("3"))
})

var _ = It("Quotas count up to 32 of a namespace, the first by name (law 8)", func() {
	var all []*corev1.ResourceQuota
	for i := range 32 {
		all = append(all, quota(fmt.Sprintf("q%02d", i), "cpu=10", ""))
	}
	none := []*corev1.ResourceQuota{quota("q31a", "cpu=0", "")}
	v := View{Quotas: append(none, all...), Buffers: []Buffer{chunks("b", 3, "cpu=1")}}
	Expect(outcome(NewPlan(v).Decisions[0])).To(Equal("3"))
	none[0].Name = "q30a"
	Expect(outcome(NewPlan(v).Decisions[0])).To(Equal("0 of 3 by q30a"))
})

var _ = DescribeTable("A condition says how quotas limit chunks (law 3)",
	func(hard, want, provisioning string) {
		v := View{Quotas: []*corev1.ResourceQuota{quota("q", hard, "")}, Buffers: []Buffer{chunks("b", 3, "cpu=1")}, Pools: []Pool{site("a", "cpu=4", 9)}}
		conditions := NewStatus(NewPlan(v).Decisions[0], now).Conditions
		Expect(conditions[1].Reason + ": " + conditions[1].Message).To(Equal(want))
		Expect(conditions[2].Reason + ": " + conditions[2].Message).To(Equal(provisioning))
	},
	Entry("not at all", "cpu=3", reason.NotLimited+": ResourceQuotas leave room for all chunks", reason.MachinesRequested+": machines are requested for 3 chunks in a"),
	Entry("to some", "cpu=2", reason.ResourceQuotasAllocated+": ResourceQuotas leave room for 2 of 3 chunks: q", reason.MachinesRequested+": machines are requested for 2 chunks in a"),
	Entry("to none", "cpu=0", reason.ResourceQuotasAllocated+": ResourceQuotas leave room for 0 of 3 chunks: q", reason.NoChunks+": ResourceQuotas leave no room for chunks: q"),
)

var _ = DescribeTable("Why the shape of a workload of another kind is not known (law 1)",
	func(s *Scale, want string) {
		b := Buffer{Object: ofRollout("b"), Scale: s}
		Expect(NewPlan(View{Buffers: []Buffer{b}}).Decisions[0].Problem.Reason).To(Equal(want))
	},
	Entry("it has not been read", nil, reason.WorkloadUnread),
	Entry("it does not exist", UnreadScale(apierrors.NewNotFound(schema.GroupResource{}, "web")), reason.WorkloadNotFound),
	Entry("its kind is not served", UnreadScale(&meta.NoKindMatchError{}), reason.KindNotSupported),
	Entry("the cluster does not answer", UnreadScale(errors.New("timeout")), reason.WorkloadUnread),
	Entry("it has no pods", &Scale{Replicas: 3, Selector: labels.Everything()}, reason.PodNotFound),
)

var _ = It("A percentage of a workload whose scale cannot be read is not known", func() {
	b := Buffer{Object: ofRollout("b"), Scale: UnreadScale(errors.New("timeout"))}
	b.Object.Status.Replicas = ptr.To[int32](2)
	d := NewPlan(View{Buffers: []Buffer{b}}).Decisions[0]
	Expect([]any{d.Asked, d.Chunks}).To(Equal([]any{0, 2}))
	Expect(NewStatus(d, now).Replicas).To(HaveValue(BeEquivalentTo(2)))
})

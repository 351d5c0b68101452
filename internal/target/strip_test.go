// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/kueue"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// huge is as large as the annotations of an object may be.
var huge = strings.Repeat("x", 256<<10)

func strip[T runtime.Object](t rapid.TB, o T) T {
	before := o.DeepCopyObject()
	slim, err := target.Strip(o)
	if err != nil || !equality.Semantic.DeepEqual(before, o) {
		t.Fatalf("the transform changed its input, or failed: %v", err)
	}
	again, _ := target.Strip(slim)
	if !equality.Semantic.DeepEqual(slim, again) {
		t.Fatalf("stripped twice, %v became %v", slim, again)
	}
	return slim.(T)
}

// podReaders are what controllers read of a pod beside what package fit does, whose own tests compare slim pods with whole ones.
var podReaders = map[string]func(*corev1.Pod) any{
	"identity": func(p *corev1.Pod) any {
		return []any{p.Namespace, p.Name, p.UID, p.ResourceVersion, p.CreationTimestamp, p.DeletionTimestamp}
	},
	"labels":     func(p *corev1.Pod) any { return p.Labels },
	"controller": func(p *corev1.Pod) any { return metav1.GetControllerOfNoCopy(p) },
	"place": func(p *corev1.Pod) any {
		return []any{p.Spec.NodeName, p.Status.NominatedNodeName, p.Spec.SchedulerName, p.Status.Phase, p.Spec.Priority, len(p.Spec.SchedulingGates) > 0}
	},
	"never preempts": func(p *corev1.Pod) any { return ptr.Deref(p.Spec.PreemptionPolicy, "") == corev1.PreemptNever },
	"scheduled": func(p *corev1.Pod) any {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				if c.Status == corev1.ConditionTrue && c.LastTransitionTime.Sub(p.CreationTimestamp.Time) > time.Second {
					return []any{c.Status, c.Reason, c.LastTransitionTime}
				}
				return []any{c.Status, c.Reason}
			}
		}
		return nil
	},
	"workload": func(p *corev1.Pod) any { return pool.IsWorkload(p) },
	"request":  func(p *corev1.Pod) any { return v1alpha1.RequestOf(p) },
	"eviction": func(p *corev1.Pod) any {
		if p.Spec.NodeName == "" {
			return nil
		}
		budgets := []pool.Budget{
			{Namespace: p.Namespace, Name: "a", Selector: labels.SelectorFromSet(labels.Set{"app": "a"})},
			{Namespace: p.Namespace, Name: "b", Selector: labels.SelectorFromSet(labels.Set{"app": "b"}), Allowed: 1},
		}
		var all []string
		for _, after := range []time.Duration{0, 45 * time.Second, time.Hour, 2 * time.Hour} {
			now := time.Unix(1e9, 0).Add(after)
			all = append(all, pool.NewEvictor(pool.EvictionRule{}, budgets, "", now).WhyNot(p), pool.NewEvictor(pool.EvictionRule{LocalStorage: true}, nil, "", now).WhyNot(p))
		}
		return all
	},
	"free": func(p *corev1.Pod) any {
		return similar.Free(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}, []*corev1.Pod{p})
	},
	"tolerates": func(p *corev1.Pod) any {
		var all []bool
		for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute} {
			all = append(all, pool.ToleratesReserve(p, []corev1.TaintEffect{effect}))
		}
		return all
	},
	"elsewhere": func(p *corev1.Pod) any {
		p = p.DeepCopy()
		p.Spec.NodeName = ""
		return fit.Read(p, true).Shape()
	},
}

// drawPod draws what the readers look at.
func drawPod(t *rapid.T) *corev1.Pod {
	pick := func(what string, values ...string) string { return rapid.SampledFrom(values).Draw(t, what) }
	now := metav1.NewTime(time.Unix(1e9, 0))
	return fixture.Pod("p", func(p *corev1.Pod) {
		p.UID, p.ResourceVersion, p.CreationTimestamp = "uid", "7", now
		p.Labels = map[string]string{"app": pick("app", "a", "b")}
		p.Annotations = map[string]string{"note": "x"}
		p.Namespace = pick("namespace", "default", metav1.NamespaceSystem)
		for _, key := range []string{corev1.MirrorPodAnnotationKey, pool.SafeToEvict, similar.DaemonSetPod} {
			if value := pick(key, "none", "true", "false", pool.OnCompletion, "falsehood", ""); value != "none" {
				p.Annotations[key] = value
			}
		}
		if key := pick("request", "", provisioningv1.ConsumeAnnotation, provisioningv1.OldConsumeAnnotation); key != "" {
			p.Annotations[key] = "r"
		}
		if kind := pick("owner", "", "ReplicaSet", "DaemonSet", "Node"); kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "o", UID: types.UID("o"), Controller: ptr.To(rapid.Bool().Draw(t, "controls"))}}
		}
		if rapid.Bool().Draw(t, "going") {
			p.DeletionTimestamp = &now
		}
		if rapid.Bool().Draw(t, "patient") {
			p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600)
		}
		drawVolumes(t, p)
		p.Spec.NodeName, p.Spec.SchedulerName = pick("node", "", "n"), pick("scheduler", "", "default-scheduler")
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: pick("zone", "a", "b")}
		p.Spec.Priority = rapid.SampledFrom([]*int32{nil, ptr.To[int32](-20), ptr.To[int32](5)}).Draw(t, "priority")
		p.Spec.PreemptionPolicy = rapid.SampledFrom([]*corev1.PreemptionPolicy{nil, ptr.To(corev1.PreemptLowerPriority), ptr.To(corev1.PreemptNever)}).Draw(t, "preemption policy")
		if rapid.Bool().Draw(t, "gated") {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}, {Name: "h"}}
		}
		for range rapid.IntRange(0, 3).Draw(t, "tolerations") {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
				Key: pick("key", "", v1alpha1.ReserveTaintKey, "other"), Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffect(pick("effect", "", "NoSchedule", "PreferNoSchedule", "NoExecute")),
			})
		}
		p.Status.Phase, p.Status.NominatedNodeName = corev1.PodPhase(pick("phase", "", "Pending", "Running", "Succeeded", "Failed")), pick("nominated", "", "m")
		if reason := pick("reason", "", corev1.PodReasonUnschedulable, "Other"); reason != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}, {Type: corev1.PodScheduled, Status: corev1.ConditionStatus(pick("scheduled", "True", "False")), Reason: reason,
				LastTransitionTime: metav1.NewTime(p.CreationTimestamp.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "waited")) * time.Second))}}
		}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick("cpu", "1", "250m"))}
	})
}

// drawVolumes draws volumes, and which of them are safe.
func drawVolumes(t *rapid.T, p *corev1.Pod) {
	sources := []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}}, {EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}, {PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}},
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "volumes") {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: rapid.SampledFrom(sources).Draw(t, "source")})
	}
	if safe := rapid.SampledFrom([]string{"", "v0", "v0,v1", "v1, v2"}).Draw(t, "safe volumes"); safe != "" {
		p.Annotations[pool.SafeToEvictLocalVolumes] = safe
	}
}

var _ = Describe("A stripped pod", func() {
	It("reads as the whole one", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			whole := drawPod(t)
			slim := strip(t, whole)
			for what, read := range podReaders {
				if x, y := read(whole), read(slim); !equality.Semantic.DeepEqual(x, y) {
					t.Fatalf("%s: %v became %v", what, x, y)
				}
			}
		})
	})

	DescribeTable("is small, whatever its author wrote", func(node string, change func(*corev1.Pod)) {
		slim := strip(GinkgoT(), fixture.Pod("p", func(p *corev1.Pod) { p.Spec.NodeName = node }, change))
		Expect(slim.Size()).To(BeNumerically("<", fit.MaxBytes+1<<10))
		Expect(slim.Spec.NodeName).To(Equal(node))
	},
		Entry("in annotations", "", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"a": huge, pool.SafeToEvict: huge, corev1.MirrorPodAnnotationKey: huge, similar.DaemonSetPod: huge}
		}),
		Entry("in labels, where it runs", "n", func(p *corev1.Pod) {
			p.Labels = map[string]string{}
			for i := range 5000 {
				p.Labels[fmt.Sprintf("label-%d", i)] = "some value"
			}
		}),
		Entry("in constraints", "n", func(p *corev1.Pod) {
			for range 100 {
				p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{WhenUnsatisfiable: corev1.DoNotSchedule, TopologyKey: "k"})
			}
		}),
		Entry("in volumes and what it says of them", "n", func(p *corev1.Pod) {
			p.Annotations = map[string]string{pool.SafeToEvictLocalVolumes: huge}
			for i := range 500 {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: huge[:1000]}}})
			}
		}),
		Entry("in containers", "", func(p *corev1.Pod) {
			for i := range 500 {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint(i), Command: []string{huge[:1000]}, Env: []corev1.EnvVar{{Name: "a", Value: huge}}})
			}
		}),
	)

	DescribeTable("keeps what prevents its eviction", func(change func(*corev1.Pod)) {
		whole := fixture.Pod("p", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = "n", ptr.To[int64](3600)
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "o", Controller: ptr.To(true)}}
		}, change)
		evictor := pool.NewEvictor(pool.EvictionRule{}, nil, "", time.Unix(1e9, 0).Add(30*time.Minute))
		Expect(evictor.WhyNot(whole)).NotTo(BeEmpty())
		Expect(evictor.WhyNot(strip(GinkgoT(), whole))).To(Equal(evictor.WhyNot(whole)))
	},
		Entry("an annotation", func(p *corev1.Pod) { p.Annotations = map[string]string{pool.SafeToEvict: "false"} }),
		Entry("until it has finished", func(p *corev1.Pod) { p.Annotations = map[string]string{pool.SafeToEvict: pool.OnCompletion} }),
		Entry("the kind of its controller", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Workflow" }),
		Entry("its namespace and its age", func(p *corev1.Pod) {
			p.Namespace, p.CreationTimestamp = metav1.NamespaceSystem, metav1.NewTime(time.Unix(1e9, 0))
		}),
		Entry("local storage for as long as it may take to end", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			p.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1e9, 0)))
		}),
	)

	It("tolerates the reserve taint also if it has more tolerations than are kept", func() {
		slim := strip(GinkgoT(), fixture.Pod("p", func(p *corev1.Pod) {
			p.Spec.NodeName = "n"
			for i := range 1000 {
				p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists})
			}
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: v1alpha1.ReserveTaintKey, Operator: corev1.TolerationOpExists})
		}))
		Expect(slim.Spec.Tolerations).To(HaveLen(1))
		Expect(podReaders["tolerates"](slim)).To(HaveEach(true))
	})
})

var _ = Describe("What is kept", func() {
	It("of a Node is all that machine-controller-manager writes back or reads, and no more of its status", func() {
		whole := fixture.Node("n", func(n *corev1.Node) {
			n.Labels, n.Annotations, n.Finalizers = map[string]string{"a": "b"}, map[string]string{"c": "d"}, []string{"e"}
			n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
			n.Spec = corev1.NodeSpec{ProviderID: "f", PodCIDR: "g", Unschedulable: true, Taints: []corev1.Taint{{Key: "h"}}}
			n.Status.Capacity, n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4")}, corev1.ResourceList{"cpu": resource.MustParse("3")}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}, {Type: "InPlaceUpdate", Reason: "UpdateSuccessful"}}
			n.Status.Images = []corev1.ContainerImage{{Names: []string{huge}}}
			n.Status.VolumesInUse = []corev1.UniqueVolumeName{"v"}
		})
		want := whole.DeepCopy()
		want.ManagedFields = nil
		want.Status = corev1.NodeStatus{Capacity: want.Status.Capacity, Allocatable: want.Status.Allocatable, Conditions: want.Status.Conditions}
		Expect(strip(GinkgoT(), whole)).To(Equal(want))
	})

	DescribeTable("of metadata is what an object is, and its version, by which handlers notice changes", func(of func(metav1.ObjectMeta) runtime.Object) {
		now := metav1.NewTime(time.Unix(1e9, 0))
		want := metav1.ObjectMeta{
			Namespace: "default", Name: "o", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: now, DeletionTimestamp: &now,
		}
		whole := *want.DeepCopy()
		whole.Finalizers, whole.ManagedFields = []string{huge}, []metav1.ManagedFieldsEntry{{Manager: huge}}
		kept, err := meta.Accessor(strip(GinkgoT(), of(whole)))
		Expect(err).NotTo(HaveOccurred())
		kept.SetLabels(nil) // a PersistentVolume has some
		Expect(kept).To(HaveField("ObjectMeta", want))
	},
		Entry("of a budget", func(m metav1.ObjectMeta) runtime.Object { return &policyv1.PodDisruptionBudget{ObjectMeta: m} }),
		Entry("of a DaemonSet", func(m metav1.ObjectMeta) runtime.Object { return &appsv1.DaemonSet{ObjectMeta: m} }),
		Entry("of a ReplicaSet", func(m metav1.ObjectMeta) runtime.Object { return &appsv1.ReplicaSet{ObjectMeta: m} }),
		Entry("of a Job", func(m metav1.ObjectMeta) runtime.Object { return &batchv1.Job{ObjectMeta: m} }),
		Entry("of a PodTemplate", func(m metav1.ObjectMeta) runtime.Object { return &corev1.PodTemplate{ObjectMeta: m} }),
		Entry("of a PodGroup", func(m metav1.ObjectMeta) runtime.Object { return &schedulingv1alpha2.PodGroup{ObjectMeta: m} }),
		Entry("of a claim", func(m metav1.ObjectMeta) runtime.Object { return &corev1.PersistentVolumeClaim{ObjectMeta: m} }),
		Entry("of a volume", func(m metav1.ObjectMeta) runtime.Object { return &corev1.PersistentVolume{ObjectMeta: m} }),
		Entry("of a StorageClass", func(m metav1.ObjectMeta) runtime.Object { return &storagev1.StorageClass{ObjectMeta: m} }),
		Entry("of a driver", func(m metav1.ObjectMeta) runtime.Object { return &storagev1.CSIDriver{ObjectMeta: m} }),
	)

	It("of a budget decides which pods may be evicted; if its selector is too large, it allows no eviction", func() {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: map[string]string{"a": huge}}}
		b.Spec.Selector, b.Status.DisruptionsAllowed = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, 3
		Expect(strip(GinkgoT(), b).Status.DisruptionsAllowed).To(BeEquivalentTo(3))
		Expect(strip(GinkgoT(), b).Spec.Selector.MatchLabels).To(HaveLen(1))
		b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{huge}}}
		Expect(strip(GinkgoT(), b).Size()).To(BeNumerically("<", 1<<10))
		Expect(strip(GinkgoT(), b).Status.DisruptionsAllowed).To(BeZero())
	})

	It("of a ReplicaSet is the number of its pods, and whether they cannot be created", func() {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u", Annotations: map[string]string{"a": huge}}}
		set.Spec = appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](7), Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": huge}}}}
		set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: "Other"}, {Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: huge}}
		slim := strip(GinkgoT(), set)
		Expect(slim.UID).To(BeEquivalentTo("u"))
		Expect(slim.Spec.Replicas).To(HaveValue(BeEquivalentTo(7)))
		Expect(slim.Status.Conditions).To(ConsistOf(HaveField("Status", corev1.ConditionTrue)))
		Expect(slim.Size()).To(BeNumerically("<", 1<<10))
	})

	It("of a Job is the number of its pods, and whether it creates any", func() {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "u", Annotations: map[string]string{"a": huge}}}
		job.Spec = batchv1.JobSpec{
			Parallelism: ptr.To[int32](7), Completions: ptr.To[int32](9), Suspend: ptr.To(true), ManagedBy: ptr.To("other"), CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": huge}}},
		}
		job.Status = batchv1.JobStatus{
			StartTime: ptr.To(metav1.Now()), Succeeded: 1, Failed: 2, Terminating: ptr.To[int32](3), CompletedIndexes: huge,
			Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}, {Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: huge}},
		}
		slim, want := strip(GinkgoT(), job), job.DeepCopy()
		want.Annotations, want.Spec.Template = nil, corev1.PodTemplateSpec{}
		want.Status.CompletedIndexes, want.Status.Conditions = "", []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		Expect(slim).To(Equal(want))
	})

	It("of a pod that Kueue admits with others is the name of its group, and how many they are", func() {
		const name, count = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
		for _, pod := range []metav1.ObjectMeta{
			{Labels: map[string]string{name: "g"}, Annotations: map[string]string{count: "3", "a": huge}},
			{Annotations: map[string]string{name: "g", count: "3"}},
			{Labels: map[string]string{name: "other"}, Annotations: map[string]string{name: "g", count: "3"}},
		} {
			group, pods := kueue.Group(target.StripPod(&corev1.Pod{ObjectMeta: pod, Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}))
			Expect(group).To(Equal("g"))
			Expect(pods).To(Equal(3))
		}
		for _, annotations := range []map[string]string{{}, {count: "x"}, {count: "0"}, {count: "3", "kueue.x-k8s.io/pod-group-fast-admission": "true"}, {count: "3", "kueue.x-k8s.io/pod-group-serving": "true"}} {
			group, _ := kueue.Group(target.StripPod(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{name: "g"}, Annotations: annotations}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)},
			}))
			Expect(group).To(BeEmpty())
		}
	})

	It("of a PodGroup is how many of its pods start together, and whether it has other rules", func() {
		group := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", UID: "u", Annotations: map[string]string{"a": huge}}}
		group.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 3}
		want := group.DeepCopy()
		want.Annotations = nil
		Expect(strip(GinkgoT(), group)).To(Equal(want))
		group.Spec.SchedulingConstraints = &schedulingv1alpha2.PodGroupSchedulingConstraints{Topology: []schedulingv1alpha2.TopologyConstraint{{Key: huge}}}
		group.Spec.ResourceClaims = []schedulingv1alpha2.PodGroupResourceClaim{{Name: huge}, {Name: huge}}
		group.Status.Conditions = []metav1.Condition{{Message: huge}}
		want.Spec.SchedulingConstraints, want.Spec.ResourceClaims = &schedulingv1alpha2.PodGroupSchedulingConstraints{}, []schedulingv1alpha2.PodGroupResourceClaim{{}}
		Expect(strip(GinkgoT(), group)).To(Equal(want))
	})

	DescribeTable("of a DaemonSet is its pod, and whether its priority is the system's", func(class, want string) {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", Annotations: map[string]string{"a": huge}}}
		set.Spec.Template.Spec = corev1.PodSpec{PriorityClassName: class, NodeSelector: map[string]string{"a": "b"}, Containers: []corev1.Container{{Args: []string{huge}}}}
		slim := strip(GinkgoT(), set)
		Expect(slim.Spec.Template.Spec.PriorityClassName).To(Equal(want))
		Expect(slim.Spec.Template.Spec.NodeSelector).To(HaveKey("a"))
		Expect(slim.Size()).To(BeNumerically("<", 1<<10))
	},
		Entry(nil, "system-node-critical", target.SystemPriority),
		Entry(nil, "mine", ""),
	)

	It("of a DaemonSet requests what its pods do, and takes the same ports of a Node", func() {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
		set.Spec.Template.Spec = corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{
			Ports:     []corev1.ContainerPort{{ContainerPort: 9100}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}},
		}}}
		node := fixture.Node("n")
		for _, set := range []*appsv1.DaemonSet{set, strip(GinkgoT(), set)} {
			room := fit.NewRoom([]fit.Node{{Object: node, Pods: []*fit.Pod{target.DaemonPod(set, nil)}}})
			waiting := func(change func(*corev1.Container)) *fit.Pod {
				p := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}
				change(&p.Spec.Containers[0])
				return fit.Read(p, true)
			}
			Expect(room.Ask(waiting(func(c *corev1.Container) {
				c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			}), "n")).To(Equal(fit.Full))
			Expect(room.Ask(waiting(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{HostPort: 9100}} }), "n")).To(Equal(fit.PortTaken))
		}
		Expect(set.Spec.Template.Spec.Containers[0].Resources.Requests).To(BeNil(), "the DaemonSet itself is unchanged")
	})
})

// ownedBy makes a pod one of those of an owner.
func ownedBy(owner types.UID) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: owner, Controller: ptr.To(true)}}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}
}

var _ = Describe("Pods of one owner", func() {
	var transform func(any) (any, error)
	var remembered func() int
	BeforeEach(func() { transform, remembered = target.Sharing() })

	keep := func(name string, change ...func(*corev1.Pod)) *corev1.Pod {
		GinkgoHelper()
		pod := fixture.Pod(name, change...)
		kept, err := transform(pod)
		Expect(err).NotTo(HaveOccurred())
		Expect(kept).To(Equal(target.StripPod(pod)), "a pod is the same whether or not it shares anything")
		return kept.(*corev1.Pod)
	}
	share := func(a, b *corev1.Pod) bool { return &a.Spec.Containers[0] == &b.Spec.Containers[0] }

	It("share what they have in common, and keep their names, Nodes and states", func() {
		a, b := keep("a", ownedBy("web")), keep("b", ownedBy("web"))
		Expect(share(a, b)).To(BeTrue())
		Expect(&a.OwnerReferences[0]).To(BeIdenticalTo(&b.OwnerReferences[0]))
		on := func(node string, phase corev1.PodPhase) func(*corev1.Pod) {
			return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = node, phase }
		}
		c, d := keep("c", ownedBy("web"), on("n", corev1.PodRunning)), keep("d", ownedBy("web"), on("m", corev1.PodPending))
		Expect(share(c, d)).To(BeTrue())
		Expect(share(a, keep("e", ownedBy("web")))).To(BeTrue(), "those that wait still do")
	})

	DescribeTable("share all but what differs", func(change func(*corev1.Pod), differs func(p *corev1.Pod) any) {
		first := keep("a", ownedBy("web"))
		other := keep("b", ownedBy("web"), change)
		Expect(differs(other)).NotTo(Equal(differs(first)))
		Expect(differs(keep("c", ownedBy("web"), change))).To(BeIdenticalTo(differs(other)), "those of the last one are shared")
		Expect(&other.OwnerReferences[0]).To(BeIdenticalTo(&first.OwnerReferences[0]))
	},
		Entry("its requests", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}, func(p *corev1.Pod) any { return &p.Spec.Containers[0] }),
		Entry("its priority", func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](7) }, func(p *corev1.Pod) any { return p.Spec.Priority }),
		Entry("its preemption policy", func(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }, func(p *corev1.Pod) any { return p.Spec.PreemptionPolicy }),
		Entry("its affinity", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}}
		}, func(p *corev1.Pod) any { return p.Spec.Affinity }),
	)

	It("share their requests where each has labels and volumes of its own, as those of a StatefulSet have", func() {
		ordinal := func(name string) func(*corev1.Pod) {
			return func(p *corev1.Pod) {
				p.Labels = map[string]string{"statefulset.kubernetes.io/pod-name": name}
				p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
			}
		}
		Expect(share(keep("a", ownedBy("db"), ordinal("a")), keep("b", ownedBy("db"), ordinal("b")))).To(BeTrue())
	})

	It("share nothing with pods of another owner", func() {
		Expect(share(keep("a", ownedBy("web")), keep("b", ownedBy("shop")))).To(BeFalse())
	})

	It("share without an owner, too", func() {
		none := func(p *corev1.Pod) { ownedBy("web")(p); p.OwnerReferences = nil }
		Expect(share(keep("a", none), keep("b", none))).To(BeTrue())
	})

	It("are returned as they are when a streamed list passes them again", func() {
		once := keep("a", ownedBy("web"))
		again, err := transform(once)
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(BeIdenticalTo(once))
	})

	It("are not remembered beyond a bound", func() {
		for i := range 3 * target.MaxShapes {
			keep(fmt.Sprint("pod-", i), ownedBy(types.UID(fmt.Sprint(i))))
			Expect(remembered()).To(BeNumerically("<=", target.MaxShapes))
		}
	})
})

// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	scheduler "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/similar"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// sample is a Node with its pods.
type sample struct {
	Candidate
	pods []*corev1.Pod
}

type changed func(*sample)

// candidate is a Node that has been Ready for an hour, with one DaemonSet pod.
func candidate(name string, changes ...changed) sample {
	n := node()
	n.node.Name = name
	n.node.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Hour))
	c := sample{Candidate{Node: &n.node}, []*corev1.Pod{daemon("cpu=100m")}}
	ready(corev1.ConditionTrue, time.Hour)(&c)
	for _, change := range changes {
		change(&c)
	}
	return c
}

func ready(status corev1.ConditionStatus, since time.Duration) changed {
	return func(c *sample) {
		c.Node.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-since))},
		}
	}
}

func released(ago time.Duration) changed { return func(c *sample) { c.Released = now.Add(-ago) } }

func tainted(key string) changed {
	return func(c *sample) {
		c.Node.Spec.Taints = []corev1.Taint{{Key: "own"}, {Key: key, Effect: corev1.TaintEffectNoSchedule}}
	}
}

func created(ago time.Duration) changed {
	return func(c *sample) { c.Node.CreationTimestamp = metav1.NewTime(now.Add(-ago)) }
}

func running(pods ...*corev1.Pod) changed { return func(c *sample) { c.pods = pods } }

func choose(all ...sample) (Template, bool) {
	var candidates []Candidate
	pods := map[string][]*corev1.Pod{}
	for _, s := range all {
		candidates, pods[s.Node.Name] = append(candidates, s.Candidate), s.pods
	}
	return Choose("md", candidates, func(node string) []*corev1.Pod { return pods[node] }, now)
}

var _ = DescribeTable("a Node that may be a template", func(change changed, fit bool) {
	c := candidate("n", change)
	Expect(c.Fit(now)).To(Equal(fit))
	_, found := choose(c)
	Expect(found).To(Equal(fit))
},
	Entry("Ready for long", ready(corev1.ConditionTrue, time.Hour), true),
	Entry("Ready for an unknown time", func(c *sample) { c.Node.Status.Conditions[1].LastTransitionTime = metav1.Time{} }, true),
	Entry("just settled", ready(corev1.ConditionTrue, Settling), true),
	Entry("Ready a moment ago", ready(corev1.ConditionTrue, Settling-1), false),
	Entry("not Ready", ready(corev1.ConditionFalse, time.Hour), false),
	Entry("not heard of", ready(corev1.ConditionUnknown, time.Hour), false),
	Entry("without condition", func(c *sample) { c.Node.Status.Conditions = nil }, false),
	Entry("marked as reserve", func(c *sample) { c.Node.Annotations = map[string]string{v1alpha1.ReserveAnnotation: "x"} }, false),
	Entry("marked as reserve, with nothing in the mark", func(c *sample) { c.Node.Annotations = map[string]string{v1alpha1.ReserveAnnotation: ""} }, false),
	Entry("the Machine marked alone", func(c *sample) { c.Reserve = true }, false),
	Entry("released a moment ago", released(Settling-1), false),
	Entry("released and settled", released(Settling), true),
	Entry("cordoned", func(c *sample) { c.Node.Spec.Unschedulable = true }, false),
	Entry("being deleted", func(c *sample) { c.Node.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }, false),
	Entry("about to be deleted", tainted("ToBeDeletedByClusterAutoscaler"), false),
	Entry("without its critical components", tainted("node.gardener.cloud/critical-components-not-ready"), false),
	Entry("not known to its cloud yet", tainted("node.cloudprovider.kubernetes.io/uninitialized"), false),
	Entry("starting", tainted("startup-taint.cluster-autoscaler.kubernetes.io/x"), false),
	Entry("not ready by a rule", tainted("readiness.k8s.io/network"), false),
	Entry("starting, in the older words", tainted("ignore-taint.cluster-autoscaler.kubernetes.io/x"), false),
	Entry("of a tainted pool", tainted("dedicated"), true),
)

var _ = DescribeTable("the Node that is chosen", func(want string, all ...sample) {
	for i, c := range all {
		c.Node.Labels["which"] = c.Node.Name
		all[i] = c
	}
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		got, ok := choose(rapid.Permutation(all).Draw(t, "order")...)
		if !ok || got.Name != "md" || got.Labels["which"] != want {
			t.Fatalf("chose %q", got.Labels["which"])
		}
	})
},
	Entry("the oldest", "b", candidate("a", created(time.Minute)), candidate("b", created(time.Hour)), candidate("c", created(time.Second))),
	Entry("of the same age, by name", "a", candidate("b"), candidate("a"), candidate("c")),
	Entry("older ones are unfit", "c", candidate("a", created(9*time.Hour), ready(corev1.ConditionFalse, time.Hour)),
		candidate("b", created(8*time.Hour), released(time.Second)), candidate("c")),
	Entry("not the one a rollout has reached", "b", candidate("a", created(9*time.Hour), running()), candidate("b"), candidate("c")),
	Entry("nor if there are two", "b", candidate("a", running()), candidate("b")),
	Entry("not the one set aside for debugging", "b",
		candidate("a", created(9*time.Hour), running(daemon(""), daemon(""))), candidate("b"), candidate("c")),
	Entry("workload says nothing", "a", candidate("a", running(daemon(""), owned("ReplicaSet"))), candidate("b"), candidate("c")),
)

var _ = It("reads only the pods of the twenty oldest Nodes", func() {
	var all []Candidate
	for i := range 30 {
		all = append(all, candidate(fmt.Sprintf("n%02d", i), created(time.Duration(i)*time.Hour)).Candidate)
	}
	var read []string
	_, ok := Choose("md", all, func(node string) []*corev1.Pod {
		read = append(read, node)
		return nil
	}, now)
	Expect(ok).To(BeTrue())
	Expect(read).To(And(HaveLen(20), Not(ContainElement("n09"))))
})

var _ = It("takes all of a Node", func() {
	t := node(size("cpu=4 memory=8Gi"), allocatable("cpu=3"), pod("cpu=1"), label("a=b")).template("md")
	Expect(t.Name).To(Equal("md"))
	Expect(t.Capacity.Cpu().Value()).To(BeEquivalentTo(4))
	Expect(t.Allocatable.Cpu().Value()).To(BeEquivalentTo(3))
	Expect(t.Free.Cpu().Value()).To(BeEquivalentTo(2))
	Expect(t.Labels).To(Equal(map[string]string{"a": "b"}))
	Expect(t.Estimated).To(BeFalse())
})

var _ = It("has no template without Nodes", func() {
	_, found := choose()
	Expect(found).To(BeFalse())
})

var _ = DescribeTable("free", func(want string, pods ...*corev1.Pod) {
	free := Free(amounts("cpu=4 memory=8Gi pods=110"), pods)
	expected := amounts(want)
	Expect(free).To(HaveLen(len(expected)))
	for name, q := range expected {
		Expect(q.Cmp(free[name])).To(BeZero(), "%s: %s", name, ptr.To(free[name]))
	}
},
	Entry("no pods", "cpu=4 memory=8Gi pods=110"),
	Entry("a DaemonSet's", "cpu=3900m memory=7Gi pods=109", daemon("cpu=100m memory=1Gi")),
	Entry("two", "cpu=3700m memory=7Gi pods=108", daemon("cpu=100m"), daemon("cpu=200m memory=1Gi")),
	Entry("one that requests nothing", "cpu=4 memory=8Gi pods=109", daemon("")),
	Entry("kube-proxy as a static pod", "cpu=3900m memory=8Gi pods=109", owned("Node", annotated(corev1.MirrorPodAnnotationKey, "abc"))),
	Entry("said to be a DaemonSet's", "cpu=3900m memory=8Gi pods=109",
		owned("Node", annotated("cluster-autoscaler.kubernetes.io/daemonset-pod", "true"))),
	Entry("said not to be", "cpu=4 memory=8Gi pods=110", owned("Node", annotated("cluster-autoscaler.kubernetes.io/daemonset-pod", "false"))),
	Entry("a ReplicaSet's", "cpu=4 memory=8Gi pods=110", owned("ReplicaSet")),
	Entry("nobody's", "cpu=4 memory=8Gi pods=110", &corev1.Pod{}),
	Entry("a DaemonSet is an owner, not the controller", "cpu=4 memory=8Gi pods=110", owned("DaemonSet", func(p *corev1.Pod) {
		p.OwnerReferences[0].Controller = ptr.To(false)
	})),
	Entry("a DaemonSet is an owner, and does not say whether it is the controller", "cpu=4 memory=8Gi pods=110", owned("DaemonSet", func(p *corev1.Pod) {
		p.OwnerReferences[0].Controller = nil
	})),
	Entry("failed", "cpu=4 memory=8Gi pods=110", owned("DaemonSet", in(corev1.PodFailed))),
	Entry("succeeded", "cpu=4 memory=8Gi pods=110", owned("DaemonSet", in(corev1.PodSucceeded))),
	Entry("on its way out", "cpu=3900m memory=8Gi pods=109", owned("DaemonSet", func(p *corev1.Pod) {
		p.DeletionTimestamp = ptr.To(metav1.Now())
	})),
	Entry("more than there is", "cpu=0 memory=8Gi pods=109", daemon("cpu=5")),
	Entry("something that is not allocatable", "cpu=4 memory=8Gi pods=109", daemon("example.com/gpu=1")),
)

// owned is a pod of 100m CPU with a controller of that kind.
func owned(kind string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := daemon("cpu=100m")
	p.OwnerReferences[0].Kind = kind
	for _, c := range changes {
		c(p)
	}
	return p
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func in(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

var _ = It("sets aside for a pod what the scheduler does", func() {
	plenty := amounts("cpu=1k memory=1k hugepages-2Mi=1k example.com/gpu=1k")
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		pod := drawPod(t)
		before := pod.DeepCopy()
		want := plenty.DeepCopy()
		for name, q := range scheduler.PodRequests(pod, scheduler.PodResourcesOptions{}) {
			left := want[name]
			left.Sub(q)
			want[name] = left
		}
		free := Free(plenty, []*corev1.Pod{pod})
		for name, q := range want {
			if q.Cmp(free[name]) != 0 {
				t.Fatalf("%s: %v, the scheduler %v; %+v", name, free[name], q, pod.Spec)
			}
		}
		if !before.Spec.Resources.Requests.Cpu().Equal(*pod.Spec.Resources.Requests.Cpu()) || plenty.Cpu().Value() != 1000 {
			t.Fatalf("what was given changed: %+v", pod.Spec)
		}
	})
})

func drawPod(t *rapid.T) *corev1.Pod {
	pod := daemon("")
	pod.Spec.Containers = drawContainers(t, "containers", false)
	pod.Spec.InitContainers = drawContainers(t, "init containers", true)
	pod.Spec.Resources = &corev1.ResourceRequirements{}
	if rapid.Bool().Draw(t, "as a whole") {
		pod.Spec.Resources.Requests = drawAmounts(t, "whole")
	}
	if rapid.Bool().Draw(t, "overhead") {
		pod.Spec.Overhead = drawAmounts(t, "overhead")
	}
	return pod
}

func drawContainers(t *rapid.T, what string, init bool) []corev1.Container {
	all := make([]corev1.Container, rapid.IntRange(0, 4).Draw(t, what))
	for i := range all {
		all[i].Resources.Requests = drawAmounts(t, what)
		if init {
			all[i].RestartPolicy = rapid.SampledFrom([]*corev1.ContainerRestartPolicy{
				nil, ptr.To(corev1.ContainerRestartPolicyAlways), ptr.To(corev1.ContainerRestartPolicyAlways), ptr.To(corev1.ContainerRestartPolicyNever),
			}).Draw(t, "restarts")
		}
	}
	return all
}

func drawAmounts(t *rapid.T, what string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "hugepages-2Mi", "example.com/gpu"} {
		if n := rapid.Int64Range(-3, 9).Draw(t, what+" "+string(name)); n >= 0 {
			l[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	return l
}

var _ = It("leaves what it is given as it is, quantities beyond an int64 too", func() {
	huge := "example.com/x=99999999999999999999 cpu=4"
	allocatable, pods := amounts(huge), []*corev1.Pod{daemon(huge), daemon(huge), owned("DaemonSet", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: amounts(huge)}},
			{Resources: corev1.ResourceRequirements{Requests: amounts(huge)}},
		}
		p.Spec.Overhead = amounts(huge)
	})}
	free := Free(allocatable, pods)
	Expect(free.Cpu().IsZero()).To(BeTrue())
	for _, l := range []corev1.ResourceList{
		allocatable, pods[0].Spec.Containers[0].Resources.Requests, pods[2].Spec.Overhead,
		pods[2].Spec.InitContainers[0].Resources.Requests, pods[2].Spec.InitContainers[1].Resources.Requests,
	} {
		q := l["example.com/x"]
		Expect(q.Cmp(resource.MustParse("99999999999999999999"))).To(BeZero(), q.String())
	}
})

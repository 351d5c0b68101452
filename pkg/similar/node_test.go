// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

var _ = DescribeTable("A Node that has just become ready", expectPlan,
	Entry("has a taint for a moment longer: room that boots", "", "Coming:1", starting(59*time.Second, untainted)),
	Entry("keeps such a taint: no room", "a+1(a-2)", "Released:1", starting(time.Minute, untainted)),
	Entry("keeps such a taint, and whose clock is ahead: no room", "a+1(a-2)", "Released:1", starting(-time.Hour, untainted)),
	Entry("has the taint of all: no room", "a+1(a-2)", "Released:1", starting(59*time.Second, startupTaint)),
	Entry("has a taint, if it is not known what others have: no room", "a+1(a-2)", "Released:1",
		starting(59*time.Second, untainted, func(p *Pool) { p.Sample = nil })),
	Entry("is better avoided: room once", "a+1(a-2)", "HasRoom:4 Released:1", func() *story {
		s := starting(time.Second, untainted).waits(Pods(4, "q", 1000)...)
		s.Nodes[1].Object.Spec.Taints[0].Effect = corev1.TaintEffectPreferNoSchedule
		return s
	}()),
	Entry("has the taint of all: room once for pods that tolerate it", "a+1(a-2)", "HasRoom:4 Released:2", func() *story {
		s := starting(time.Second, startupTaint)
		for i := range 5 {
			p := Pod(fmt.Sprint("q-", i), 1000)
			p.Spec.Tolerations = []corev1.Toleration{{Key: "starting", Operator: corev1.TolerationOpExists}}
			s.waits(p)
		}
		return s
	}()),
	Entry("is cordoned: no room", "a+1(a-2)", "Released:1", func() *story {
		s := starting(59*time.Second, untainted)
		s.Nodes[1].Object.Spec.Unschedulable = true
		return s
	}()),
)

var _ = It("decides again once a taint of a Node that has just become ready counts as one that stays", func() {
	Expect(New(starting(59*time.Second, untainted).View).Again).To(Equal(time.Second))
	Expect(New(starting(time.Minute, untainted).View).Again).To(BeZero())
})

func untainted(*corev1.Node) {}

// startupTaint is one that the kubelet registers a Node with.
func startupTaint(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "starting", Effect: corev1.TaintEffectNoSchedule})
}

// starting has a pod wait beside a machine that has room, has been ready for so long, and has a startup taint. The sample changes.
func starting(ready time.Duration, change func(*corev1.Node), more ...func(*Pool)) *story {
	s := tell().pool("a", 2, 1, 10, append([]func(*Pool){sample(change)}, more...)...).runs("a-0", Pod("f", 4000)).waits(Pod("p", 1000))
	n := s.Nodes[1].Object
	startupTaint(n)
	n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(Noon.Add(-ready))
	return s
}

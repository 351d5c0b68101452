// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

// reported sets the conditions of a pod.
func reported(conditions ...corev1.PodCondition) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions = conditions }
}

func placedBy(scheduler string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulerName = scheduler }
}

var _ = Describe("Whether a pod may justify a machine", func() {
	unschedulable := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}
	gated := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}
	yes, notYet, no := []bool{true, true}, []bool{true, false}, []bool{false, false}

	DescribeTable("depends on what it is, and on what its scheduler has found",
		func(want []bool, change ...func(*corev1.Pod)) {
			counts, tried := UsualSettings.Evaluate(Pod("p", 1000, change...))
			Expect([]bool{counts, tried}).To(Equal(want))
		},
		Entry("no node", yes),
		Entry("no node, and nothing has set a phase yet", yes, func(p *corev1.Pod) { p.Status.Phase = "" }),
		Entry("nothing yet", notYet, Untried),
		Entry("nothing yet, while something else is known", notYet, reported(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})),
		Entry("no node, and something else is known, too", yes, reported(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}, unschedulable)),
		Entry("an error of its own", no, reported(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError})),
		Entry("a node at last", no, reported(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Reason: corev1.PodReasonUnschedulable})),
		Entry("a node, which it is bound to", no, func(p *corev1.Pod) { p.Spec.NodeName = "a-0" }),
		Entry("no node, before it was bound and started", no, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }),
		Entry("no node, and it is deleted", no, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: Noon} }),
		Entry("no node, and it has a gate", no, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }),
		Entry("nothing yet, since it has just lost its gate", notYet, reported(gated)),
		Entry("nothing, since it has a gate", no, reported(gated), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }),
		Entry("no node, before it made room on one", no, func(p *corev1.Pod) { p.Status.NominatedNodeName = "a-0" }),
		Entry("no node, for a pod of another scheduler", no, placedBy("mine")),
		Entry("no node, at the least priority that counts", yes, worth(-10)),
		Entry("no node, one below that", no, worth(-11)),
		Entry("no node, at a high priority", yes, worth(1000)),
		Entry("no node, for a pod of a DaemonSet", no, ownedBy("apps/v1", "DaemonSet")),
		Entry("no node, for a pod of a StatefulSet", yes, ownedBy("apps/v1", "StatefulSet")),
	)

	DescribeTable("depends on its scheduler",
		func(want bool, schedulers []string, name string) {
			counts, _ := Settings{Schedulers: schedulers}.Evaluate(Pod("p", 1000, placedBy(name)))
			Expect(counts).To(Equal(want))
		},
		Entry("Kubernetes' own, by default", true, DefaultSchedulers(), "default-scheduler"),
		Entry("Gardener's, by default", true, DefaultSchedulers(), "bin-packing-scheduler"),
		Entry("no other, by default", false, DefaultSchedulers(), "mine"),
		Entry("another that is named", true, []string{"mine"}, "mine"),
		Entry("any, if none is named", true, nil, "mine"),
	)
})

var _ = DescribeTable("What is remembered of a pod that waits beside room, while a cluster does not answer",
	func(waited time.Duration, kept bool) {
		m := Memory{"p": Noon.Add(-waited)}
		m.KeepDoubtful(Noon, DefaultPatience)
		Expect(m).To(HaveLen(map[bool]int{true: 1}[kept]))
	},
	Entry("nothing, while it was not doubtful", DefaultPatience-1, false),
	Entry("since when it has waited, once it was doubtful", DefaultPatience, true),
)

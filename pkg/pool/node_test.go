// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = DescribeTable("A Node is that of a Machine",
	func(label, machineID, nodeID string, is bool) {
		m := fixture.Machine("m", func(m *mcm.Machine) {
			m.Labels = map[string]string{mcm.NodeLabelKey: label}
			m.Spec.ProviderID = machineID
		})
		n := fixture.Node("ip-10-0-0-1", func(n *corev1.Node) { n.Spec.ProviderID = nodeID })
		Expect(pool.IsNodeOf(m, n)).To(Equal(is))
	},
	Entry("that names it and has its id", "ip-10-0-0-1", "aws:///eu-west-1/i-1", "aws:///eu-west-1/i-1", true),
	Entry("that has the region in its id where the Node has the zone", "ip-10-0-0-1", "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-1", true),
	Entry("unless the Machine's successor has the name", "ip-10-0-0-1", "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-2", false),
	Entry("unless ids without a scheme differ", "ip-10-0-0-1", "eu-1.i-1", "eu-1.i-2", false),
	Entry("while the Node has no id yet", "ip-10-0-0-1", "aws:///eu-west-1/i-1", "", true),
	Entry("while the Machine has no id yet", "ip-10-0-0-1", "", "aws:///eu-west-1a/i-1", true),
	Entry("while the Node has no id yet, and the Machine's has no scheme", "ip-10-0-0-1", "eu-1.i-1", "", true),
	Entry("while the Machine has no id yet, and the Node's has no scheme", "ip-10-0-0-1", "", "eu-1.i-1", true),
	Entry("where the ids have different schemes", "ip-10-0-0-1", "i-1", "aws:///eu-west-1a/i-2", true),
	Entry("not if the Machine names another", "ip-10-0-0-2", "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-1", false),
	Entry("not if the Machine names none", "", "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-1", false),
)

var _ = DescribeTable("Too many Nodes of a cluster are not ready", func(unready, nodes int, want bool) {
	Expect(pool.DefaultUnreadyLimits().Exceeded(unready, nodes)).To(Equal(want))
},
	Entry("not without Nodes", 0, 0, false),
	Entry("not with all ready", 0, 100, false),
	Entry("not with a few unready, though these are all", 3, 3, false),
	Entry("with one more than a few, if these are all", 4, 4, true),
	Entry("with one more than a few, if these are more than 45 %", 4, 8, true),
	Entry("not with 45 % or less", 4, 9, false),
	Entry("not with 45 % exactly", 45, 100, false),
	Entry("with more than 45 %", 46, 100, true),
	Entry("not with 45 % of many", 2250, 5000, false),
	Entry("with more than 45 % of many", 2251, 5000, true),
)

var _ = DescribeTable("Too many Nodes of a zone are not ready", func(unready, nodes int, want bool) {
	Expect(pool.DefaultUnreadyLimits().ZoneExceeded(unready, nodes)).To(Equal(want))
},
	Entry("not without Nodes", 0, 0, false),
	Entry("if its only one is not", 1, 1, true),
	Entry("not if half of two are not", 1, 2, false),
	Entry("if two of three are not", 2, 3, true),
	Entry("not if one of three is not", 1, 3, false),
	Entry("if three of five are not, which is no problem in a cluster", 3, 5, true),
	Entry("if more than 45 % of many are not", 5, 10, true),
	Entry("not if a few of these are not", 3, 6, false),
	Entry("not with 45 % exactly", 9, 20, false),
)

var _ = DescribeTable("With limits of an operator, too many Nodes are not ready", func(count int, percentage float64, unready, nodes int, cluster, zone bool) {
	limits := pool.UnreadyLimits{Count: count, Percentage: percentage}
	Expect(limits.Exceeded(unready, nodes)).To(Equal(cluster))
	Expect(limits.ZoneExceeded(unready, nodes)).To(Equal(zone))
},
	Entry("as soon as one is not", 0, 0.0, 1, 1000, true, true),
	Entry("not while all are ready", 0, 0.0, 0, 1000, false, false),
	Entry("never", 0, 100.0, 5, 5, false, false),
	Entry("by a fraction of a percent", 0, 0.5, 6, 1000, true, true),
	Entry("not by less", 0, 0.5, 5, 1000, false, false),
	Entry("in a zone of few Nodes", 10, 60.0, 2, 3, false, true),
	Entry("not in a zone below the percentage", 10, 70.0, 2, 3, false, false),
)

var _ = DescribeTable("A Node counts as unready", func(want bool, conditions ...corev1.NodeCondition) {
	Expect(pool.Unready(&corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}})).To(Equal(want))
},
	Entry("with the condition Ready False", true, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse}),
	Entry("with the condition Ready Unknown", true, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}),
	Entry("not while it is ready", false, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}),
	Entry("not for another condition", false, corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}),
	Entry("not without conditions", false),
)

var _ = It("The reserve taint is that of its key, whatever its value and effect", func() {
	Expect(pool.IsReserveTaint(taint(machine.ReserveTaintKey, "x", corev1.TaintEffectNoExecute))).To(BeTrue())
	Expect(pool.IsReserveTaint(dedicated)).To(BeFalse())
})

var _ = DescribeTable("The effects that hold a machine in reserve are", func(taints []corev1.Taint, want ...corev1.TaintEffect) {
	m := fixture.Machine("m", func(m *mcm.Machine) { m.Spec.NodeTemplateSpec.Spec.Taints = taints })
	Expect(pool.ReserveEffects(m)).To(Equal(want))
},
	Entry("NoSchedule in any case", nil, corev1.TaintEffectNoSchedule),
	Entry("each of its reserve taints once",
		[]corev1.Taint{taint(machine.ReserveTaintKey, "", corev1.TaintEffectNoSchedule), taint(machine.ReserveTaintKey, "", corev1.TaintEffectNoExecute), taint(machine.ReserveTaintKey, "x", corev1.TaintEffectNoExecute)},
		corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
	Entry("none of another taint", []corev1.Taint{taint("dedicated", "", corev1.TaintEffectNoExecute)}, corev1.TaintEffectNoSchedule),
)

var _ = DescribeTable("Of a pod's tolerations, the reserve needs", func(all []corev1.Toleration, want ...corev1.Toleration) {
	Expect(pool.ReserveTolerations(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: all}})).To(HaveExactElements(want))
},
	Entry("none of another taint", []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}),
	Entry("one of everything, once", []corev1.Toleration{tolerateAll}, tolerateAll),
	Entry("one for each effect", []corev1.Toleration{tolerate(corev1.TaintEffectNoExecute), tolerate(corev1.TaintEffectPreferNoSchedule), tolerate(corev1.TaintEffectNoSchedule)},
		tolerate(corev1.TaintEffectNoSchedule), tolerate(corev1.TaintEffectPreferNoSchedule), tolerate(corev1.TaintEffectNoExecute)),
	Entry("the first for an effect, and none that adds nothing", []corev1.Toleration{tolerate(corev1.TaintEffectNoSchedule), tolerateAll, tolerate(corev1.TaintEffectNoExecute)},
		tolerate(corev1.TaintEffectNoSchedule), tolerateAll),
)

var tolerateAll = corev1.Toleration{Operator: corev1.TolerationOpExists}

var _ = DescribeTable("Pods can be bound to a Node", func(want bool, change func(*corev1.Node)) {
	Expect(pool.NodeReady(fixture.Node("n", change))).To(Equal(want))
},
	Entry("that is ready", true, func(*corev1.Node) {}),
	Entry("that has another taint", true, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{dedicated} }),
	Entry("not before it is ready, though another condition is true", false, func(n *corev1.Node) {
		unready(n)
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
	}),
	Entry("not while it has the taint of a Node that is not ready", false, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{dedicated, taint(corev1.TaintNodeNotReady, "", corev1.TaintEffectNoSchedule)}
	}),
	Entry("not while it has the taint of an unreachable Node", false, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{taint(corev1.TaintNodeUnreachable, "", corev1.TaintEffectNoExecute)}
	}),
)

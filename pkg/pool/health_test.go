// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
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

// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = DescribeTable("A cluster is unhealthy", func(unready, nodes int, want bool) {
	Expect(pool.TooManyUnready(unready, nodes)).To(Equal(want))
},
	Entry("not without Nodes", 0, 0, false),
	Entry("not with all ready", 0, 100, false),
	Entry("not with a few unready, though these are all", 3, 3, false),
	Entry("with one more than a few, if these are all", 4, 4, true),
	Entry("with one more than a few, if these are more than 33 %", 4, 12, true),
	Entry("not with 33 % or less", 4, 13, false),
	Entry("not with 33 % exactly", 33, 100, false),
	Entry("with more than 33 %", 34, 100, true),
	Entry("not with 33 % of many", 1650, 5000, false),
	Entry("with more than 33 % of many", 1651, 5000, true),
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

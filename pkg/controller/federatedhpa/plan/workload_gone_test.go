// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// deleted is a cluster whose workload is gone. Its autoscaler still says what it last wished for.
func deleted(c *plan.Cluster) {
	c.Workload = plan.Workload{Known: true, Fault: plan.Hold{Reason: "NoWorkload"}}
	c.Local.Inactive = plan.Hold{Reason: "FailedGetScale"}
}

// unreadable is a cluster whose autoscaler cannot read or write the scale of a workload that may well run.
func unreadable(c *plan.Cluster) {
	c.Workload = plan.Workload{}
	c.Local.Inactive = plan.Hold{Reason: "FailedGetScale"}
}

// since has replicas of a cluster missing for so long.
func since(v plan.View, name string, d time.Duration) plan.View {
	entry(&v, name).NotReadySince = ago(d)
	return v
}

var _ = Describe("A workload that was deleted after it ran", func() {
	DescribeTable("and its share",
		func(v plan.View, expected string) { Expect(aims(plan.New(v))).To(Equal(expected)) },
		Entry("stays for a while, since it may be about to be made again",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 10, wants(15))), "c1", time.Minute), "10/10"),
		Entry("goes to a cluster in need after the start timeout",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 10, wants(15))), "c1", time.Hour), "1/19"),
		Entry("is no longer asked to be larger, though its autoscaler was at its maximum",
			since(view(Federated(2, 20), has("c1", 1, 10, 10, wants(40), deleted), has("c2", 1, 10, 10, wants(15))), "c1", time.Hour), "1/19"),
		Entry("stays where no one needs it",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 3)), "c1", time.Hour), "10/10"),
		Entry("stays where the cluster does not show whether there is one",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, unreadable), has("c2", 1, 10, 10, wants(15))), "c1", time.Hour), "10/10"),
	)

	It("has the next cluster join on demand", func() {
		v := since(view(Federated(1, 20, Strict, OnDemand), has("c1", 1, 20, 9, deleted), none("c2")), "c1", time.Hour)
		Expect(aims(plan.New(v))).NotTo(HaveSuffix("-"))
	})

	It("is said, and counts as nothing that runs", func() {
		v := since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 3)), "c1", time.Hour)
		s := status(v, plan.New(v))
		Expect(s.CurrentReplicas).To(BeEquivalentTo(3))
		Expect(s.Clusters[0].State).To(Equal(v1alpha1.Used))
		Expect(s.Clusters[0].Reason).To(Equal("NoWorkload"))
	})
})

var _ = Describe("An autoscaler that cannot scale", func() {
	It("keeps its bounds, and says why", func() {
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		h.Spec.MaxReplicas = 10
		h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
			{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionFalse, Reason: "FailedUpdateScale", Message: "quota"},
			{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound"},
		}
		Expect(plan.LocalOf(h).Inactive).To(Equal(plan.Hold{Reason: "FailedUpdateScale", Message: "quota"}))
	})
})

var _ = Describe("Replicas that are not ready when a cluster is reached again", func() {
	DescribeTable("keep their share for the rest of the start timeout, without the time of the outage",
		func(waited, outage time.Duration, expected string) {
			v := since(view(Federated(2, 20), has("c1", 1, 10, 9, readyCondition(2)), has("c2", 1, 10, 10, wants(18))), "c1", waited)
			entry(&v, "c1").UnreachableSince = ago(outage)
			Expect(aims(plan.New(v))).To(Equal(expected))
			Expect(ledgerOf(v, "c1").NotReadySince).To(Equal(ago(waited - outage)))
		},
		Entry("which has not passed", 20*time.Minute, 18*time.Minute, "10/10"),
		Entry("which had passed before", 40*time.Minute, 18*time.Minute, "3/17"),
		Entry("which passes now", 33*time.Minute, 18*time.Minute, "3/17"),
	)
})

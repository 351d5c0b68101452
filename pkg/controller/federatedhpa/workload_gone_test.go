// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan/plantest"
)

// deleted is a cluster whose workload is gone. Its autoscaler still says what it last wished for.
func deleted(c *Cluster) {
	c.Workload = Workload{Known: true, Fault: Hold{Reason: "NoWorkload"}}
	c.Local.Inactive = Hold{Reason: "FailedGetScale"}
}

// unreadable is a cluster whose autoscaler cannot read or write the scale of a workload that may well run.
func unreadable(c *Cluster) {
	c.Workload = Workload{}
	c.Local.Inactive = Hold{Reason: "FailedGetScale"}
}

// since has replicas of a cluster missing for so long.
func since(v View, name string, d time.Duration) View {
	entry(&v, name).NotReadySince = ago(d)
	return v
}

var _ = Describe("A workload that was deleted after it ran", func() {
	DescribeTable("and its share",
		func(v View, expected string) { Expect(aims(NewPlan(v))).To(Equal(expected)) },
		Entry("stays for a while, since it may be about to be made again",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 10, wants(15))), "c1", time.Minute), "10/10"),
		Entry("goes to a cluster in need after the start timeout",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 10, wants(15))), "c1", time.Hour), "1/19"),
		Entry("is no longer asked to be larger, though its autoscaler was at its maximum",
			since(view(Federated(2, 20), has("c1", 1, 10, 10, wants(40), deleted), has("c2", 1, 10, 10, wants(15))), "c1", time.Hour), "1/19"),
		Entry("stays where nobody needs it",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 3)), "c1", time.Hour), "10/10"),
		Entry("stays where the cluster does not show whether there is one",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, unreadable), has("c2", 1, 10, 10, wants(15))), "c1", time.Hour), "10/10"),
	)

	It("has the next cluster join on demand", func() {
		v := since(view(Federated(1, 20, Strict, OnDemand), has("c1", 1, 20, 9, deleted), none("c2")), "c1", time.Hour)
		Expect(aims(NewPlan(v))).NotTo(HaveSuffix("-"))
	})

	It("is said, and counts as nothing that runs", func() {
		v := since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 3)), "c1", time.Hour)
		s := status(v, NewPlan(v))
		Expect(s.CurrentReplicas).To(BeEquivalentTo(3))
		Expect(s.Clusters[0].State).To(Equal(v1alpha1.Used))
		Expect(s.Clusters[0].Reason).To(Equal("NoWorkload"))
	})

	It("gives its share to others, and gets it back when it is made again", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20, func(s *Spec) { Rebalance(s).StartTimeoutSeconds = ptr.To[int32](300) }))
			f.loads("shop", 9, 15)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("10/10"))
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Used NoWorkload"))
			Expect(f.clusters[1].replicas("shop")).To(BeEquivalentTo(15), f.maxima("shop"))
			f.clusters[0].deploy("shop")
			f.loads("shop", 9, 5)
			f.settle()
			Expect(f.clusters[0].replicas("shop")).To(BeEquivalentTo(9), f.maxima("shop"))
		}, "c1", "c2")
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
		Expect(LocalOf(h).Inactive).To(Equal(Hold{Reason: "FailedUpdateScale", Message: "quota"}))
	})
})

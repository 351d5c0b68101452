// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
	. "github.com/evenkeel/evenkeel/internal/plugin/explain"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

func explained(b *balancer.Balancer) string {
	GinkgoHelper()
	b.Name, b.Namespace = "shop", "default"
	a, err := Balancer(overview.Objects{At: now, Balancers: []*balancer.Balancer{b}}, "shop")
	Expect(err).NotTo(HaveOccurred())
	return text(a)
}

var _ = DescribeTable("A Balancer shows",
	func(want string, change func(*balancer.Balancer)) {
		b := &balancer.Balancer{}
		b.Spec.Targets = []balancer.BalancerTarget{{Name: "a"}, {Name: "b"}}
		b.Spec.Replicas = ptr.To(int32(10))
		b.Spec.Policy.PolicyName = balancer.Even
		change(b)
		Expect(explained(b)).To(ContainSubstring(want))
	},
	Entry(nil, "All targets get the same", func(*balancer.Balancer) {}),
	Entry(nil, "It is at rest", func(*balancer.Balancer) {}),
	Entry(nil, "Targets are filled in order: b, a.", func(b *balancer.Balancer) {
		b.Spec.Policy = balancer.BalancerPolicy{PolicyName: balancer.Priority, Priorities: &balancer.PriorityPolicy{TargetOrder: []string{"b", "a"}}}
	}),
	Entry(nil, "in proportion to their shares: a 3, b 7;", func(b *balancer.Balancer) {
		b.Spec.Policy = balancer.BalancerPolicy{PolicyName: balancer.Proportional, Proportions: &balancer.ProportionalPolicy{TargetProportions: map[string]int32{"b": 7, "a": 3}}}
	}),
	Entry(nil, "in order: a and b, then c.", func(b *balancer.Balancer) {
		b.Spec.Policy = balancer.BalancerPolicy{PolicyName: balancer.Tiers, Tiers: []balancer.Tier{{Targets: []string{"a", "b"}}, {Targets: []string{"c"}}}}
	}),
	Entry(nil, "no room (NoRoom).", func(b *balancer.Balancer) {
		b.Status.Conditions = []metav1.Condition{{Type: balancer.ConditionWithinLimits, Status: metav1.ConditionFalse, Reason: "NoRoom", Message: "no room"}}
	}),
	Entry(nil, "a = 3 desired, 2 exist, 1 ready", func(b *balancer.Balancer) {
		b.Status.Targets = []balancer.TargetStatus{{Name: "a", Desired: 3, Observed: 2, Ready: 1}}
	}),
	Entry(nil, "Target a has been blocked since 11:55:00 UTC (5m ago): 2 of its replicas fail to start. Its share is 5; other targets run 3 of it instead.", func(b *balancer.Balancer) {
		b.Status.Targets = []balancer.TargetStatus{{Name: "a", Base: 5, NotStarted: 2, Fallback: 3, BlockedSince: ptr.To(formatPast(5 * time.Minute))}}
	}),
	Entry(nil, "gets its share back once its new replicas have been ready for 30s.", func(b *balancer.Balancer) {
		b.Status.Targets = []balancer.TargetStatus{{Name: "a", Blocks: 1, BlockedSince: ptr.To(formatPast(5 * time.Minute))}}
	}),
	Entry(nil, "for 1m0s.", func(b *balancer.Balancer) {
		b.Status.Targets = []balancer.TargetStatus{{Name: "a", Blocks: 2, BlockedSince: ptr.To(formatPast(5 * time.Minute))}}
	}),
	Entry(nil, "for 5m20s.", func(b *balancer.Balancer) {
		b.Spec.Policy.Fallback = &balancer.Fallback{RecoveryDelaySeconds: ptr.To(int32(10))}
		b.Status.Targets = []balancer.TargetStatus{{Name: "a", Blocks: 99, BlockedSince: ptr.To(formatPast(5 * time.Minute))}}
	}),
	Entry(nil, "Target a has had replicas that do not start since 11:59:00 UTC (60s ago). It counts as blocked in 2m (12:02:00 UTC).", func(b *balancer.Balancer) {
		b.Spec.Policy.Fallback = &balancer.Fallback{StartupTimeoutSeconds: ptr.To(int32(180))}
		b.Status.Targets = []balancer.TargetStatus{{Name: "a", UnstartedSince: ptr.To(formatPast(time.Minute))}}
	}),
	Entry(nil, "Target a has 10 replicas now and changes to 5 step by step", func(b *balancer.Balancer) {
		b.Status.Targets = []balancer.TargetStatus{{Name: "a", Replicas: 10, Desired: 5}}
	}),
)

var _ = DescribeTable("A federated autoscaler shows",
	func(want string, change func(*autoscaling.FederatedHorizontalPodAutoscalerSpec, *autoscaling.ClusterStatus)) {
		f := &autoscaling.FederatedHorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
		f.Spec.MaxReplicas, f.Status.CountedReplicas = 30, 28
		c := autoscaling.ClusterStatus{Name: "munich", State: autoscaling.Used, MinReplicas: 1, MaxReplicas: 9, ConfirmedMinReplicas: 1, ConfirmedMaxReplicas: 9, CurrentReplicas: 5, ReadyReplicas: 4, DesiredReplicas: 5}
		change(&f.Spec, &c)
		f.Status.Clusters = []autoscaling.ClusterStatus{c}
		a, err := Federated(overview.Objects{At: now, Federated: []*autoscaling.FederatedHorizontalPodAutoscaler{f}}, "web")
		Expect(err).NotTo(HaveOccurred())
		Expect(text(a)).To(ContainSubstring(want))
	},
	Entry(nil, "munich = Used: share 1..9, runs 5, 4 ready, wants 5", nothing),
	Entry(nil, "they add up to at most 30. Now they add up to at most 28.", nothing),
	Entry(nil, "It is at rest", nothing),
	Entry(nil, "wants 12, limited by its max", func(_ *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		c.Demand, c.LimitedBy = 12, autoscaling.ByMax
	}),
	Entry(nil, "should have 1..12 and has confirmed 1..9", func(_ *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		c.MaxReplicas = 12
	}),
	Entry(nil, "until its cooldown ends in 60s (12:01:00 UTC).", func(_ *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		c.MovedAt = ptr.To(formatPast(time.Minute))
	}),
	Entry(nil, "until its cooldown ends in 4m (12:04:00 UTC).", func(s *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		s.Rebalance = &autoscaling.Rebalance{CooldownSeconds: ptr.To(int32(300))}
		c.MovedAt = ptr.To(formatPast(time.Minute))
	}),
	Entry(nil, "It counts as stuck now, and then", func(_ *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		c.NotReadySince = ptr.To(formatPast(16 * time.Minute))
	}),
	Entry(nil, "and leaves in 9m (12:09:00 UTC).", func(_ *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		c.QuietSince = ptr.To(formatPast(time.Minute))
	}),
	Entry(nil, "munich = Left: share 0..0, runs 0, 0 ready, wants 0, left 4 replicas without an autoscaler", leftBehind),
	Entry(nil, "Cluster munich has no autoscaler, and 4 replicas there count against maxReplicas. Scale the workload there to 0, delete it, or let another autoscaler scale it", leftBehind),
	Entry(nil, "4 replicas there count against maxReplicas. spec.leavePolicy ScaleToZero applies to them.", func(s *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		leftBehind(s, c)
		s.LeavePolicy, c.State = autoscaling.LeaveScaleToZero, autoscaling.Leaving
	}),
	Entry(nil, "They belong to its share", func(s *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		leftBehind(s, c)
		c.State = autoscaling.StateJoining
	}),
	Entry(nil, "It cannot be reached; if it is lost for good, list it in spec.unreachable.released.", func(s *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		leftBehind(s, c)
		away(s, c)
	}),
	Entry(nil, "Its share is kept for it", away),
	Entry(nil, "Its share is lent to other clusters in 59m (12:59:00 UTC).", func(s *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		away(s, c)
		s.Unreachable = &autoscaling.Unreachable{Policy: autoscaling.ReleaseAfter, AfterSeconds: ptr.To(int32(3600))}
	}),
	Entry(nil, "Other clusters get its share", func(s *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
		away(s, c)
		s.Unreachable = &autoscaling.Unreachable{Released: []string{"munich"}}
	}),
)

var _ = It("A federated autoscaler does not say when a cluster out of reach counts as stuck, as the time of an outage does not count", func() {
	f := &autoscaling.FederatedHorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	c := autoscaling.ClusterStatus{Name: "munich", ConfirmedMaxReplicas: 9, MaxReplicas: 9, NotReadySince: ptr.To(formatPast(5 * time.Minute))}
	away(nil, &c)
	f.Status.Clusters = []autoscaling.ClusterStatus{c}
	a, err := Federated(overview.Objects{At: now, Federated: []*autoscaling.FederatedHorizontalPodAutoscaler{f}}, "web")
	Expect(err).NotTo(HaveOccurred())
	Expect(text(a)).NotTo(ContainSubstring("counts as stuck"))
})

func nothing(*autoscaling.FederatedHorizontalPodAutoscalerSpec, *autoscaling.ClusterStatus) {}

func leftBehind(_ *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
	*c = autoscaling.ClusterStatus{Name: c.Name, State: autoscaling.StateLeft, LeftReplicas: 4, MovedAt: ptr.To(formatPast(time.Minute))}
}

func away(_ *autoscaling.FederatedHorizontalPodAutoscalerSpec, c *autoscaling.ClusterStatus) {
	c.State, c.UnreachableSince = autoscaling.StateUnreachable, ptr.To(formatPast(time.Minute))
}

var _ = It("Ranks are said as people say them", func() {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		Expect(Place(n)).To(Equal(want))
	}
})

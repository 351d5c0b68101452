// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/internal/overview"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

func (w *world) balancer(name string, change ...func(*balancer.Balancer)) {
	b := &balancer.Balancer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: ago(time.Hour)}}
	b.Spec.Replicas = ptr.To(int32(10))
	b.Spec.Policy.PolicyName = balancer.Even
	b.Status.Conditions = []metav1.Condition{{Type: balancer.ConditionReady, Status: metav1.ConditionTrue}}
	for _, c := range change {
		c(b)
	}
	w.Balancers = append(w.Balancers, b)
}

func (w *world) federated(name string, change ...func(*autoscaling.FederatedHorizontalPodAutoscaler)) {
	f := &autoscaling.FederatedHorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: ago(time.Hour)}}
	f.Spec.ScaleTargetRef.Kind, f.Spec.ScaleTargetRef.Name, f.Spec.MaxReplicas = "Deployment", "web", 30
	f.Status.Conditions = []metav1.Condition{{Type: autoscaling.ConditionReady, Status: metav1.ConditionTrue}}
	for _, c := range change {
		c(f)
	}
	w.Federated = append(w.Federated, f)
}

func says(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func balancerSays(c ...metav1.Condition) func(*balancer.Balancer) {
	return func(b *balancer.Balancer) { b.Status.Conditions = c }
}

func federatedSays(c ...metav1.Condition) func(*autoscaling.FederatedHorizontalPodAutoscaler) {
	return func(f *autoscaling.FederatedHorizontalPodAutoscaler) { f.Status.Conditions = c }
}

var _ = Describe("Balancers", func() {
	It("have targets with their limits and what they run", func() {
		w := newWorld()
		w.balancer("z")
		w.balancer("a", func(b *balancer.Balancer) {
			low, high := intstr.FromString("15%"), intstr.FromString("25%")
			five, three := intstr.FromInt32(5), intstr.FromInt32(3)
			b.Spec.Targets = []balancer.BalancerTarget{
				{Name: "second", MinReplicas: &low, MaxReplicas: &high}, {Name: "first", MinReplicas: &five, MaxReplicas: &three}, {Name: "new"},
			}
			b.Status.Targets = []balancer.TargetStatus{
				{Name: "first", Desired: 7, Observed: 6, Ready: 5, BlockedSince: ptr.To(ago(time.Minute)), NotStarted: 2},
				{Name: "second", Desired: 3, Observed: 3, Ready: 3, Reason: "Gone", Message: "there is no such Deployment"},
			}
		})
		v := New(w.Objects)
		Expect(v.Balancers).To(Equal([]Balancer{
			{Namespace: "default", Name: "a", Policy: "even", Replicas: 10, Targets: []Target{
				{Name: "second", Min: 1, Max: ptr.To(3), Wanted: 3, Current: 3, Ready: 3, Why: "there is no such Deployment"},
				{Name: "first", Min: 5, Max: ptr.To(5), Wanted: 7, Current: 6, Ready: 5, Why: "blocked, 2 fail to start"},
				{Name: "new"},
			}},
			{Namespace: "default", Name: "z", Policy: "even", Replicas: 10},
		}))
	})

	It("have one replica where nothing is said", func() {
		w := newWorld()
		w.balancer("a", func(b *balancer.Balancer) { b.Spec.Replicas = nil })
		Expect(New(w.Objects).Balancers[0].Replicas).To(Equal(1))
	})
})

var _ = It("Federated autoscalers have clusters as they were last seen", func() {
	w := newWorld()
	w.federated("f", func(f *autoscaling.FederatedHorizontalPodAutoscaler) {
		f.Spec.MinReplicas = ptr.To(int32(3))
		f.Status.Clusters = []autoscaling.ClusterStatus{
			{Name: "paris", State: autoscaling.StateUnreachable, Message: "no answer", ConfirmedMaxReplicas: 6, MaxReplicas: 9},
			{Name: "munich", State: autoscaling.Used, ConfirmedMinReplicas: 1, ConfirmedMaxReplicas: 14, CurrentReplicas: 12, DesiredReplicas: 14, ReadyReplicas: 11, LimitedBy: autoscaling.ByMax},
		}
	})
	Expect(New(w.Objects).Federated).To(Equal([]Federated{{Namespace: "default", Name: "f", Workload: "Deployment/web", Min: 3, Max: 30, Clusters: []Cluster{
		{Name: "munich", Min: 1, Max: 14, Current: 12, Desired: 14, Ready: 11, State: "Used", Reachable: true, Limited: true},
		{Name: "paris", Max: 6, State: "Unreachable", Why: "no answer"},
	}}}))
})

var _ = DescribeTable("It is wrong with workloads",
	func(build func(*world), want ...string) {
		w := newWorld()
		build(w)
		Expect(said(New(w.Objects))).To(Equal(append([]string{}, want...)))
	},
	Entry("not where all is well", func(w *world) { w.balancer("b"); w.federated("f") }),
	Entry("that targets do not exist, reported once", func(w *world) {
		w.balancer("b", balancerSays(
			says(balancer.ConditionReady, metav1.ConditionFalse, "TargetsUnresolved", "target a: not found"),
			says(balancer.ConditionTargetsResolved, metav1.ConditionFalse, "NotFound", "target a: not found")))
	}, "balancer/default/b: target a: not found -> check that the targets exist and that the controller may scale them"),
	Entry("that limits do not fit, with the remedy from the message", func(w *world) {
		w.balancer("b", balancerSays(says(balancer.ConditionWithinLimits, metav1.ConditionFalse, "NoRoom", "no target has room for 2: raise maxReplicas or lower spec.replicas")))
	}, "balancer/default/b: no target has room for 2 -> raise maxReplicas or lower spec.replicas"),
	Entry("that others stand in", func(w *world) {
		w.balancer("b", balancerSays(says(balancer.ConditionFallbackActive, metav1.ConditionTrue, "TargetsBlocked", "replicas fail to start in a: other targets stand in")))
	}, "balancer/default/b: replicas fail to start in a: other targets stand in -> check why pods do not start there: kubectl -n default describe pods"),
	Entry("that it cannot be carried out", func(w *world) {
		w.balancer("b", balancerSays(says(balancer.ConditionReady, metav1.ConditionFalse, "Invalid", "the selector is empty")))
	}, "balancer/default/b: the selector is empty -> kubectl -n default describe balancer b"),
	Entry("that it is paused", func(w *world) {
		w.balancer("b", balancerSays(says(balancer.ConditionReady, metav1.ConditionFalse, "Paused", "x")))
		w.federated("f", federatedSays(says(autoscaling.ConditionReady, metav1.ConditionFalse, "Paused", "x")))
	}, "balancer/default/b: paused: targets are not scaled -> when you are done, set spec.paused to false",
		"fhpa/default/f: paused: the clusters' autoscalers are not changed -> when you are done, set spec.paused to false"),
	Entry("that no controller manages them, unless they are new", func(w *world) {
		w.balancer("b", balancerSays())
		w.federated("f", federatedSays())
		w.balancer("new", balancerSays(), func(b *balancer.Balancer) { b.CreationTimestamp = ago(time.Minute) })
		w.federated("new", federatedSays(), func(f *autoscaling.FederatedHorizontalPodAutoscaler) { f.CreationTimestamp = ago(time.Minute) })
	}, "balancer/default/b: no controller has reported on it -> check that evenkeel-workloads runs with balancer among its --controllers",
		"fhpa/default/f: no controller has reported on it -> check that evenkeel-workloads runs with federatedhpa among its --controllers"),
	Entry("that clusters are out of reach, that more is asked for than there is, and that one is stuck", func(w *world) {
		w.federated("f", func(f *autoscaling.FederatedHorizontalPodAutoscaler) {
			f.Status.Clusters = []autoscaling.ClusterStatus{{Name: "a", State: autoscaling.Used, Reason: "Stuck", Message: "pods do not start"}, {Name: "b", State: autoscaling.Idle}}
		}, federatedSays(
			says(autoscaling.ConditionLimited, metav1.ConditionTrue, "TooFewReplicas", "4 more are asked for"),
			says(autoscaling.ConditionBalanced, metav1.ConditionFalse, "Moving", "on the way"),
			says(autoscaling.ConditionClustersUnreachable, metav1.ConditionTrue, "OutOfReach", "b goes on by itself")))
	}, "fhpa/default/f: b goes on by itself -> check the network to them; if they are lost for good, list them in spec.unreachable.released",
		"fhpa/default/f: 4 more are asked for -> raise maxReplicas, or the limits of clusters",
		"fhpa/default/f: cluster a: pods do not start -> check the autoscaler and the pods of that cluster"),
)

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

// The stock machine-controller-manager has no Balancers: these specs are about ours alone.
var _ = Describe("A Balancer", Label("ours"), func() {
	It("gives two Deployments 30 and 70 percent, and follows its scale without removing replicas", func(ctx context.Context) {
		s := newShop(ctx, "shares", 2)
		story := s.record(ctx)
		s.balance(ctx, 10, byShare(30, 70))
		s.comesTo(ctx, "3/7", "3/7")
		s.says(ctx, balancer.ConditionReady, "True UnderControl")
		s.scale(ctx, 20)
		s.comesTo(ctx, "6/14", "6/14")
		s.says(ctx, balancer.ConditionBalanced, "True AtGoal")
		Expect(story.steps("a")).To(Equal([]int32{0, 3, 6}))
		Expect(story.steps("b")).To(Equal([]int32{0, 7, 14}))
		b, err := s.balancers().Get(ctx, s.name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(*b.Spec.Replicas).To(BeEquivalentTo(20), "only its user writes that")
		Eventually(func() (balancer.BalancerStatus, error) {
			b, err := s.balancers().Get(ctx, s.name, metav1.GetOptions{})
			return b.Status, err
		}).Should(And(HaveField("Replicas", BeEquivalentTo(20)), HaveField("ReadyReplicas", BeEquivalentTo(20)), HaveField("Selector", "app=shares")))
	})

	It("fills the first target, then the next, and changes their order without losing a pod", func(ctx context.Context) {
		s := newShop(ctx, "order", 3)
		story := s.record(ctx)
		s.balance(ctx, 5, inOrder("a", "b", "c"), bounded(0, 0, 4), bounded(2, 1, -1))
		s.comesTo(ctx, "4/0/1", "4/0/1")
		s.scale(ctx, 8)
		s.comesTo(ctx, "4/3/1", "4/3/1")
		story.watched()
		s.patch(ctx, `{"spec":{"policy":{"priorities":{"targetOrder":["b","c","a"]}}}}`)
		s.comesTo(ctx, "0/7/1", "0/7/1")
		Expect(story.leastReady()).To(BeNumerically(">=", 8))
	})

	It("keeps minimum and maximum, and reports what has no room and what is too much", func(ctx context.Context) {
		s := newShop(ctx, "bounds", 2)
		s.balance(ctx, 10, byShare(50, 50), bounded(0, 2, 3), bounded(1, 4, 6))
		s.comesTo(ctx, "3/6", "3/6")
		s.says(ctx, balancer.ConditionWithinLimits, "False NoRoom")
		s.scale(ctx, 1)
		s.comesTo(ctx, "2/4", "2/4")
		s.says(ctx, balancer.ConditionWithinLimits, "False BelowMinimums")
		s.scale(ctx, 8)
		s.comesTo(ctx, "3/5", "3/5")
		s.says(ctx, balancer.ConditionWithinLimits, "True Room")
	})

	It("shares replicas between a Deployment and a ReplicationController", func(ctx context.Context) {
		s := newShop(ctx, "classic", 1)
		s.newNode(ctx, "b")
		s.replicate(ctx, "b")
		s.balance(ctx, 9, byShare(1, 2), func(b *balancer.Balancer) {
			b.Spec.Targets = append(b.Spec.Targets, balancer.BalancerTarget{
				Name: "b", ScaleTargetRef: balancer.ScaleTargetReference{APIVersion: "v1", Kind: "ReplicationController", Name: "b"}})
		})
		s.comesTo(ctx, "3", "3")
		Eventually(func() (int32, error) {
			c, err := kube.CoreV1().ReplicationControllers(s.name).Get(ctx, "b", metav1.GetOptions{})
			return c.Status.ReadyReplicas, err
		}).WithContext(ctx).Should(BeEquivalentTo(6))
		s.says(ctx, balancer.ConditionBalanced, "True AtGoal")
	})

	It("moves to other zones when one fails, and moves back without losing a pod", func(ctx context.Context) {
		s := newShop(ctx, "outage-of-a-zone", 2)
		story := s.record(ctx)
		s.balance(ctx, 6, byShare(50, 50), quick)
		s.comesTo(ctx, "3/3", "3/3")
		over := s.outage(ctx, "a")
		s.comesTo(ctx, "0/6", "3/6")
		s.says(ctx, balancer.ConditionFallbackActive, "True TargetsBlocked")
		story.watched()
		over()
		s.comesTo(ctx, "3/3", "3/3")
		s.says(ctx, balancer.ConditionFallbackActive, "False NotNeeded")
		Expect(story.leastReady()).To(BeNumerically(">=", 6))
	})

	It("moves to other targets when a quota forbids the pods of one", func(ctx context.Context) {
		s := newShop(ctx, "quota", 2, func(d *appsv1.Deployment) {
			if d.Name == "a" {
				d.Spec.Template.Spec.PriorityClassName = "shop-quota"
			}
		})
		limit(ctx, s.name, "shop-quota", 2)
		s.balance(ctx, 8, byShare(50, 50), quick)
		s.comesTo(ctx, "2/6", "4/6")
		s.says(ctx, balancer.ConditionFallbackActive, "True TargetsBlocked")
		unlimit(ctx, s.name, "shop-quota")
		s.comesTo(ctx, "4/4", "4/4")
	})
})

// limit allows so many pods of a priority class, made for that, in a namespace.
func limit(ctx context.Context, namespace, class string, pods int64) {
	GinkgoHelper()
	_, err := kube.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Value: 1}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.SchedulingV1().PriorityClasses().Delete(ctx, class, metav1.DeleteOptions{})).To(Succeed())
	})
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: class}}
	quota.Spec.Hard = corev1.ResourceList{"pods": *resource.NewQuantity(pods, resource.DecimalSI)}
	quota.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class}}}}
	_, err = kube.CoreV1().ResourceQuotas(namespace).Create(ctx, quota, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() (corev1.ResourceList, error) {
		q, err := kube.CoreV1().ResourceQuotas(namespace).Get(ctx, class, metav1.GetOptions{})
		return q.Status.Hard, err
	}).WithContext(ctx).WithTimeout(time.Minute).ShouldNot(BeEmpty())
}

func unlimit(ctx context.Context, namespace, class string) {
	GinkgoHelper()
	Expect(kube.CoreV1().ResourceQuotas(namespace).Delete(ctx, class, metav1.DeleteOptions{})).To(Succeed())
}

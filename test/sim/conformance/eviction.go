// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// runningPod creates a pod with a label of its own, and a status that is running and ready.
func (c *cluster) runningPod() *corev1.Pod {
	GinkgoHelper()
	name := c.pod().GetName()
	all := c.core.CoreV1().Pods(fixture.Namespace)
	p, err := all.Get(ctx, name, get)
	Expect(err).NotTo(HaveOccurred())
	p.Labels = map[string]string{"conformance": name}
	p, err = all.Update(ctx, p, update)
	Expect(err).NotTo(HaveOccurred())
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p, err = all.UpdateStatus(ctx, p, update)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// budget protects pods with a label. Its status is what a controller would have written.
func (c *cluster) budget(label string, allowed int32, observed bool) *policyv1.PodDisruptionBudget {
	GinkgoHelper()
	all := c.core.PolicyV1().PodDisruptionBudgets(fixture.Namespace)
	b, err := all.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"conformance": label}}},
	}, create)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(all.Delete(ctx, b.Name, metav1.DeleteOptions{})).To(Succeed()) })
	b.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}
	if observed {
		b.Status.ObservedGeneration = b.Generation
	}
	b, err = all.UpdateStatus(ctx, b, update)
	Expect(err).NotTo(HaveOccurred())
	return b
}

func (c *cluster) evict(name string) error {
	return c.core.CoreV1().Pods(fixture.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64)},
	})
}

func (c *cluster) evictions() {
	It("spend the budget of the pod", func() {
		p := c.runningPod()
		b := c.budget(p.Name, 1, true)
		Expect(c.evict(p.Name)).To(Succeed())
		_, err := c.core.CoreV1().Pods(fixture.Namespace).Get(ctx, p.Name, get)
		Expect(err).To(Satisfy(apierrors.IsNotFound))
		b, err = c.core.PolicyV1().PodDisruptionBudgets(fixture.Namespace).Get(ctx, b.Name, get)
		Expect(err).NotTo(HaveOccurred())
		Expect(b.Status.DisruptionsAllowed).To(BeZero())
		Expect(b.Status.DisruptedPods).To(HaveKey(p.Name))
	})

	DescribeTable("are refused", func(allowed int32, observed bool) {
		p := c.runningPod()
		c.budget(p.Name, allowed, observed)
		err := c.evict(p.Name)
		Expect(err).To(Satisfy(apierrors.IsTooManyRequests))
		Expect(apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)).To(BeTrue())
		_, err = c.core.CoreV1().Pods(fixture.Namespace).Get(ctx, p.Name, get)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("where the budget is spent", int32(0), true),
	)

	It("of what does not run need no budget", func() {
		p := c.runningPod()
		c.budget(p.Name, 0, true)
		p.Status.Phase = corev1.PodFailed
		_, err := c.core.CoreV1().Pods(fixture.Namespace).UpdateStatus(ctx, p, update)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.evict(p.Name)).To(Succeed())
	})

	It("of pods with two budgets are refused for good", func() {
		p := c.runningPod()
		c.budget(p.Name, 1, true)
		c.budget(p.Name, 1, true)
		Expect(c.evict(p.Name)).To(Satisfy(apierrors.IsInternalError))
	})
}

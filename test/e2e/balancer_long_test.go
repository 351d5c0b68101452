// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

// patience is the fallback's timeout of the spec that measures it.
const patience = 20 * time.Second

var _ = Describe("In the long run, a Balancer", Label("ours", "long"), func() {
	It("falls back within its timeout and a second, and recovers without a dip", Serial, func(ctx context.Context) {
		s := newShop(ctx, "timed", 2)
		story := s.record(ctx)
		s.balance(ctx, 10, byShare(50, 50), func(b *balancer.Balancer) {
			b.Spec.Policy.Fallback = &balancer.Fallback{StartupTimeout: &metav1.Duration{Duration: patience}, RecoveryDelaySeconds: ptr.To[int32](5)}
		})
		s.comesTo(ctx, "5/5", "5/5")
		over := s.outage(ctx, "a")
		s.comesTo(ctx, "0/10", "5/10")
		took := story.since("b").Sub(story.waiting("a"))
		AddReportEntry("From the first pod that waits to the fallback", took.String())
		Expect(took).To(And(BeNumerically(">", patience), BeNumerically("<=", patience+time.Second)))
		story.watched()
		Consistently(story.ready, 30*time.Second).Should(Equal(10), "no pod is created or deleted")
		over()
		s.comesTo(ctx, "5/5", "5/5")
		Expect(story.leastReady()).To(BeNumerically(">=", 10))
		Expect(story.steps("a")).To(Equal([]int32{0, 5}))
		Expect(story.steps("b")[:3]).To(Equal([]int32{0, 5, 10}))
	})

	It("takes over for Nodes that do not respond, long before their pods are evicted, and returns once they have responded for a while", Serial, func(ctx context.Context) {
		s := newShop(ctx, "dark", 2)
		story := s.record(ctx)
		s.balance(ctx, 10, byShare(50, 50), func(b *balancer.Balancer) {
			b.Spec.Policy.Fallback = &balancer.Fallback{StartupTimeout: &metav1.Duration{Duration: patience}, Probe: ptr.To[int32](1), RecoveryDelaySeconds: ptr.To[int32](5)}
		})
		s.comesTo(ctx, "5/5", "5/5")
		dark := time.Now()
		over := s.cutOff(ctx, "a")
		s.comesTo(ctx, "0/10", "5/10")
		noticed, took := s.turned(ctx, "a", corev1.ConditionUnknown), story.since("b")
		AddReportEntry("From the last heartbeat to NotReady", noticed.Sub(dark).String())
		AddReportEntry("From NotReady to the fallback", took.Sub(noticed).String())
		Expect(took.Sub(noticed)).To(And(BeNumerically(">", patience-time.Second), BeNumerically("<=", patience+2*time.Second)))
		Expect(story.steps("a")).To(Equal([]int32{0, 5}), "pods that may still run are kept, although only one is to probe")
		story.watched()
		Consistently(story.ready, 5*time.Second).Should(Equal(10), "no pod is created or deleted")
		over()
		s.comesTo(ctx, "5/5", "5/5")
		Expect(story.leastReady()).To(BeNumerically(">=", 10))
		Expect(story.steps("a")).To(Equal([]int32{0, 5}))
		Expect(story.since("b").Sub(s.turned(ctx, "a", corev1.ConditionTrue))).To(BeNumerically(">=", 4*time.Second), "the recovery delay")
	})

	It("continues with two zones of machines while the third has no capacity, and recovers", func(ctx context.Context) {
		pools := []pool{newPool(ctx, "shop-z1", 0), newPool(ctx, "shop-z2", 0), newPool(ctx, "shop-z3", 0)}
		overMachines(ctx, "machines", 6, pools)
		for _, p := range pools {
			p.settles(ctx, 2)
		}
		setFault(ctx, "zones", pools[0].name, "outage: true")
		_, err := machines.BalancerV1alpha1().Balancers(namespace).Patch(ctx, "machines", types.MergePatchType, []byte(`{"spec":{"replicas":12}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		pools[1].settles(ctx, 5)
		pools[2].settles(ctx, 5)
		list, err := pools[0].machines(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(serving(list)).To(HaveLen(2))
		setFault(ctx, "zones", pools[0].name, "")
		for _, p := range pools {
			p.settles(ctx, 4)
		}
	})
})

// overMachines makes a Balancer of pools, evenly, that waits for a machine for ten minutes: less only where there is no
// capacity.
func overMachines(ctx context.Context, name string, replicas int32, pools []pool) {
	GinkgoHelper()
	b := &balancer.Balancer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.Replicas, b.Spec.Selector = &replicas, metav1.LabelSelector{MatchLabels: map[string]string{"no-pod-has": "this"}}
	b.Spec.Policy = balancer.BalancerPolicy{PolicyName: balancer.Even, Fallback: &balancer.Fallback{StartupTimeoutSeconds: ptr.To[int32](600), RecoveryDelaySeconds: ptr.To[int32](5)}}
	for _, p := range pools {
		b.Spec.Targets = append(b.Spec.Targets, balancer.BalancerTarget{
			Name: p.name, ScaleTargetRef: balancer.ScaleTargetReference{APIVersion: "machine.sapcloud.io/v1alpha1", Kind: "MachineDeployment", Name: p.name}})
	}
	_, err := machines.BalancerV1alpha1().Balancers(namespace).Create(ctx, b, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(machines.BalancerV1alpha1().Balancers(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

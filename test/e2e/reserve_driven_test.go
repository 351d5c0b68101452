// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/utils/ptr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// scaleClient is the client of the scale subresource that autoscalers use, KEDA's operator among them.
func scaleClient() scale.ScalesGetter {
	GinkgoHelper()
	found := discovery.NewDiscoveryClientForConfigOrDie(config)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(found))
	Expect(err).NotTo(HaveOccurred())
	return scales
}

// activate does what KEDA's operator does where a queue gets its first item, or has been empty for long: it reads the scale, and writes
// it with another number.
func (p pool) activate(ctx context.Context, replicas int32) {
	GinkgoHelper()
	scales := scaleClient().Scales(namespace)
	Eventually(func() error {
		s, err := scales.Get(ctx, autoscaling.Resource("reserves"), p.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s.Spec.Replicas = replicas
		_, err = scales.Update(ctx, autoscaling.Resource("reserves"), s, metav1.UpdateOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
}

// driven makes a Reserve of the pool, and an autoscaler that keeps a machine for each item of a queue.
func (p pool) driven(ctx context.Context) {
	GinkgoHelper()
	reserves := machines.AutoscalingV1alpha1().Reserves(namespace)
	r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	r.Spec.Pools.Names = []string{p.name}
	_, err := reserves.Create(ctx, r, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(reserves.Delete(ctx, p.name, metav1.DeleteOptions{})).To(Succeed())
	})
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	hpa.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: autoscaling.SchemeGroupVersion.String(), Kind: "Reserve", Name: p.name},
		MinReplicas:    ptr.To[int32](1), MaxReplicas: 5, Metrics: []autoscalingv2.MetricSpec{perReplica(p.name)},
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](0)}},
	}
	autoscalers := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace)
	_, err = autoscalers.Create(ctx, hpa, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(autoscalers.Delete(ctx, p.name, metav1.DeleteOptions{})).To(Succeed())
	})
}

// autoscalerSays is the reason of a condition of the autoscaler.
func (p pool) autoscalerSays(ctx context.Context, kind autoscalingv2.HorizontalPodAutoscalerConditionType) (string, error) {
	hpa, err := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, p.name, metav1.GetOptions{})
	for _, c := range hpa.Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason, err
		}
	}
	return "", err
}

// kept are the desired and the ready machines of the Reserve.
func (p pool) kept(ctx context.Context) ([]int32, error) {
	r, err := machines.AutoscalingV1alpha1().Reserves(namespace).Get(ctx, p.name, metav1.GetOptions{})
	return []int32{r.Status.DesiredReplicas, r.Status.ReadyReplicas}, err
}

var _ = Describe("A Reserve that autoscalers drive", Label("ours", "long"), Serial, func() {
	It("scales from 0 to 5 and back to 0 with a queue: KEDA activates it, a HorizontalPodAutoscaler scales it, KEDA deactivates it", func(ctx context.Context) {
		measured := serveMetrics(ctx, apis)
		p := newPool(ctx, "driven", 1, withBounds("1:9"))
		p.settles(ctx, 1)
		p.driven(ctx)

		By("leaving it at 0, where the autoscaler does nothing")
		measured.set(func() { measured.external[p.name] = 0 })
		Eventually(p.autoscalerSays).WithContext(ctx).WithArguments(autoscalingv2.ScalingActive).WithTimeout(soon).Should(Equal(string(corev1.ConditionFalse) + " ScalingDisabled"))
		Expect(p.kept(ctx)).To(Equal([]int32{0, 0}))

		By("waking it")
		measured.set(func() { measured.external[p.name] = 7 })
		p.activate(ctx, 1)
		Eventually(p.kept).WithContext(ctx).WithTimeout(soon).Should(Equal([]int32{5, 5}), "at most 5, for 7 items")
		Expect(p.autoscalerSays(ctx, autoscalingv2.ScalingLimited)).To(Equal("True TooManyReplicas"))
		p.rests(ctx, 1, 5, "Complete")
		Consistently(p.kept, looks).WithContext(ctx).Should(Equal([]int32{5, 5}), "it stays there")

		By("emptying the queue")
		measured.set(func() { measured.external[p.name] = 2 })
		Eventually(p.kept).WithContext(ctx).WithTimeout(soon).Should(Equal([]int32{2, 2}))
		measured.set(func() { measured.external[p.name] = 0 })
		Eventually(p.kept).WithContext(ctx).WithTimeout(soon).Should(Equal([]int32{1, 1}), "its minimum")
		p.activate(ctx, 0)
		Eventually(p.kept).WithContext(ctx).WithTimeout(soon).Should(Equal([]int32{0, 0}))
		p.settles(ctx, 1)
		Eventually(p.autoscalerSays).WithContext(ctx).WithArguments(autoscalingv2.ScalingActive).WithTimeout(time.Minute).Should(Equal("False ScalingDisabled"))
	})
})

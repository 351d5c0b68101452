// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// looks is how long the autoscaler takes to look three times; it does so every 15 seconds.
const looks = 50 * time.Second

var _ = Describe("A HorizontalPodAutoscaler", Label("ours", "long"), Ordered, func() {
	var measured *metrics
	BeforeAll(func(ctx context.Context) {
		measured = serveMetrics(ctx, apis)
	})

	It("on a Balancer takes it from 4 to 20 and back to 4, in one direction at a time", func(ctx context.Context) {
		s := newShop(ctx, "autoscaled", 2)
		story := s.record(ctx)
		s.balance(ctx, 1, byShare(30, 70), func(b *balancer.Balancer) { b.Spec.Replicas = nil })
		measured.set(func() { measured.external[s.name] = 4 })
		s.autoscale(ctx, perReplica(s.name))
		s.comesTo(ctx, "1/3", "1/3")
		measured.set(func() { measured.external[s.name] = 20 })
		s.comesTo(ctx, "6/14", "6/14")
		Consistently(story.wishes, looks).Should(endWith(20), "it stays there")
		measured.set(func() { measured.external[s.name] = 4 })
		s.comesTo(ctx, "1/3", "1/3")
		Consistently(story.wishes, looks).Should(endWith(4))

		wishes := story.wishes()
		AddReportEntry("What the autoscaler asked for", wishes)
		top := slices.Index(wishes, 20)
		Expect(slices.IsSorted(wishes[:top+1])).To(BeTrue(), "%v", wishes)
		Expect(slices.IsSortedFunc(wishes[top:], func(a, b int32) int { return int(b - a) })).To(BeTrue(), "%v", wishes)
		for _, zone := range s.zones {
			steps := story.steps(zone)
			top := slices.Index(steps, slices.Max(steps))
			Expect(slices.IsSorted(steps[:top+1])).To(BeTrue(), "%s: %v", zone, steps)
			Expect(slices.IsSortedFunc(steps[top:], func(a, b int32) int { return int(b - a) })).To(BeTrue(), "%s: %v", zone, steps)
		}
	})

	It("on a Balancer does not take additional replicas for desired ones", func(ctx context.Context) {
		s := newShop(ctx, "stand-ins", 2)
		story := s.record(ctx)
		s.balance(ctx, 20, byShare(90, 10), quick)
		s.comesTo(ctx, "18/2", "18/2")
		s.outage(ctx, "b")
		s.comesTo(ctx, "20/0", "20/2")
		// 22 pods are within a tenth of the 20 that the metric asks for: an autoscaler that is told of 22 wants 22, then 24.
		measured.set(func() { measured.external[s.name] = 20 })
		s.autoscale(ctx, perReplica(s.name))
		s.autoscalerActs(ctx)
		Consistently(story.wishes, looks).Should(Equal([]int32{20}))
		b, err := s.balancers().Get(ctx, s.name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect([]int32{b.Status.Replicas, b.Status.ObservedReplicas, b.Status.DesiredReplicas}).To(Equal([]int32{20, 22, 22}))
	})

	It("on a Balancer scales up in time if only a probe waits in a blocked target, and not if all replicas do", func(ctx context.Context) {
		s := newShop(ctx, "damped", 2)
		story := s.record(ctx)
		s.balance(ctx, 10, byShare(50, 50), quick)
		s.comesTo(ctx, "5/5", "5/5")
		s.outage(ctx, "a")
		s.comesTo(ctx, "0/10", "5/10")
		// Ten that run use 70 % where 50 % are wanted. With five idle ones that is 47 % on average, with one 64 %.
		measured.set(func() { measured.cpu[s.name] = 70 })
		s.autoscale(ctx, autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50)}}})
		s.autoscalerActs(ctx)
		Consistently(story.wishes, looks).Should(Equal([]int32{10}))
		s.patch(ctx, `{"spec":{"policy":{"fallback":{"probe":1}}}}`)
		Eventually(story.wishes).Should(HaveLen(2))
		Expect(story.wishes()[1]).To(BeNumerically(">", 10))
	})

	It("on a MachineDeployment asks for the machines that workload needs, and counts no reserve", func(ctx context.Context) {
		p := newPool(ctx, "autoscaled-machines", 2, excess(1))
		p.rests(ctx, 2, 1, "Complete")
		Expect(kubectl(ctx, "get", "machinedeployment", p.name, "--subresource=scale", "-o", "jsonpath={.spec.replicas} {.status.replicas} {.status.selector}")).To(Equal("2 3 name=" + p.name))
		measured.set(func() { measured.external[p.name] = 10 })
		story := p.wishes(ctx)
		autoscaler := newAutoscaler(p.name, machine.SchemeGroupVersion.String(), "MachineDeployment", perReplica(p.name))
		exact := resource.MustParse("0")
		autoscaler.Spec.Behavior.ScaleDown.Tolerance, autoscaler.Spec.Behavior.ScaleUp = &exact, &autoscalingv2.HPAScalingRules{Tolerance: &exact}
		hpas := kube.AutoscalingV2().HorizontalPodAutoscalers(namespace)
		_, err := hpas.Create(ctx, autoscaler, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) { Expect(hpas.Delete(ctx, p.name, metav1.DeleteOptions{})).To(Succeed()) })
		p.restsWithin(ctx, 5*time.Minute, 10, 1, "Complete")
		Consistently(story, looks).Should(endWith(10), "11 machines exist, which are within a tenth")
		measured.set(func() { measured.external[p.name] = 3 })
		p.restsWithin(ctx, 5*time.Minute, 3, 1, "Complete")
		Expect(slices.IsSorted(story()[:slices.Index(story(), 10)+1])).To(BeTrue(), "%v", story())
	})
})

// wishes returns a function that returns every value of spec.replicas from now on.
func (p pool) wishes(ctx context.Context) func() []int32 {
	GinkgoHelper()
	w := must(machines.MachineV1alpha1().MachineDeployments(namespace).Watch(context.WithoutCancel(ctx), metav1.SingleObject(metav1.ObjectMeta{Name: p.name})))
	var mu sync.Mutex
	var all []int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if d, is := e.Object.(*machine.MachineDeployment); is {
				mu.Lock()
				all = append(all, d.Spec.Replicas)
				mu.Unlock()
			}
		}
	}()
	DeferCleanup(func() { w.Stop(); <-done })
	return func() []int32 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Compact(slices.Clone(all))
	}
}

// endWith wants a list of numbers to end with one.
func endWith(last int32) types.GomegaMatcher {
	return WithTransform(func(all []int32) int32 { return all[len(all)-1] }, Equal(last))
}

// perReplica asks for one replica for each unit of an external metric.
func perReplica(metric string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: metric},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(1, resource.DecimalSI)},
	}}
}

// newAutoscaler is an autoscaler of 2 to 40 replicas that waits half a minute, not five, before it scales down.
func newAutoscaler(name, apiVersion, kind string, metric autoscalingv2.MetricSpec) *autoscalingv2.HorizontalPodAutoscaler {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name}}
	hpa.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name},
		MinReplicas:    ptr.To[int32](2), MaxReplicas: 40, Metrics: []autoscalingv2.MetricSpec{metric},
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](30)}},
	}
	return hpa
}

// autoscale makes an autoscaler of the Balancer.
func (s shop) autoscale(ctx context.Context, metric autoscalingv2.MetricSpec) {
	GinkgoHelper()
	hpa := newAutoscaler(s.name, balancer.SchemeGroupVersion.String(), "Balancer", metric)
	_, err := kube.AutoscalingV2().HorizontalPodAutoscalers(s.name).Create(ctx, hpa, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// autoscalerActs waits until the autoscaler has read its metric and could scale.
func (s shop) autoscalerActs(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() (map[string]string, error) {
		hpa, err := kube.AutoscalingV2().HorizontalPodAutoscalers(s.name).Get(ctx, s.name, metav1.GetOptions{})
		says := map[string]string{}
		for _, c := range hpa.Status.Conditions {
			says[string(c.Type)] = string(c.Status)
		}
		return says, err
	}).WithContext(ctx).Should(And(HaveKeyWithValue("AbleToScale", "True"), HaveKeyWithValue("ScalingActive", "True")))
}

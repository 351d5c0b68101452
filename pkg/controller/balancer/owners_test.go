// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

// autoscale creates an autoscaler of an object of this kind: a Deployment, or a Balancer.
func (c *cluster) autoscale(name, kind, target string, metrics ...autoscalingv2.MetricSpec) *autoscalingv2.HorizontalPodAutoscaler {
	GinkgoHelper()
	api := map[string]string{"Deployment": "apps/v1", "Balancer": "balancer.x-k8s.io/v1alpha1", "DaemonSet": "apps/v1"}[kind]
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
	hpa.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 9, Metrics: metrics, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: api, Kind: kind, Name: target}}
	hpa, err := c.user.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(context.Background(), hpa, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return hpa
}

func (c *cluster) unscale(name string) {
	GinkgoHelper()
	Expect(c.user.AutoscalingV2().HorizontalPodAutoscalers(ns).Delete(context.Background(), name, metav1.DeleteOptions{})).To(Succeed())
}

func utilization(name corev1.ResourceName) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: name, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50)}}}
}

// of labels a Deployment's pods as those of another shop.
func of(shop string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Labels = map[string]string{"shop": shop, "run": d.Name}
	}
}

var _ = Describe("An autoscaler", func() {
	It("of another workload that counts the same pods is named, for as long as it is there", func() {
		play(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1)
			c.deploy("d", 1, of("other"))
			b := object("shop", 4, builders.Even(), "a", "b")
			b.Spec.Policy.Fallback = nil
			c.create(b)
			c.Start("balancer", controller(Options{}))
			c.settle()
			c.deploy("c", 4, func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels = map[string]string{"app": "shop"} })
			c.settle()
			c.autoscale("greedy", "Deployment", "c")
			c.autoscale("harmless", "Deployment", "d")
			c.autoscale("unknown-target", "DaemonSet", "e")
			c.settle()
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("True Resolved"), "nothing scales the Balancer, so nothing is switched off")
			c.autoscale("shop", "Balancer", "shop")
			c.settle()
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("False AmbiguousSelector"))
			Expect(c.message("shop", "TargetsResolved")).To(And(ContainSubstring("greedy"), ContainSubstring("delete it")))
			Expect(c.condition("shop", "Ready")).To(Equal("True UnderControl"), "the targets are scaled as ever")
			Expect(c.events()).To(ContainElement("TargetsUnclear"))
			c.unscale("greedy")
			c.settle()
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("True Resolved"))
		})
	})

	It("of another Balancer of the same pods, and a second one of the same Balancer, are named too", func() {
		play(func(c *cluster) {
			for _, name := range []string{"a", "b", "c", "d"} {
				c.deploy(name, 1)
			}
			c.balance("first", 2, builders.Even(), "a", "b")
			c.balance("second", 2, builders.Even(), "c", "d")
			c.autoscale("z-first", "Balancer", "first")
			c.autoscale("a-second", "Balancer", "second")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("first", "TargetsResolved")).To(Equal("False AmbiguousSelector"))
			Expect(c.message("first", "TargetsResolved")).To(ContainSubstring("a-second"))
			c.unscale("a-second")
			c.settle()
			Expect(c.condition("first", "TargetsResolved")).To(Equal("False ForeignPods"))
			c.autoscale("y-first", "Balancer", "first")
			c.settle()
			Expect(c.message("first", "TargetsResolved")).To(And(ContainSubstring("y-first"), ContainSubstring("z-first")))
		})
	})

	It("that computes utilization is told of targets whose pods request nothing", func() {
		play(func(c *cluster) {
			asking := func(names ...corev1.ResourceName) func(*appsv1.Deployment) {
				return func(d *appsv1.Deployment) {
					requests := corev1.ResourceList{}
					for _, name := range names {
						requests[name] = resource.MustParse("1")
					}
					d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "work", Resources: corev1.ResourceRequirements{Requests: requests}}}
				}
			}
			c.deploy("a", 1, asking(corev1.ResourceCPU, corev1.ResourceMemory))
			c.deploy("b", 1, asking(corev1.ResourceCPU))
			c.deploy("c", 1, asking())
			c.balance("ab", 4, builders.Even(), "a", "b")
			c.change("ab", func(b *v1alpha1.Balancer) {
				b.Spec.Selector.MatchLabels, b.Spec.Selector.MatchExpressions = nil, []metav1.LabelSelectorRequirement{{Key: "run", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}}
			})
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("ab", "TargetsResolved")).To(Equal("True Resolved"))
			c.autoscale("ab", "Balancer", "ab", utilization(corev1.ResourceCPU))
			c.settle()
			Expect(c.condition("ab", "TargetsResolved")).To(Equal("True Resolved"))
			c.unscale("ab")
			c.autoscale("ab", "Balancer", "ab", utilization(corev1.ResourceMemory))
			c.settle()
			Expect(c.condition("ab", "TargetsResolved")).To(Equal("False NoRequests"))
			Expect(c.message("ab", "TargetsResolved")).To(And(ContainSubstring("memory"), ContainSubstring("target b")))
			c.change("ab", func(b *v1alpha1.Balancer) {
				b.Spec.Selector.MatchExpressions[0].Values = []string{"a", "c"}
				b.Spec.Targets[1] = builders.Target("c")
			})
			c.unscale("ab")
			c.autoscale("ab", "Balancer", "ab", utilization(corev1.ResourceMemory), utilization(corev1.ResourceCPU))
			c.settle()
			Expect(c.message("ab", "TargetsResolved")).To(And(ContainSubstring("cpu"), ContainSubstring("target c")))
		})
	})

	It("is told of a single pod that requests nothing among others that do", func() {
		quietly(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			for i := range 20 {
				c.pod("a", corev1.PodRunning, func(p *corev1.Pod) {
					if i != 7 {
						p.Spec.Containers = []corev1.Container{requesting("1")}
					}
				})
			}
			c.balance("shop", 0, builders.Even(), "a", "b")
			c.autoscale("shop", "Balancer", "shop", utilization(corev1.ResourceCPU))
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("False NoRequests"))
		})
	})

	DescribeTable("that only reports of itself, as it does every few seconds, costs no sync",
		func(only bool, change func(*autoscalingv2.HorizontalPodAutoscaler)) {
			was := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: "1"}}
			is := was.DeepCopy()
			is.ResourceVersion = "2"
			change(is)
			Expect(OnlyReports(was, is)).To(Equal(only))
			Expect(OnlyReports(is)).To(BeFalse(), "it has come or gone")
		},
		Entry(nil, true, func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Status.CurrentReplicas = 7 }),
		Entry("another target", false, func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.ScaleTargetRef.Name = "else" }),
		Entry("another metric", false, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.Metrics = []autoscalingv2.MetricSpec{utilization(corev1.ResourceCPU)}
		}),
	)

	DescribeTable("finds a pod's requests whole, in every container and in every sidecar",
		func(has bool, change func(*corev1.PodSpec)) {
			pod := &corev1.Pod{}
			pod.Spec.Containers = []corev1.Container{requesting("100m"), requesting("1")}
			change(&pod.Spec)
			Expect(Requests(pod, corev1.ResourceCPU)).To(Equal(has))
			kept, err := StripPods()(pod)
			Expect(err).NotTo(HaveOccurred())
			cpu, memory := RequestsOf(kept)
			Expect(cpu).To(Equal(has))
			Expect(memory).To(BeFalse())
		},
		Entry(nil, true, func(*corev1.PodSpec) {}),
		Entry("one without", false, func(s *corev1.PodSpec) { s.Containers = append(s.Containers, corev1.Container{}) }),
		Entry("one without, but whole", true, func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{})
			s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}
		}),
		Entry("whole, of something else", true, func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi")}}
		}),
		Entry("an init container without", true, func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{}} }),
		Entry("a sidecar without", false, func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		}),
		Entry("a sidecar with", true, func(s *corev1.PodSpec) {
			sidecar := requesting("1m")
			sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			s.InitContainers = []corev1.Container{sidecar}
		}),
	)
})

func requesting(cpu string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}
}

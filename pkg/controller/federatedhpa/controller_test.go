// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

var _ = Describe("The controller", func() {
	It("makes autoscalers in all clusters, moves maxima to where load is, and then rests", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(3, 30))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10/1..10/1..10"))
			f.loads("shop", 25, 2, 2)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("24/3/3"))
			Expect(f.condition("shop", "Ready")).To(Equal("True UnderControl"))
			Expect(f.condition("shop", "Limited")).To(Equal("True TooFewReplicas"))
			Expect(f.events()).To(ContainElements("Joined", "Moved", "LimitedTooFewReplicas"))
			before := len(f.ours())
			time.Sleep(3 * time.Hour)
			Expect(f.ours()[before:]).To(BeEmpty())
		}, "c1", "c2", "c3")
	})

	It("decides on nothing older than its own writes", func() {
		play(func(f *federation) {
			f.Lag("federatedhorizontalpodautoscalers", sim.Constantly(7*time.Second), "federatedhpa")
			tried := 0
			f.OnWrite(func(w sim.Write) error {
				if w.User == "federatedhpa" && w.Resource == "federatedhorizontalpodautoscalers" {
					tried++
				}
				return nil
			})
			for _, c := range f.clusters {
				c.Lag("horizontalpodautoscalers", sim.Constantly(20*time.Second), "federatedhpa")
			}
			f.start()
			f.create(federated(3, 30))
			f.settle()
			f.loads("shop", 25, 2, 2)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("24/3/3"))
			changes, done := 0, 0
			for _, w := range f.ours() {
				switch {
				case !strings.HasPrefix(w, "hub"):
					changes++
				case strings.HasSuffix(w, " shop"):
					done++
				}
			}
			Expect(tried).To(Equal(done), "a write that conflicts was decided on something old")
			Expect(changes).To(BeNumerically("<", 12), "%v", f.ours())
		}, "c1", "c2", "c3")
	})

	It("repairs what somebody else changes", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(2, 20, withMetric("1")))
			f.settle()
			f.clusters[0].edit("shop", func(h *autoscalingv2.HorizontalPodAutoscaler) {
				h.Spec.MaxReplicas, h.Spec.Metrics = 50, nil
			})
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10/1..10"))
			Expect(f.clusters[0].hpa("shop").Spec.Metrics).To(HaveLen(1))
			By("changing what it was made from")
			f.change("shop", withMetric("2"))
			f.settle()
			for _, c := range f.clusters {
				Expect(c.hpa("shop").Spec.Metrics[0].External.Target.AverageValue.String()).To(Equal("2"))
			}
		}, "c1", "c2")
	})

	It("rests though numbers are written in another way than the server writes them", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(2, 20, withMetric("0.5")))
			f.settle()
			before := len(f.ours())
			time.Sleep(2 * time.Hour)
			Expect(f.ours()[before:]).To(BeEmpty())
		}, "c1", "c2")
	})

	It("writes nothing while paused", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(2, 20, func(s *spec) { s.Paused = true }))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/-"))
			Expect(f.condition("shop", "Ready")).To(Equal("False Paused"))
			Expect(f.object("shop").Status.Clusters[0].MaxReplicas).To(BeEquivalentTo(10), "what would be done")
			f.change("shop", func(s *spec) { s.Paused = false })
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10/1..10"))
		}, "c1", "c2")
	})
})

var _ = Describe("Clusters that come and go", func() {
	It("join, and leave when they are selected no more, and the others take over", func() {
		play(func(f *federation) {
			f.register("c1", "c2")
			f.start()
			f.create(federated(2, 12))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..6/1..6/-"))
			f.register("c1", "c2", "c3")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("4/4/4"))
			f.change("shop", func(s *spec) {
				s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"c2"}}}}
			})
			f.settle()
			Expect(f.maxima("shop")).To(Equal("6/-/6"))
			Expect(f.events()).To(ContainElement("Left"))
		}, "c1", "c2", "c3")
	})

	It("keep their share while they are out of reach, and are not touched", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(3, 30))
			f.settle()
			f.clusters[2].Down(true, "federatedhpa")
			time.Sleep(2 * time.Minute)
			Expect(f.state("shop", "c3")).To(Equal("Unreachable NoContact"))
			f.loads("shop", 40, 2, 9)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("17/3/10"))
			Expect(f.condition("shop", "ClustersUnreachable")).To(Equal("True OutOfReach"))
			f.clusters[2].Down(false, "federatedhpa")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("17/3/10"), "it runs 9 and keeps one more")
			Expect(f.condition("shop", "ClustersUnreachable")).To(Equal("False AllReached"))
		}, "c1", "c2", "c3")
	})

	It("lend their share if that is asked for, and get back what they run", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(3, 30, func(s *spec) {
				s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](600)}
			}))
			f.settle()
			f.loads("shop", 40, 2, 9)
			f.clusters[2].Down(true, "federatedhpa")
			time.Sleep(5 * time.Minute)
			Expect(f.maxima("shop")).To(Equal("17/3/10"))
			f.settle()
			Expect(f.maxima("shop")).To(Equal("27/3/10"))
			Expect(f.condition("shop", "OverCommitted")).To(Equal("True MaximaExceedIt"))
			f.clusters[2].Down(false, "federatedhpa")
			f.settle()
			Expect(f.condition("shop", "OverCommitted")).To(Equal("False Within"))
			Expect(f.object("shop").Status.MaxReplicas).To(BeEquivalentTo(30))
		}, "c1", "c2", "c3")
	})

	It("keep their share though the registry has lost them, until they are given up", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(3, 30))
			f.settle()
			f.register("c1", "c2")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("10/10/10"))
			Expect(f.state("shop", "c3")).To(Equal("Unreachable NotRegistered"))
			f.change("shop", func(s *spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c3"}} })
			f.settle()
			Expect(f.maxima("shop")).To(Equal("15/15/10"))
			Expect(f.state("shop", "c3")).To(Equal("absent"))
		}, "c1", "c2", "c3")
	})

	It("join when those before them are full (use case 3), and leave again", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(1, 10, strict, onDemand, prefer("cloud", tier(1)), func(s *spec) { rebalance(s).StartTimeoutSeconds = ptr.To[int32](60) }))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/1..10"))
			f.member("site").set(func(c *cluster) { c.capacity = 4 })
			f.loads("shop", 3, 9)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("5/5"), "what the site cannot run goes to the cloud")
			Expect(f.condition("shop", "MinExceeded")).To(Equal("True MinimaExceedIt"))
			f.loads("shop", 0, 3)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/1..10"))
		}, "cloud", "site")
	})
})

var _ = Describe("Deletion", func() {
	It("removes what was made, and waits for clusters out of reach", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(2, 10))
			f.settle()
			f.clusters[1].Down(true, "federatedhpa")
			time.Sleep(time.Minute)
			f.remove("shop")
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/1..5"))
			Expect(f.condition("shop", "Ready")).To(Equal("False Deleting"))
			f.clusters[1].Down(false, "federatedhpa")
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/-"))
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1", "c2")
	})

	It("leaves everything if that is asked for", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(2, 10, func(s *spec) { s.DeletionPolicy = v1alpha1.Orphan }))
			f.settle()
			f.clusters[1].Down(true, "federatedhpa")
			f.remove("shop")
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..5/1..5"))
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1", "c2")
	})
})

var _ = Describe("Workloads from a template", func() {
	template := func(image string) func(*spec) {
		return func(s *spec) {
			s.Placement = &v1alpha1.Placement{Mode: v1alpha1.Template, Template: &runtime.RawExtension{Raw: fmt.Appendf(nil,
				`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop"},"spec":{"replicas":7,"selector":{"matchLabels":{"app":"shop"}},"template":{"metadata":{"labels":{"app":"shop"}},"spec":{"containers":[{"name":"a","image":%q}]}}}}`, image)}}
		}
	}

	It("are made with one replica, kept up to date but for replicas, and removed where they are not wanted any more", func() {
		play(func(f *federation) {
			for _, c := range f.clusters {
				Expect(c.core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			}
			f.clusters[0].deploy("shop") // somebody else's
			var born []int32
			f.clusters[1].AfterWrite(func(w sim.Write) error {
				if w.User == "federatedhpa" && w.Resource == "deployments" {
					born = append(born, 1)
				}
				return nil
			})
			f.start()
			f.create(federated(1, 10, template("one")))
			time.Sleep(10 * time.Second)
			Expect(f.clusters[1].replicas("shop")).To(BeEquivalentTo(1))
			f.loads("shop", 4, 4)
			f.settle()
			Expect(f.clusters[1].replicas("shop")).To(BeEquivalentTo(4))
			f.change("shop", template("two"))
			time.Sleep(2 * time.Second) // before its autoscaler could make up for it
			Expect(f.clusters[1].image("shop")).To(Equal("two"))
			Expect(f.clusters[1].replicas("shop")).To(BeEquivalentTo(4))
			f.settle()
			Expect(f.clusters[0].image("shop")).To(BeEmpty(), "it is somebody else's")
			Expect(born).To(HaveLen(2))
			f.change("shop", func(s *spec) { s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c1"}} })
			f.settle()
			Expect(f.clusters[1].Get(deploymentGVR, ns, "shop")).To(BeNil())
			Expect(f.clusters[0].Get(deploymentGVR, ns, "shop")).NotTo(BeNil())
		}, "c1", "c2")
	})

	It("go with the object", func() {
		play(func(f *federation) {
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.start()
			f.create(federated(1, 10, template("one")))
			f.settle()
			f.remove("shop")
			f.settle()
			Expect(f.clusters[0].Get(deploymentGVR, ns, "shop")).To(BeNil())
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1")
	})
})

// withMetric is an external metric of so much per replica.
func withMetric(value string) func(*spec) {
	return func(s *spec) {
		s.Metrics = []runtime.RawExtension{{Raw: fmt.Appendf(nil, `{"type":"External","external":{"metric":{"name":"load"},"target":{"type":"AverageValue","averageValue":%q}}}`, value)}}
	}
}

func (c *cluster) edit(name string, change func(*autoscalingv2.HorizontalPodAutoscaler)) {
	h := c.hpa(name)
	change(h)
	_, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(ns).Update(context.Background(), h, metav1.UpdateOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

func (c *cluster) deployment(name string) *appsv1.Deployment {
	raw := c.Get(deploymentGVR, ns, name)
	ExpectWithOffset(2, raw).NotTo(BeNil())
	d := &appsv1.Deployment{}
	ExpectWithOffset(2, runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, d)).To(Succeed())
	return d
}

func (c *cluster) replicas(name string) int32 { return *c.deployment(name).Spec.Replicas }

func (c *cluster) image(name string) string {
	for _, container := range c.deployment(name).Spec.Template.Spec.Containers {
		return container.Image
	}
	return ""
}

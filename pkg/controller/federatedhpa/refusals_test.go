// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("A cluster that stores other bounds than it is told", func() {
	It("is asked for them again later and later, and is said to refuse them", func() {
		play(func(f *federation) {
			f.clusters[0].Admit(func(a sim.Admission) error { // as a mutating webhook does
				if a.Object.GetKind() == "HorizontalPodAutoscaler" {
					_ = unstructured.SetNestedField(a.Object.Object, int64(2), "spec", "minReplicas")
				}
				return nil
			})
			f.start()
			f.create(Federated(2, 20))
			time.Sleep(10 * time.Second)
			f.calls.take()
			time.Sleep(2 * time.Minute)
			Expect(f.calls.take()["PATCH"]).To(BeNumerically("<", 10))
			Expect(f.state("shop", "c1")).To(Equal("Refused RefusedByServer"))
			Expect(f.bounds("shop")).To(Equal("2..10/1..10"))
		}, "c1", "c2")
	})
})

// refuseAbove has the cluster refuse autoscalers with a higher maximum.
func (c *cluster) refuseAbove(most int64) {
	c.Admit(func(a sim.Admission) error {
		n, found, _ := unstructured.NestedInt64(a.Object.Object, "spec", "maxReplicas")
		if a.Object.GetKind() == "HorizontalPodAutoscaler" && found && n > most {
			return apierrors.NewInvalid(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler").GroupKind(), "shop", nil)
		}
		return nil
	})
}

var _ = Describe("An object that is corrected after a cluster has refused it", func() {
	It("does not wait for the retry of what was refused, also if the first try meets another write", func() {
		play(func(f *federation) {
			f.clusters[0].refuseAbove(10)
			f.start()
			f.create(Federated(1, 10))
			f.settle()
			f.change("shop", func(s *Spec) { s.MaxReplicas = 20 })
			time.Sleep(40 * time.Minute)
			Expect(f.state("shop", "c1")).To(Equal("Refused RefusedInvalid"))
			f.clusters[0].Lag("horizontalpodautoscalers", sim.Constantly(5*time.Second), "federatedhpa")
			f.clusters[0].edit("shop", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Annotations["example.org/note"] = "new" })
			f.change("shop", func(s *Spec) { s.MaxReplicas = 8 })
			time.Sleep(time.Minute)
			Expect(f.bounds("shop")).To(Equal("1..8"))
			Expect(f.condition("shop", "Ready")).To(Equal("True UnderControl"))
		}, "c1")
	})
})

var _ = Describe("An object that a cluster refused for hours", func() {
	DescribeTable("is tried again often enough to be taken once that has ended, and is no load until then", func(refusal error, perHour int, within time.Duration) {
		play(func(f *federation) {
			var taken atomic.Bool
			f.clusters[0].Admit(func(a sim.Admission) error {
				if !taken.Load() && a.Object.GetKind() == "HorizontalPodAutoscaler" {
					return refusal
				}
				return nil
			})
			f.start()
			f.create(Federated(1, 10))
			time.Sleep(3 * time.Hour)
			f.calls.take()
			time.Sleep(time.Hour)
			Expect(f.calls.take()["POST"]).To(BeNumerically("~", perHour, 1))
			Expect(f.state("shop", "c1")).To(HavePrefix("Refused Refused"))
			taken.Store(true)
			time.Sleep(within)
			Expect(f.bounds("shop")).To(Equal("1..10"))
		}, "c1")
	},
		Entry("as its namespace was created", apierrors.NewNotFound(corev1.Resource("namespaces"), ns), 12, 6*time.Minute),
		Entry("as a right was granted", apierrors.NewForbidden(autoscalingv2.Resource("horizontalpodautoscalers"), "shop", nil), 12, 6*time.Minute),
		Entry("as a policy was changed", apierrors.NewInvalid(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler").GroupKind(), "shop", nil), 1, 61*time.Minute),
	)
})

var _ = Describe("An autoscaler that a finalizer keeps", func() {
	It("counts until it is gone, and is deleted once", func() {
		play(func(f *federation) {
			f.guard(20, "shop")
			f.start()
			f.create(Federated(2, 20))
			f.settle()
			f.clusters[0].edit("shop", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Finalizers = []string{"example.org/kept"} })
			f.settle()
			f.calls.take()
			f.change("shop", func(s *Spec) { s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c2"}} })
			time.Sleep(10 * time.Minute)
			Expect(f.maxima("shop")).To(Equal("10/10"))
			Expect(f.calls.take()["DELETE"]).To(BeNumerically("<=", 3))
			Expect(f.state("shop", "c1")).To(Equal("Leaving"))
			f.clusters[0].edit("shop", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Finalizers = nil })
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/19"), "c1 keeps a replica")
		}, "c1", "c2")
	})
})

var _ = Describe("What is wrong", func() {
	foreign := func(c *cluster, name, target string) {
		_, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(context.Background(), &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target},
				MinReplicas:    ptr.To[int32](2), MaxReplicas: 99,
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}

	It("with an autoscaler of the name: it is left alone, unless it may be adopted", func() {
		play(func(f *federation) {
			foreign(f.clusters[0], "shop", "shop")
			f.start()
			f.create(Federated(1, 10))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("2..99/1..10"))
			Expect(f.state("shop", "c1")).To(Equal("Refused NameTaken"))
			Expect(f.condition("shop", "Ready")).To(Equal("False ClustersRefused"))
			f.change("shop", func(s *Spec) { s.Adopt = true })
			f.settle()
			Expect(f.object("shop").Status.MaxReplicas).To(BeEquivalentTo(10))
			Expect(f.condition("shop", "Ready")).To(Equal("True UnderControl"))
			Expect(f.maxima("shop")).To(Equal("5/5"))
		}, "c1", "c2")
	})

	It("with an autoscaler of the name that a paused object would take over: it is left alone when the object is deleted", func() {
		play(func(f *federation) {
			foreign(f.clusters[0], "shop", "shop")
			f.start()
			f.create(Federated(1, 10, func(s *Spec) { s.Adopt, s.Paused = true, true }))
			f.settle()
			f.remove("shop")
			f.settle()
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
			Expect(f.bounds("shop")).To(Equal("2..99/-"))
		}, "c1", "c2")
	})

	It("with an autoscaler that took the place of the object's: the object can be deleted, and that one is left alone", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(1, 10))
			f.settle()
			hpas := f.clusters[0].core.AutoscalingV2().HorizontalPodAutoscalers(ns)
			Expect(hpas.Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			foreign(f.clusters[0], "shop", "shop")
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Refused NameTaken"))
			f.remove("shop")
			f.settle()
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
			Expect(f.bounds("shop")).To(Equal("2..99/-"))
		}, "c1", "c2")
	})

	It("with another autoscaler on the workload: the cluster is not used", func() {
		play(func(f *federation) {
			foreign(f.clusters[0], "old", "shop")
			h := another("shop")
			h.Spec.ScaleTargetRef.APIVersion = "apps/v1beta2"
			world.Create(f.clusters[2].core.AutoscalingV2().HorizontalPodAutoscalers(ns), h)
			f.start()
			f.create(Federated(1, 10))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/1..10/-"))
			Expect(f.state("shop", "c1")).To(Equal("Refused AutoscaledTwice"))
			Expect(f.state("shop", "c3")).To(Equal("Refused AutoscaledTwice"), "whatever the version of the workload's kind")
		}, "c1", "c2", "c3")
	})

	It("with two objects on one workload: the older one works, and the other when that has gone", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(1, 10))
			time.Sleep(2 * time.Second)
			second := Federated(1, 6)
			second.Name = "late"
			f.create(second)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10"))
			Expect(f.bounds("late")).To(Equal("-"))
			Expect(f.condition("late", "Ready")).To(Equal("False Conflict"))
			f.remove("shop")
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-"))
			Expect(f.bounds("late")).To(Equal("1..6"))
		}, "c1")
	})

	It("with two objects of one second on one workload: the first one by name works", func() {
		play(func(f *federation) {
			second := Federated(1, 6)
			second.Name = "late"
			f.create(Federated(1, 10))
			f.create(second)
			f.start()
			f.settle()
			Expect(f.bounds("late")).To(Equal("1..6"))
			Expect(f.bounds("shop")).To(Equal("-"))
			Expect(f.condition("shop", "Ready")).To(Equal("False Conflict"))
		}, "c1")
	})

	It("with a kind that a cluster does not have: it is not used", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(1, 10, func(s *Spec) {
				s.ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: widgetKind.GroupVersion().String(), Kind: widgetKind.Kind, Name: "w"}
			}))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-"))
			Expect(f.state("shop", "c1")).To(Equal("Refused NoSuchKind"))
		}, "c1")
	})

	It("with the workload: its autoscaler is there and waits", func() {
		play(func(f *federation) {
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.start()
			f.create(Federated(1, 10))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..5/1..5"))
			Expect(f.state("shop", "c1")).To(Equal("Used NoWorkload"))
			Expect(f.condition("shop", "Ready")).To(Equal("True UnderControl"))
		}, "c1", "c2")
	})

	It("with what a cluster takes: it is asked again from time to time, others go on, and a change helps at once", func() {
		play(func(f *federation) {
			refuse := true
			f.clusters[0].OnWrite(func(w sim.Write) error {
				if refuse && w.User == "federatedhpa" {
					return apierrors.NewInvalid(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler").GroupKind(), "shop", nil)
				}
				return nil
			})
			f.start()
			f.create(Federated(1, 10, withMetric("1")))
			time.Sleep(10 * time.Minute)
			Expect(f.bounds("shop")).To(Equal("-/1..10"))
			Expect(f.state("shop", "c1")).To(Equal("Refused RefusedInvalid"))
			refuse = false
			f.change("shop", withMetric("2"))
			time.Sleep(5 * time.Minute)
			Expect(f.maxima("shop")).To(Equal("5/5"))
		}, "c1", "c2")
	})

	DescribeTable("with the object: nothing is written to any cluster",
		func(reason string, change func(*Spec)) {
			play(func(f *federation) {
				f.start()
				f.create(Federated(1, 10, change))
				f.settle()
				Expect(f.bounds("shop")).To(Equal("-"))
				Expect(f.condition("shop", "Ready")).To(Equal("False " + reason))
				Expect(f.object("shop").Finalizers).To(BeEmpty())
			}, "c1")
		},
		Entry("a metric without a type", "InvalidTemplate", func(s *Spec) { s.Metrics = []runtime.RawExtension{{Raw: []byte(`{"external":{}}`)}} }),
		Entry("a metric that is none", "InvalidTemplate", func(s *Spec) { s.Metrics = []runtime.RawExtension{{Raw: []byte(`{"type":7}`)}} }),
		Entry("a behavior that is none", "InvalidTemplate", func(s *Spec) { s.Behavior = &runtime.RawExtension{Raw: []byte(`{"scaleUp":"fast"}`)} }),
		Entry("more text than is read", "TooLarge", func(s *Spec) {
			s.Behavior = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", 64<<10))}
		}),
		Entry("a larger selector than is read", "TooLarge", func(s *Spec) {
			s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": strings.Repeat("x", 64<<10)}}
		}),
		Entry("a selector that is none", "InvalidSelector", func(s *Spec) {
			s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
		}),
		Entry("zero without a metric for it", "ZeroNeedsMetrics", func(s *Spec) {
			s.MinPolicy, s.Metrics = v1alpha1.AllowZero, []runtime.RawExtension{{Raw: []byte(`{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}`)}}
		}),
	)

	It("with the object: an event says why, and another one does when the reason changes", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(1, 10, func(s *Spec) { s.Paused = true }))
			f.settle()
			f.change("shop", func(s *Spec) { s.Behavior = &runtime.RawExtension{Raw: []byte(`{"scaleUp":"fast"}`)} })
			f.settle()
			Expect(f.events()).To(ConsistOf("ReadyPaused", "ReadyInvalidTemplate"))
		}, "c1")
	})

	It("with room for all of the clusters: some wait, and say so", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(1, 2))
			f.settle()
			Expect(f.maxima("shop")).To(Equal("1/1/-"))
			Expect(f.condition("shop", "JoiningBlocked")).To(Equal("True NoRoom"))
			Expect(f.state("shop", "c3")).To(Equal("Waiting NoRoom"))
		}, "c1", "c2", "c3")
	})

	It("joins at 0 where its workload has 0 replicas, because a new autoscaler with a minimum would not scale that", func() {
		play(func(f *federation) {
			both := func(s *Spec) { s.ClusterSelector = nil }
			f.start()
			f.create(Federated(1, 10, Prefer("c1", AtMost(2)), func(s *Spec) { s.MinPolicy = v1alpha1.AllowZero }))
			f.loads("shop", 2, 0)
			f.settle()
			Expect(f.clusters[1].replicas("shop")).To(BeZero())
			f.change("shop", func(s *Spec) {
				s.MinReplicas, s.ClusterSelector = ptr.To[int32](4), &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c1"}}
			})
			f.settle()
			Expect(f.bounds("shop")).To(Equal("2..2/-"))
			f.change("shop", both)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("2..2/0..8"))
			Expect(f.clusters[1].replicas("shop")).To(BeZero())
			f.loads("shop", 2, 1)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("2..2/2..8"))
		}, "c1", "c2")
	})
})

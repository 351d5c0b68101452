// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// without deselects a cluster.
func without(name string) func(*Spec) {
	return func(s *Spec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{name}}}}
	}
}

func everywhere(s *Spec) { s.ClusterSelector = nil }

func zeroing(s *Spec) { s.LeavePolicy = v1alpha1.LeaveScaleToZero }

var _ = Describe("A cluster that leaves and runs replicas", func() {
	// leaving runs 9 and 3 replicas under an object that no longer selects the first cluster, while the second one could use 40.
	leaving := func(f *federation, change ...func(*Spec)) {
		f.guard(20, "shop")
		f.start()
		f.create(Federated(2, 20, change...))
		f.settle()
		f.loads("shop", 9, 3)
		f.settle()
		f.change("shop", without("c1"))
		f.loads("shop", 9, 40)
		f.settle()
	}

	It("keeps them, and they count until they are gone", func() {
		play(func(f *federation) {
			registry := prometheus.NewRegistry()
			f.options.Registerer = registry
			leaving(f)
			Expect(f.maxima("shop")).To(Equal("-/11"))
			Expect(f.clusters[0].replicas("shop")).To(BeEquivalentTo(9))
			Expect(f.state("shop", "c1")).To(Equal("Left ReplicasLeft"))
			Expect(f.condition("shop", "ReplicasLeft")).To(Equal("True WithoutAutoscaler"))
			Expect(f.condition("shop", "OverCommitted")).To(Equal("False Within"))
			Expect(valuesIn(registry, "evenkeel_federatedhpa_cluster_replicas", "what", "counted")).To(Equal(map[string]float64{"c1": 9, "c2": 11}))
			before := len(f.ours())
			time.Sleep(2 * time.Hour)
			Expect(f.ours()[before:]).To(BeEmpty())
			f.clusters[0].scaleTo("shop", 4)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/16"))
			f.excused.Store(true) // others add replicas
			f.clusters[0].scaleTo("shop", 12)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/16"), "what others add does not take from c2")
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/20"))
			Expect(f.state("shop", "c1")).To(Equal("absent"))
			Expect(f.condition("shop", "ReplicasLeft")).To(Equal("False NoneLeft"))
		}, "c1", "c2")
	})

	It("counts with what it runs, though nothing happens there that a watch could show", func() {
		play(func(f *federation) {
			f.clusters[0].Bookmarks(24*time.Hour, "federatedhpa")
			leaving(f)
			Expect(f.maxima("shop")).To(Equal("-/11"))
		}, "c1", "c2")
	})

	It("counts with what it showed last while a watch hides what happens there", func() {
		play(func(f *federation) {
			f.guard(20, "shop")
			f.start()
			f.create(Federated(2, 20))
			f.settle()
			f.loads("shop", 9, 3)
			f.settle()
			f.clusters[0].Hold("deployments", "federatedhpa")
			f.loads("shop", 4, 40)
			f.settle()
			f.change("shop", without("c1"))
			f.settle()
			Expect(f.clusters[0].replicas("shop")).To(BeEquivalentTo(4))
			Expect(f.maxima("shop")).To(Equal("-/11"), "the nine that it showed")
			f.calls.take()
			time.Sleep(10 * time.Minute)
			Expect(f.calls.take()["GET"]).To(BeNumerically("<", 100), "it is asked as often as it is probed")
			f.clusters[0].Release("deployments", "federatedhpa")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/16"))
		}, "c1", "c2")
	})

	It("is no longer counted once another autoscaler scales them", func() {
		play(func(f *federation) {
			leaving(f)
			f.excused.Store(true) // others are responsible now
			world.Create(f.clusters[0].core.AutoscalingV2().HorizontalPodAutoscalers(ns), another("shop"))
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/20"))
			Expect(f.state("shop", "c1")).To(Equal("absent"))
		}, "c1", "c2")
	})

	It("counts as last seen while it is out of reach, also for the next process, until it is released", func() {
		play(func(f *federation) {
			leaving(f)
			f.clusters[0].Down(true, "federatedhpa")
			time.Sleep(time.Minute)
			f.clusters[0].scaleTo("shop", 1)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/11"))
			Expect(f.state("shop", "c1")).To(Equal("Unreachable NoContact"))
			f.register("c2")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/11"))
			Expect(f.condition("shop", "ReplicasLeft")).To(Equal("True WithoutAutoscaler"))
			f.excused.Store(true) // the user is responsible now
			f.change("shop", func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c1"}} })
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/20"))
			Expect(f.condition("shop", "ReplicasLeft")).To(Equal("False NoneLeft"))
		}, "c1", "c2")
	})

	It("counts with what it was scaled to last, though the watch of its workload is late, as after an outage", func() {
		play(func(f *federation) {
			f.guard(20, "shop")
			f.start()
			f.create(Federated(2, 20))
			f.settle()
			f.loads("shop", 3, 3)
			f.settle()
			f.clusters[0].Lag("deployments", sim.Constantly(50*time.Second), "federatedhpa")
			f.loads("shop", 9, 40)
			time.Sleep(20 * time.Second)
			f.change("shop", without("c1"))
			f.settle()
			last := f.clusters[0].replicas("shop")
			Expect(last).To(BeNumerically(">", 3))
			Expect(f.maxima("shop")).To(Equal(fmt.Sprintf("-/%d", 20-last)))
		}, "c1", "c2")
	})

	It("keeps what it runs when it is used again", func() {
		play(func(f *federation) {
			leaving(f)
			least := f.clusters[0].replicas("shop")
			f.clusters[0].AfterWrite(func(w sim.Write) error {
				if n, ok := w.Object["spec"].(map[string]any)["replicas"].(int64); ok && w.Resource == "deployments" {
					least = min(least, int32(n))
				}
				return nil
			})
			f.change("shop", everywhere)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("9/11"))
			Expect(least).To(BeEquivalentTo(9))
			Expect(f.condition("shop", "ReplicasLeft")).To(Equal("False NoneLeft"))
		}, "c1", "c2")
	})

	It("is scaled to 0 if that is asked for, and to one when it is used again", func() {
		play(func(f *federation) {
			leaving(f, zeroing)
			Expect(f.clusters[0].replicas("shop")).To(BeZero())
			Expect(f.maxima("shop")).To(Equal("-/20"))
			Expect(f.state("shop", "c1")).To(Equal("absent"))
			f.loads("shop", 9, 3)
			f.settle()
			f.change("shop", everywhere)
			f.settle()
			Expect(f.clusters[0].replicas("shop")).To(BeEquivalentTo(9))
			By("leaving it at 0 where a user turned the autoscaler off")
			f.clusters[0].scaleTo("shop", 0)
			f.settle()
			Expect(f.clusters[0].replicas("shop")).To(BeZero())
		}, "c1", "c2")
	})

	It("is scaled by the next process, too, once it allows that, and names the refusal until then", func() {
		play(func(f *federation) {
			var allowed atomic.Bool
			f.clusters[0].OnWrite(func(w sim.Write) error {
				if w.User == "federatedhpa" && w.Resource == "deployments" && !allowed.Load() {
					return apierrors.NewForbidden(deploymentGVR.GroupResource(), "shop", errors.New("no right to scale"))
				}
				return nil
			})
			leaving(f, zeroing)
			Expect(f.state("shop", "c1")).To(Equal("Leaving WorkloadRefused"))
			Expect(f.condition("shop", "ReplicasLeft")).To(Equal("True WithoutAutoscaler"))
			Expect(f.maxima("shop")).To(Equal("-/11"))
			allowed.Store(true)
			f.settle()
			Expect(f.clusters[0].replicas("shop")).To(BeZero())
			Expect(f.maxima("shop")).To(Equal("-/20"))
		}, "c1", "c2")
	})

	It("is not scaled to 0 in a version that the hub has not seen, as where another autoscaler takes over meanwhile", func() {
		play(func(f *federation) {
			c := f.clusters[0]
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Writes() && r.Resource == "deployments" && r.User == "federatedhpa" {
					before = 8 * time.Second
				}
				return before, 0
			})
			f.start()
			f.create(Federated(2, 20, zeroing))
			f.settle()
			f.loads("shop", 9, 3)
			f.settle()
			f.change("shop", without("c1"))
			time.Sleep(4 * time.Second)
			world.Create(c.core.AutoscalingV2().HorizontalPodAutoscalers(ns), another("shop"))
			c.scaleTo("shop", 7)
			f.settle()
			Expect(c.replicas("shop")).To(BeEquivalentTo(9))
		}, "c1", "c2")
	})

	It("counts as before after the hub was restored to a time before it left", func() {
		play(func(f *federation) {
			hub := f.start()
			f.create(Federated(2, 20))
			f.settle()
			f.loads("shop", 9, 3)
			f.settle()
			f.change("shop", without("c1"))
			time.Sleep(time.Second)
			backup := f.Snapshot()
			f.loads("shop", 9, 40)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/11"))
			hub.Crash()
			f.Restore(backup)
			hub.Restart()
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/11"))
			Expect(fmt.Sprint(f.object("shop").Status.CountedReplicas)).To(Equal("20"))
		}, "c1", "c2")
	})

	It("is read before others get more, after the hub was restored to a time before the cluster was used again", func() {
		play(func(f *federation) {
			f.guard(20, "shop")
			hub := f.start()
			f.create(Federated(2, 20, without("c1")))
			f.settle()
			f.change("shop", everywhere)
			f.settle()
			f.loads("shop", 2, 9)
			f.settle()
			f.change("shop", without("c1"))
			f.settle()
			backup := f.Snapshot()
			f.change("shop", everywhere)
			f.loads("shop", 15, 3)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("16/4"))
			f.loads("shop", 15, 40)
			hub.Crash()
			f.Restore(backup)
			f.hang("c1")
			hub.Restart()
			time.Sleep(5 * time.Second)
			f.hang("")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/5"))
		}, "c1", "c2")
	})
})

// another is another client's autoscaler of a workload.
func another(workload string) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: ns}}
	h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: workload}
	h.Spec.MinReplicas, h.Spec.MaxReplicas = ptr.To[int32](1), 10
	return h
}

// scaleTo is what a user does.
func (c *cluster) scaleTo(name string, replicas int32) {
	GinkgoHelper()
	world.Change(c.core.AppsV1().Deployments(ns), name, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
}

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
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("Workloads from a template, in a cluster that is no longer wanted", func() {
	template := func(s *Spec) {
		s.LeavePolicy = v1alpha1.LeaveDelete
		s.Placement = &v1alpha1.Placement{Mode: v1alpha1.Template, Template: &runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop"},"spec":{"selector":{"matchLabels":{"app":"shop"}},"template":{"metadata":{"labels":{"app":"shop"}},"spec":{"containers":[{"name":"a","image":"one"}]}}}}`)}}
	}
	onlyFirst := func(s *Spec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c1"}}
	}

	// placed has the object use both clusters, with workloads that the hub created. While protected is set, the second one
	// refuses to remove its workload.
	placed := func(f *federation) (protected *atomic.Bool) {
		protected = &atomic.Bool{}
		protected.Store(true)
		for _, c := range f.clusters {
			Expect(c.core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
		}
		f.clusters[1].OnWrite(func(w sim.Write) error {
			if w.User == "federatedhpa" && w.Resource == "deployments" && w.Verb == "delete" && protected.Load() {
				return apierrors.NewForbidden(deploymentGVR.GroupResource(), "shop", errors.New("protected"))
			}
			return nil
		})
		f.create(Federated(2, 10, template))
		return protected
	}

	It("are removed once the cluster allows it, and its state is Leaving until then", func() {
		play(func(f *federation) {
			f.start()
			protected := placed(f)
			f.settle()
			f.change("shop", onlyFirst)
			f.settle()
			Expect(f.clusters[1].Get(deploymentGVR, ns, "shop")).NotTo(BeNil())
			Expect(f.clusters[1].Get(hpaGVR, ns, "shop")).To(BeNil())
			Expect(f.state("shop", "c2")).To(HavePrefix("Leaving"))
			protected.Store(false)
			time.Sleep(2 * time.Minute)
			f.settle()
			Expect(f.clusters[1].Get(deploymentGVR, ns, "shop")).To(BeNil())
			Expect(f.object("shop").Status.Clusters).To(HaveLen(1))
		}, "c1", "c2")
	})

	It("are deleted once, though a finalizer keeps them, and the object waits until they are gone", func() {
		play(func(f *federation) {
			f.start()
			placed(f).Store(false)
			f.settle()
			kept := func(finalizers ...string) {
				d := f.clusters[1].deployment("shop")
				d.Finalizers = finalizers
				_, err := f.clusters[1].core.AppsV1().Deployments(ns).Update(context.Background(), d, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			kept("example.org/kept")
			f.calls.take()
			f.remove("shop")
			time.Sleep(10 * time.Minute)
			Expect(f.calls.take()["DELETE"]).To(BeNumerically("<", 6), "two autoscalers and two workloads")
			Expect(f.Get(objectGVR, ns, "shop")).NotTo(BeNil())
			kept()
			f.settle()
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1", "c2")
	})

	It("are removed by the next process, too, if the first one could not", func() {
		play(func(f *federation) {
			p := f.start()
			protected := placed(f)
			f.settle()
			f.change("shop", onlyFirst)
			f.settle()
			protected.Store(false)
			p.Crash()
			p.Restart()
			f.settle()
			Expect(f.clusters[1].Get(deploymentGVR, ns, "shop")).To(BeNil())
			Expect(f.object("shop").Status.Clusters).To(HaveLen(1))
		}, "c1", "c2")
	})

	It("are removed although the status does not list the cluster, as where it lists as many as it can", func() {
		play(func(f *federation) {
			f.start()
			placed(f).Store(false)
			f.settle()
			f.change("shop", onlyFirst)
			f.settle()
			Expect(f.object("shop").Status.Clusters).To(HaveLen(1))
			late := f.clusters[0].deployment("shop").DeepCopy()
			late.UID, late.ResourceVersion, late.ManagedFields = "", "", nil
			world.Create(f.clusters[1].core.AppsV1().Deployments(ns), late)
			f.settle()
			Expect(f.clusters[1].Get(deploymentGVR, ns, "shop")).To(BeNil())
			Expect(f.clusters[0].Get(deploymentGVR, ns, "shop")).NotTo(BeNil())
		}, "c1", "c2")
	})

	It("are removed after the cluster was out of reach, for which a deleted object waits", func() {
		play(func(f *federation) {
			f.start()
			protected := placed(f)
			f.settle()
			f.change("shop", onlyFirst)
			f.settle()
			f.clusters[1].Down(true, "federatedhpa")
			protected.Store(false)
			f.settle()
			f.remove("shop")
			f.settle()
			Expect(f.Get(objectGVR, ns, "shop")).NotTo(BeNil())
			f.clusters[1].Down(false, "federatedhpa")
			f.settle()
			Expect(f.clusters[1].Get(deploymentGVR, ns, "shop")).To(BeNil())
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1", "c2")
	})

	It("are removed with a deleted object where the autoscaler was adopted, and the hub has just started and reads it first", func() {
		play(func(f *federation) {
			c := f.clusters[0]
			Expect(c.core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			adopted := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: ns}}
			adopted.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}
			adopted.Spec.MinReplicas, adopted.Spec.MaxReplicas = ptr.To[int32](2), 10
			world.Create(c.core.AutoscalingV2().HorizontalPodAutoscalers(ns), adopted)
			p := f.start()
			f.create(Federated(2, 10, template, func(s *Spec) { s.Adopt = true }))
			f.settle()
			Expect(c.Get(deploymentGVR, ns, "shop")).NotTo(BeNil())
			p.Crash()
			f.remove("shop")
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if !r.Writes() && r.Resource == "deployments" {
					before = 5 * time.Second
				}
				return before, 0
			})
			p.Restart()
			f.settle()
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
			Expect(c.Get(hpaGVR, ns, "shop")).To(BeNil())
			Expect(c.Get(deploymentGVR, ns, "shop")).To(BeNil())
		}, "c1")
	})
})

// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("Workloads from a template", func() {
	template := func(image string) func(*Spec) {
		return func(s *Spec) {
			s.LeavePolicy = v1alpha1.LeaveDelete
			s.Placement = &v1alpha1.Placement{Mode: v1alpha1.Template, Template: &runtime.RawExtension{Raw: fmt.Appendf(nil,
				`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop"},"spec":{"replicas":7,"selector":{"matchLabels":{"app":"shop"}},"template":{"metadata":{"labels":{"app":"shop"}},"spec":{"containers":[{"name":"a","image":%q}]}}}}`, image)}}
		}
	}

	It("are made with one replica, kept up to date but for replicas, and removed where they are not wanted any more", func() {
		play(func(f *federation) {
			for _, c := range f.clusters {
				Expect(c.core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			}
			f.clusters[0].deploy("shop") // another client's
			var born []int32
			f.clusters[1].AfterWrite(func(w sim.Write) error {
				if w.User == "federatedhpa" && w.Resource == "deployments" {
					born = append(born, 1)
				}
				return nil
			})
			f.start()
			f.create(Federated(1, 10, template("one")))
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
			Expect(f.clusters[0].image("shop")).To(BeEmpty(), "it is another client's")
			Expect(born).To(HaveLen(3), "it is created, claimed and changed")
			f.change("shop", func(s *Spec) { s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c1"}} })
			f.settle()
			Expect(f.clusters[1].Get(deploymentGVR, ns, "shop")).To(BeNil())
			Expect(f.clusters[0].Get(deploymentGVR, ns, "shop")).NotTo(BeNil())
		}, "c1", "c2")
	})

	It("say so where a cluster refuses a change, as of a field that cannot be changed, until it takes one", func() {
		play(func(f *federation) {
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.clusters[0].Admit(func(a sim.Admission) error {
				if a.Object.GetKind() == "Deployment" && strings.Contains(fmt.Sprint(a.Object.Object), "refused") {
					return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "shop", nil)
				}
				return nil
			})
			f.start()
			f.create(Federated(1, 10, template("one")))
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Used"))
			f.change("shop", template("refused"))
			time.Sleep(30 * time.Second)
			Expect(f.clusters[0].image("shop")).To(Equal("one"))
			Expect(f.state("shop", "c1")).To(Equal("Used WorkloadRefused"))
			f.change("shop", template("two"))
			time.Sleep(time.Second)
			Expect(f.clusters[0].image("shop")).To(Equal("two"), "without a wait, because the object has changed")
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Used"))
		}, "c1")
	})

	It("are placed again after a minute where a cluster refuses them, which the status shows meanwhile", func() {
		play(func(f *federation) {
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			var accepted atomic.Bool
			var attempts atomic.Int32
			f.clusters[0].OnWrite(func(w sim.Write) error {
				if w.User != "federatedhpa" || w.Resource != "deployments" {
					return nil
				}
				if attempts.Add(1); !accepted.Load() {
					return apierrors.NewForbidden(deploymentGVR.GroupResource(), "shop", errors.New("not here"))
				}
				return nil
			})
			f.start()
			f.create(Federated(1, 10, template("one")))
			time.Sleep(50 * time.Second)
			Expect(f.state("shop", "c1")).To(ContainSubstring("WorkloadRefused"))
			Expect(attempts.Load()).To(BeEquivalentTo(1))
			accepted.Store(true)
			time.Sleep(time.Minute)
			Expect(f.clusters[0].Get(deploymentGVR, ns, "shop")).NotTo(BeNil())
			f.settle()
			Expect(f.state("shop", "c1")).NotTo(ContainSubstring("WorkloadRefused"))
		}, "c1")
	})

	It("show in the status why they stay where a cluster refuses to remove them, until they are gone", func() {
		play(func(f *federation) {
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			var accepted atomic.Bool
			f.clusters[0].OnWrite(func(w sim.Write) error {
				if w.User == "federatedhpa" && w.Resource == "deployments" && w.Verb == "delete" && !accepted.Load() {
					return apierrors.NewForbidden(deploymentGVR.GroupResource(), "shop", errors.New("not you"))
				}
				return nil
			})
			f.start()
			f.create(Federated(1, 10, template("one")))
			f.settle()
			f.remove("shop")
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Leaving WorkloadRefused"))
			accepted.Store(true)
			f.settle()
			Expect(f.clusters[0].Get(deploymentGVR, ns, "shop")).To(BeNil())
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1")
	})

	DescribeTable("go with an object that is deleted while one is being created",
		func(disturb func(c *cluster)) {
			play(func(f *federation) {
				c := f.clusters[0]
				Expect(c.core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
				disturb(c)
				f.start()
				f.create(Federated(1, 10, template("one")))
				time.Sleep(time.Second)
				f.remove("shop")
				f.settle()
				Expect(c.Get(deploymentGVR, ns, "shop")).To(BeNil())
				Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
			}, "c1")
		},
		Entry("which takes a while", func(c *cluster) {
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Verb == "create" && r.Resource == "deployments" {
					return 8 * time.Second, 0
				}
				return 0, 0
			})
		}),
		Entry("which is not visible for a minute", func(c *cluster) {
			c.Lag("deployments", sim.Constantly(time.Minute), "federatedhpa")
		}),
		Entry("whose answer is lost and which is not visible yet", func(c *cluster) {
			c.Lag("deployments", sim.Constantly(time.Minute), "federatedhpa")
			c.AfterWrite(func(w sim.Write) error {
				if w.Verb == "create" && w.Resource == "deployments" {
					return apierrors.NewInternalError(errors.New("lost"))
				}
				return nil
			})
		}),
	)

	It("stay where another client has removed the autoscaler, while the controller starts and another cluster has yet to answer", func() {
		play(func(f *federation) {
			for _, c := range f.clusters {
				Expect(c.core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			}
			p := f.start()
			f.create(Federated(2, 10, template("one")))
			f.settle()
			before := f.clusters[0].deployment("shop").UID
			p.Crash()
			Expect(f.clusters[0].core.AutoscalingV2().HorizontalPodAutoscalers(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.hang("c2")
			p.Restart()
			time.Sleep(time.Minute)
			f.hang("")
			f.settle()
			Expect(f.clusters[0].deployment("shop").UID).To(Equal(before))
			Expect(f.bounds("shop")).To(Equal("1..5/1..5"))
		}, "c1", "c2")
	})

	It("go with the object", func() {
		play(func(f *federation) {
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.start()
			f.create(Federated(1, 10, template("one")))
			f.settle()
			f.remove("shop")
			f.settle()
			Expect(f.clusters[0].Get(deploymentGVR, ns, "shop")).To(BeNil())
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1")
	})
})

// withMetric is an external metric of so much per replica.
func withMetric(value string) func(*Spec) {
	return func(s *Spec) {
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
	GinkgoHelper()
	return world.Stored[appsv1.Deployment](c, deploymentGVR, ns, name)
}

func (c *cluster) replicas(name string) int32 { return *c.deployment(name).Spec.Replicas }

func (c *cluster) image(name string) string {
	for _, container := range c.deployment(name).Spec.Template.Spec.Containers {
		return container.Image
	}
	return ""
}

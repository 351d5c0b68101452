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
	"k8s.io/utils/ptr"

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

var _ = Describe("A workload that was deleted after it ran", func() {
	It("gives its share to others, and gets it back when it is made again", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20, func(s *Spec) { Rebalance(s).StartTimeoutSeconds = ptr.To[int32](300) }))
			f.loads("shop", 9, 15)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("10/10"))
			Expect(f.clusters[0].core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Used NoWorkload"))
			Expect(f.clusters[1].replicas("shop")).To(BeEquivalentTo(15), f.maxima("shop"))
			f.clusters[0].deploy("shop")
			f.loads("shop", 9, 5)
			f.settle()
			Expect(f.clusters[0].replicas("shop")).To(BeEquivalentTo(9), f.maxima("shop"))
		}, "c1", "c2")
	})
})

var _ = Describe("A cluster that is stuck", func() {
	It("stays so, and others keep its share, when the controller starts anew and reads its workloads last", func() {
		play(func(f *federation) {
			p := f.start()
			f.create(Federated(2, 20, func(s *Spec) { Rebalance(s).StartTimeoutSeconds = ptr.To[int32](300) }))
			f.clusters[0].set(func(c *cluster) { c.capacity = 4 })
			f.loads("shop", 10, 30)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("5/15"))
			Expect(f.state("shop", "c1")).To(Equal("Used Stuck"))
			f.loads("shop", 10, 12)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("5/15"), "c1 cannot use more")
			since := f.object("shop").Status.Clusters[0].NotReadySince
			f.clusters[0].LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Verb == "list" && r.Resource == "deployments" {
					return 5 * time.Second, 0
				}
				return 0, 0
			})
			p.Crash()
			p.Restart()
			for range 30 {
				time.Sleep(time.Second)
				Expect(f.maxima("shop")).To(Equal("5/15"))
			}
			f.settle()
			Expect(f.object("shop").Status.Clusters[0].NotReadySince).To(Equal(since))
			Expect(f.maxima("shop")).To(Equal("5/15"))
		}, "c1", "c2")
	})

	It("is not one whose replicas had just been requested when it got out of reach", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20, func(s *Spec) { Rebalance(s).StartTimeoutSeconds = ptr.To[int32](300) }))
			f.loads("shop", 5, 5)
			f.settle()
			f.clusters[0].set(func(c *cluster) { c.capacity = 5 }) // as while its API server does not answer
			f.loads("shop", 9, 5)
			time.Sleep(time.Minute)
			f.clusters[0].Down(true, "federatedhpa")
			time.Sleep(20 * time.Minute)
			f.loads("shop", 9, 18)
			f.clusters[0].Down(false, "federatedhpa")
			time.Sleep(time.Minute)
			f.clusters[0].set(func(c *cluster) { c.capacity = 1000 })
			for range 10 {
				time.Sleep(time.Minute)
				Expect(f.clusters[0].replicas("shop")).To(BeEquivalentTo(9), f.maxima("shop"))
			}
		}, "c1", "c2")
	})
})

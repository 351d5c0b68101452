// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("Clusters that come and go", func() {
	It("join, and leave when they are selected no more, and the others take over", func() {
		play(func(f *federation) {
			f.register("c1", "c2")
			f.start()
			f.create(Federated(2, 12))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..6/1..6/-"))
			f.register("c1", "c2", "c3")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("4/4/4"))
			f.change("shop", func(s *Spec) {
				s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"c2"}}}}
			})
			f.settle()
			Expect(f.maxima("shop")).To(Equal("6/-/5"), "what runs in c2 without an autoscaler counts")
			Expect(f.events()).To(ContainElement("Left"))
		}, "c1", "c2", "c3")
	})

	It("keep their share while they are out of reach, and are not touched", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(3, 30))
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
			f.create(Federated(3, 30, func(s *Spec) {
				s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](600)}
			}))
			f.settle()
			f.loads("shop", 40, 2, 9)
			f.clusters[2].Down(true, "federatedhpa")
			time.Sleep(5 * time.Minute)
			Expect(f.maxima("shop")).To(Equal("17/3/10"))
			f.settle()
			Expect(f.maxima("shop")).To(Equal("27/3/10"))
			Expect(f.condition("shop", "OverCommitted")).To(Equal("True MaximaExceedMaxReplicas"))
			f.clusters[2].Down(false, "federatedhpa")
			f.settle()
			Expect(f.condition("shop", "OverCommitted")).To(Equal("False Within"))
			Expect(f.object("shop").Status.MaxReplicas).To(BeEquivalentTo(30))
		}, "c1", "c2", "c3")
	})

	It("keep lending it, and others keep what they run, if the controller starts anew or gets another access meanwhile", func() {
		play(func(f *federation) {
			p := f.start()
			f.create(Federated(3, 30, func(s *Spec) {
				s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](86400)}
			}))
			f.settle()
			f.loads("shop", 40, 2, 9)
			f.clusters[2].Silence(true, "federatedhpa")
			time.Sleep(25 * time.Hour)
			Expect(f.maxima("shop")).To(Equal("27/3/10"))
			since := f.object("shop").Status.Clusters[2].UnreachableSince
			for _, again := range []func(){func() { p.Crash(); p.Restart() }, f.rotate} {
				again()
				for range 20 {
					time.Sleep(time.Second)
					Expect(f.maxima("shop")).To(Equal("27/3/10"))
				}
				time.Sleep(time.Hour)
				Expect(f.maxima("shop")).To(Equal("27/3/10"))
				Expect(f.object("shop").Status.Clusters[2].UnreachableSince).To(Equal(since))
			}
		}, "c1", "c2", "c3")
	})

	It("keep their share though the registry has lost them, until they are given up", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(3, 30))
			f.settle()
			f.register("c1", "c2")
			f.settle()
			Expect(f.maxima("shop")).To(Equal("10/10/10"))
			Expect(f.state("shop", "c3")).To(Equal("Unreachable NotRegistered"))
			f.change("shop", func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c3"}} })
			f.settle()
			Expect(f.maxima("shop")).To(Equal("15/15/10"))
			Expect(f.state("shop", "c3")).To(Equal("absent"))
		}, "c1", "c2", "c3")
	})

	It("join when those before them are full (use case 3), and leave again", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(1, 10, Strict, OnDemand, Prefer("cloud", Tier(1)), func(s *Spec) { Rebalance(s).StartTimeoutSeconds = ptr.To[int32](60) }))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/1..10"))
			f.member("site").set(func(c *cluster) { c.capacity = 4 })
			f.loads("shop", 3, 9)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("5/5"), "what the site cannot run goes to the cloud")
			Expect(f.condition("shop", "MinExceeded")).To(Equal("True MinimaExceedMinReplicas"))
			f.loads("shop", 0, 3)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/1..9"), "the cloud keeps its workload with one replica")
		}, "cloud", "site")
	})
})

var _ = Describe("Deletion", func() {
	It("removes what was made, and waits for clusters out of reach", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 10))
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
			f.create(Federated(2, 10, func(s *Spec) { s.DeletionPolicy = v1alpha1.Orphan }))
			f.settle()
			f.clusters[1].Down(true, "federatedhpa")
			f.remove("shop")
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..5/1..5"))
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
		}, "c1", "c2")
	})
})

var _ = Describe("A cluster that hangs", func() {
	It("delays no other", func() {
		usual, hanging := follow(false), follow(true)
		Expect(hanging).To(BeNumerically("<=", usual+2*time.Second), "the orders to it are under way for 10 seconds")
	})
})

// follow is how long two clusters take to begin to follow their load, beside a third that may hang.
func follow(hangs bool) (took time.Duration) {
	play(func(f *federation) {
		f.start()
		f.create(Federated(3, 30))
		f.loads("shop", 10, 1, 1)
		f.settle()
		if hangs {
			f.clusters[2].LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "federatedhpa" {
					return 24 * time.Hour, 0
				}
				return 0, 0
			})
		}
		f.loads("shop", 40, 1, 1) // so that both of the others have to give
		for f.clusters[0].hpa("shop").Status.Conditions[1].Reason != "TooManyReplicas" {
			time.Sleep(10 * time.Millisecond)
		}
		begun := time.Now()
		for f.clusters[0].hpa("shop").Spec.MaxReplicas <= 10 {
			time.Sleep(10 * time.Millisecond)
		}
		took = time.Since(begun)
		f.clusters[2].LatencyOf(nil)
	}, "c1", "c2", "c3")
	return took
}

var _ = Describe("A cluster where the hub may not list the workloads", func() {
	It("is not used, also while the hub asks again over a slow link", func() {
		play(func(f *federation) {
			f.clusters[0].Trouble("deployments", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "federatedhpa")
			f.clusters[0].LatencyOf(func(r sim.Request) (before, after time.Duration) { return 0, 100 * time.Millisecond })
			f.start()
			f.create(Federated(1, 10))
			time.Sleep(time.Hour)
			Expect(f.state("shop", "c1")).To(Equal("Refused ListRefused"))
			Expect(f.bounds("shop")).To(Equal("-/1..10"))
			Expect(f.events()).NotTo(ContainElement("Left"))
			f.clusters[0].Trouble("deployments", sim.Trouble{}, "federatedhpa")
			time.Sleep(3 * time.Minute)
			Expect(f.state("shop", "c1")).NotTo(HavePrefix("Refused"))
		}, "c1", "c2")
	})
})

var _ = Describe("A cluster that does not tell its kinds when it is asked first", func() {
	It("is asked again, and what it runs counts then", func() {
		play(func(f *federation) {
			f.onRequest(func(r *http.Request) error {
				if r.URL.Path == "/apis/apps/v1" {
					return errors.New("connection reset by peer")
				}
				return nil
			})
			f.start()
			f.create(Federated(1, 10))
			time.Sleep(time.Minute)
			Expect(f.ledgerEntry("shop", "c1").ReadyReplicas).To(BeZero())
			f.onRequest(func(*http.Request) error { return nil })
			f.settle()
			Expect(f.ledgerEntry("shop", "c1").ReadyReplicas).NotTo(BeZero())
		}, "c1")
	})
})

var _ = Describe("A cluster where the hub may not list autoscalers", func() {
	It("is said to refuse that, and is used once it allows it", func() {
		play(func(f *federation) {
			f.clusters[0].Trouble("horizontalpodautoscalers", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "federatedhpa")
			f.start()
			f.create(Federated(1, 10))
			time.Sleep(time.Hour)
			Expect(f.state("shop", "c1")).To(Equal("Unreachable ListRefused"))
			f.clusters[0].Trouble("horizontalpodautoscalers", sim.Trouble{}, "federatedhpa")
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Used"))
		}, "c1", "c2")
	})
})

var _ = Describe("An object that is created again under its name", func() {
	It("waits for no retry of the old one, also where the hub sees no moment without it", func() {
		play(func(f *federation) {
			f.clusters[0].refuseAbove(10)
			f.Lag("federatedhorizontalpodautoscalers", sim.Constantly(time.Second), "federatedhpa")
			f.start()
			f.create(Federated(1, 20))
			time.Sleep(10 * time.Minute)
			Expect(f.state("shop", "c1")).To(Equal("Refused RefusedInvalid"))
			f.remove("shop")
			for f.Get(objectGVR, ns, "shop") != nil {
				time.Sleep(10 * time.Millisecond)
			}
			f.Down(true, "federatedhpa")
			f.create(Federated(1, 10))
			f.Compact()
			f.Down(false, "federatedhpa")
			time.Sleep(time.Minute)
			Expect(f.bounds("shop")).To(Equal("1..10"))
		}, "c1")
	})
})

var _ = Describe("An object that became invalid before it is deleted", func() {
	DescribeTable("removes its autoscalers and workloads from clusters",
		func(reason string, invalidate func(*Spec)) {
			play(func(f *federation) {
				for _, c := range f.clusters {
					Expect(c.core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
				}
				f.start()
				f.create(Federated(2, 10, func(s *Spec) {
					s.Placement = &v1alpha1.Placement{Mode: v1alpha1.Template, Template: &runtime.RawExtension{Raw: []byte(
						`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop"},"spec":{"selector":{"matchLabels":{"app":"shop"}}}}`)}}
				}))
				f.settle()
				Expect(f.bounds("shop")).To(Equal("1..5/1..5"))
				f.change("shop", invalidate)
				f.settle()
				Expect(f.condition("shop", "Ready")).To(Equal("False " + reason))
				f.remove("shop")
				f.settle()
				Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
				for _, c := range f.clusters {
					Expect(c.Get(hpaGVR, ns, "shop")).To(BeNil())
					Expect(c.Get(deploymentGVR, ns, "shop")).To(BeNil())
				}
			}, "c1", "c2")
		},
		Entry("by a metric without a type", "InvalidTemplate", func(s *Spec) { s.Metrics = []runtime.RawExtension{{Raw: []byte(`{"external":{}}`)}} }),
		Entry("by more text than is read", "TooLarge", func(s *Spec) {
			s.Behavior = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", 64<<10))}
		}),
		Entry("by a selector that is none", "InvalidSelector", func(s *Spec) {
			s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
		}),
	)
})

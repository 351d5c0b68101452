// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("The controller", func() {
	It("makes autoscalers in all clusters, moves maxima to where load is, and then rests", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(3, 30))
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

	It("moves minima to where load is at once, a cooldown and two looks of the autoscalers after it came", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(9, 30, Minima))
			f.loads("shop", 3, 3, 3)
			time.Sleep(2 * time.Second)
			Expect(f.bounds("shop")).To(Equal("3..10/3..10/3..10"))
			f.loads("shop", 8, 1, 3)
			time.Sleep(2*time.Minute + 2*lookPeriod)
			Expect(f.bounds("shop")).To(Equal("5..10/1..10/3..10"), "by way of 4..10/2..10 it would take another cooldown")
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
			maxima := map[string][]int64{}
			for _, c := range f.clusters {
				c.Lag("horizontalpodautoscalers", sim.Constantly(20*time.Second), "federatedhpa")
				c.AfterWrite(func(w sim.Write) error {
					if w.User == "federatedhpa" && w.Resource == "horizontalpodautoscalers" {
						bound, _, err := unstructured.NestedInt64(w.Object, "spec", "maxReplicas")
						Expect(err).NotTo(HaveOccurred())
						Expect(w.NoOp()).To(BeFalse(), "%s: %s of what is there", c.name, w.Verb)
						maxima[c.name] = append(maxima[c.name], bound)
					}
					return nil
				})
			}
			f.start()
			f.create(Federated(3, 30))
			f.settle()
			f.loads("shop", 25, 2, 2)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("24/3/3"))
			done := 0
			for _, w := range f.ours() {
				if strings.HasPrefix(w, "hub") && strings.HasSuffix(w, " shop") {
					done++
				}
			}
			Expect(tried).To(Equal(done), "a write that conflicts was decided on something old")
			// How many steps there are depends on which loads a look meets; their direction does not.
			for name, bounds := range maxima {
				Expect(slices.IsSorted(bounds) || slices.IsSortedFunc(bounds, func(a, b int64) int { return cmp.Compare(b, a) })).
					To(BeTrue(), "%s went back and forth: %v", name, bounds)
			}
			Expect(maxima).To(HaveLen(3))
		}, "c1", "c2", "c3")
	})

	It("repairs what another client changes", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20, withMetric("1")))
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
			f.create(Federated(2, 20, withMetric("0.5")))
			f.settle()
			before := len(f.ours())
			time.Sleep(2 * time.Hour)
			Expect(f.ours()[before:]).To(BeEmpty())
		}, "c1", "c2")
	})

	It("rests though a cluster drops a field of the template, as an API server does whose version has it disabled", func() {
		play(func(f *federation) {
			f.clusters[0].Admit(func(a sim.Admission) error {
				unstructured.RemoveNestedField(a.Object.Object, "spec", "behavior", "scaleUp", "tolerance")
				return nil
			})
			f.start()
			f.create(Federated(2, 20, func(s *Spec) {
				s.Behavior = &runtime.RawExtension{Raw: []byte(`{"scaleUp":{"stabilizationWindowSeconds":30,"tolerance":"0.05"}}`)}
			}))
			f.settle()
			f.calls.take()
			time.Sleep(time.Hour)
			Expect(f.calls.take()).NotTo(HaveKey("PATCH"))
			f.clusters[0].edit("shop", func(h *autoscalingv2.HorizontalPodAutoscaler) {
				*h.Spec.Behavior.ScaleUp.StabilizationWindowSeconds = 60
			})
			time.Sleep(time.Minute)
			Expect(*f.clusters[0].hpa("shop").Spec.Behavior.ScaleUp.StabilizationWindowSeconds).To(BeEquivalentTo(30))
		}, "c1", "c2")
	})

	It("keeps finalizers that other clients add at the same time", func() {
		play(func(f *federation) {
			f.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "federatedhpa" && r.Verb == "patch" && r.Resource == "federatedhorizontalpodautoscalers" {
					before = time.Second
				}
				return before, 0
			})
			f.start()
			f.create(Federated(1, 10))
			time.Sleep(500 * time.Millisecond)
			world.Change(f.objects(), "shop", func(o *v1alpha1.FederatedHorizontalPodAutoscaler) {
				o.Finalizers = append(o.Finalizers, "example.org/kept")
			})
			f.settle()
			Expect(f.object("shop").Finalizers).To(ConsistOf(Finalizer, "example.org/kept"))
		}, "c1")
	})

	It("writes nothing while paused", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20, func(s *Spec) { s.Paused = true }))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("-/-"))
			Expect(f.condition("shop", "Ready")).To(Equal("False Paused"))
			Expect(f.object("shop").Status.Clusters[0].MaxReplicas).To(BeEquivalentTo(10), "what would be done")
			f.change("shop", func(s *Spec) { s.Paused = false })
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10/1..10"))
		}, "c1", "c2")
	})
})

// example is one of the repository's, as written but for what it measures.
func example(name string) *v1alpha1.FederatedHorizontalPodAutoscaler {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", name))
	Expect(err).NotTo(HaveOccurred())
	o := &v1alpha1.FederatedHorizontalPodAutoscaler{}
	Expect(yaml.UnmarshalStrict(text, o)).To(Succeed())
	o.Namespace = ns
	withMetric("1")(&o.Spec)
	return o
}

// These are the numbers that docs/federation.md tells.
var _ = Describe("The examples", func() {
	It("even: maxima go where load is", func() {
		play(func(f *federation) {
			o := example("federated-even.yaml")
			o.Spec.ClusterSelector = nil
			f.start()
			f.create(o)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10/1..10/1..10"))
			f.loads("shop", 25, 2, 2)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..24/1..3/1..3"))
		}, "a", "b", "c")
	})

	It("outage: a share is lent after a day", func() {
		play(func(f *federation) {
			f.start()
			f.create(example("federated-outage.yaml"))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("2..20/2..20/2..20"))
			f.clusters[2].Down(true, "federatedhpa")
			f.loads("shop", 60, 3, 9)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("36/4/20"))
			Expect(f.condition("shop", "OverCommitted")).To(Equal("False Within"))
			time.Sleep(24 * time.Hour)
			Expect(f.maxima("shop")).To(Equal("56/4/20"))
			Expect(f.condition("shop", "OverCommitted")).To(Equal("True MaximaExceedMaxReplicas"))
			f.clusters[2].Down(false, "federatedhpa")
			f.settle()
			Expect(f.condition("shop", "OverCommitted")).To(Equal("False Within"))
			Expect(f.maxima("shop")).To(Equal("48/3/9"), "each of the others has what it runs")
		}, "a", "b", "c")
	})

	It("spill: the cloud has what the site cannot start, for as long as that is needed", func() {
		play(func(f *federation) {
			Expect(f.member("cloud").core.AppsV1().Deployments(ns).Delete(context.Background(), "shop", metav1.DeleteOptions{})).To(Succeed())
			f.start()
			f.create(example("federated-spill.yaml"))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..25/-"))
			f.member("site").set(func(c *cluster) { c.capacity = 18 })
			f.loads("shop", 30, 12)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..25/1..15"))
			Expect(f.member("cloud").replicas("shop")).To(BeEquivalentTo(12))
			f.loads("shop", 30, 20)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..19/1..21"), "the site has what it runs and one more")
			f.loads("shop", 10, 0)
			time.Sleep(20 * time.Minute)
			Expect(f.bounds("shop")).To(Equal("1..19/1..21"), "it is not quiet for long enough")
			time.Sleep(20 * time.Minute)
			Expect(f.bounds("shop")).To(Equal("1..25/-"))
			Expect(f.member("cloud").Get(deploymentGVR, ns, "shop")).To(BeNil())
		}, "site", "cloud")
	})
})

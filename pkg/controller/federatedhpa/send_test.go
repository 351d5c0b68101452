// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("A raise that is answered with a conflict", func() {
	It("counts until it is read that it had no effect", func() {
		play(func(f *federation) {
			f.guard(60, "shop")
			f.options.RequestTimeout = time.Minute // the others' autoscalers look meanwhile
			f.start()
			f.create(Federated(3, 30))
			f.settle()
			c := f.clusters[0]
			c.Lag("horizontalpodautoscalers", sim.Constantly(10*time.Minute), "federatedhpa")
			var met atomic.Bool
			c.AfterWrite(func(w sim.Write) error {
				if w.User == "federatedhpa" && w.Resource == "horizontalpodautoscalers" && !met.Swap(true) {
					return apierrors.NewConflict(autoscalingv2.Resource(w.Resource), w.Name, nil) // it was repeated on the way
				}
				return nil
			})
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "federatedhpa" && r.Verb == "get" && r.Resource == "horizontalpodautoscalers" && met.Load() {
					return time.Hour, 0
				}
				return 0, 0
			})
			// The cache of c1 does not show that it is limited, so the object is what moves.
			f.change("shop", func(s *Spec) { s.MaxReplicas = 60 })
			for !met.Load() {
				time.Sleep(time.Second)
			}
			// Now the others need more, and c1 does not.
			f.loads("shop", 0, 50, 50)
			time.Sleep(5 * time.Minute)
			Expect(f.sum("shop")).To(BeNumerically("<=", 60), f.maxima("shop"))
			c.LatencyOf(nil)
		}, "c1", "c2", "c3")
	})
})

var _ = Describe("A creation without an answer", func() {
	It("is settled in a cluster that allows no minimum of 0, so that a deleted object with AllowZero goes", func() {
		play(func(f *federation) {
			f.clusters[0].failOnce(apierrors.NewInternalError(errors.New("etcdserver: leader changed")))
			f.clusters[0].Admit(func(a sim.Admission) error {
				n, found, _ := unstructured.NestedInt64(a.Object.Object, "spec", "minReplicas")
				if a.Object.GetKind() == "HorizontalPodAutoscaler" && found && n < 1 {
					return apierrors.NewInvalid(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler").GroupKind(), "shop", nil)
				}
				return nil
			})
			f.start()
			f.create(Federated(0, 10, func(s *Spec) { s.MinPolicy = v1alpha1.AllowZero }))
			time.Sleep(time.Minute)
			Expect(f.state("shop", "c1")).To(Equal("Refused RefusedInvalid"))
			f.remove("shop")
			f.settle()
			Expect(f.Get(objectGVR, ns, "shop")).To(BeNil())
			Expect(f.bounds("shop")).To(Equal("-"))
		}, "c1")
	})
})

var _ = Describe("Two controllers at once", func() {
	It("never let the maxima pass the limit", func() {
		storm.Seeds(suite, 8, func(seed uint64) {
			f := newFederation(seed, "c1", "c2", "c3")
			defer f.End()
			f.guard(30, "shop")
			random := rand.New(rand.NewPCG(seed, 3))
			for _, user := range []string{"federatedhpa", "second"} {
				f.Lag("federatedhorizontalpodautoscalers", sim.Uniformly(seed, 0, 3*time.Second), user)
				f.FailWrites(0.1, sim.Either, user)
			}
			for i, c := range f.clusters {
				c.Lag("horizontalpodautoscalers", sim.Uniformly(seed+uint64(i), 0, 5*time.Second), "federatedhpa")
				c.FailWrites(0.2, sim.Either, "federatedhpa")
				c.Latency(time.Duration(random.IntN(400)) * time.Millisecond)
			}
			p, second := f.start(), f.Start("second", f.controller)
			f.create(Federated(3, 30))
			for range 20 {
				time.Sleep(time.Duration(random.IntN(100)) * time.Second)
				f.disturb(random, []*storm.Process{p, second}[random.IntN(2)])
			}
			second.Crash()
			f.FailWrites(0, sim.Either, "federatedhpa")
			for _, c := range f.clusters {
				c.Down(false, "federatedhpa")
				c.FailWrites(0, sim.Either, "federatedhpa")
			}
			f.settle()
			Expect(f.condition("shop", "Balanced")).To(Equal("True AtGoal"))
		})
	})
})

var _ = Describe("A lower maxReplicas", func() {
	lowered := func(f *federation) {
		f.change("shop", func(s *Spec) { s.MaxReplicas = 10 })
		for i := range 60 {
			time.Sleep(500 * time.Millisecond)
			Expect(f.bounds("shop")).NotTo(ContainSubstring("-"), "after %d half seconds", i)
			Expect(f.clusters[1].replicas("shop")).To(BeNumerically(">=", 3))
			world.Change(f.objects(), "shop", func(o *v1alpha1.FederatedHorizontalPodAutoscaler) { // so that the controller decides again
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, "example.org/note", fmt.Sprint(i))
			})
		}
		f.settle()
		Expect(f.maxima("shop")).To(Equal("4/3/3"))
	}
	begin := func(f *federation) {
		f.start()
		f.create(Federated(3, 30))
		f.loads("shop", 8, 8, 8)
		f.settle()
		Expect(f.maxima("shop")).To(Equal("10/10/10"))
	}

	It("costs no cluster its autoscaler because another one takes three seconds to answer", func() {
		play(func(f *federation) {
			begin(f)
			f.clusters[0].LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "federatedhpa" && r.Verb == "update" && r.Resource == "horizontalpodautoscalers" {
					return 3 * time.Second, 0
				}
				return 0, 0
			})
			lowered(f)
		}, "c1", "c2", "c3")
	})

	DescribeTable("costs no cluster its autoscaler because another one fails once", func(failure error) {
		play(func(f *federation) {
			begin(f)
			failed := f.clusters[0].failOnce(failure)
			lowered(f)
			Expect(failed.Load()).To(BeTrue())
		}, "c1", "c2", "c3")
	},
		Entry("with an error", apierrors.NewInternalError(errors.New("etcdserver: leader changed"))),
		Entry("without an answer", errors.New("connection reset by peer")),
	)

	It("costs no cluster its autoscaler because another one is read late when the controller starts", func() {
		play(func(f *federation) {
			p := f.start()
			f.create(Federated(3, 30))
			f.loads("shop", 8, 8, 8)
			f.settle()
			p.Crash()
			f.hang("c1")
			p.Restart()
			time.AfterFunc(3*time.Second, func() { f.hang("") })
			lowered(f)
		}, "c1", "c2", "c3")
	})
})

var _ = Describe("A cluster that had more when its backup was made", func() {
	It("costs no other one what it runs when it is restored", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(3, 30))
			f.loads("shop", 25, 2, 2)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("24/3/3"))
			old := f.clusters[0].backup()
			f.loads("shop", 2, 20, 2)
			f.settle()
			Expect(f.clusters[1].replicas("shop")).To(BeEquivalentTo(20))
			f.restore(f.clusters[0], old)
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				Expect(f.clusters[1].hpa("shop").Spec.MaxReplicas).To(BeNumerically(">=", 20), f.maxima("shop"))
			}
		}, "c1", "c2", "c3")
	})
})

var _ = Describe("A cluster that gives no answer to one write", func() {
	It("does not lend its share, where that is lent at once", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20, func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter} }))
			f.loads("shop", 5, 25)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("6/14"))
			failed := f.clusters[0].failOnce(errors.New("connection reset by peer"))
			f.clusters[0].edit("shop", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MaxReplicas = 5 })
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				Expect(f.sum("shop")).To(BeNumerically("<=", 20), f.maxima("shop"))
			}
			Expect(failed.Load()).To(BeTrue())
		}, "c1", "c2")
	})
})

var _ = Describe("A cluster that refuses connections for three seconds when the hub starts", func() {
	DescribeTable("does not lend its share", func(change func(*Spec)) {
		play(func(f *federation) {
			p := f.start()
			f.create(Federated(2, 20, change))
			f.loads("shop", 5, 25)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("6/14"))
			p.Crash()
			f.clusters[0].Down(true, "federatedhpa")
			p.Restart()
			time.AfterFunc(3*time.Second, func() { f.clusters[0].Down(false, "federatedhpa") })
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				Expect(f.sum("shop")).To(BeNumerically("<=", 20), f.maxima("shop"))
			}
		}, "c1", "c2")
	},
		Entry("where that is lent at once", func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter} }),
		Entry("where it is still listed as released", func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c1"}} }),
	)
})

// failOnce has a cluster answer the next write of an autoscaler with an error, before it takes effect. It returns whether
// that has happened.
func (c *cluster) failOnce(failure error) *atomic.Bool {
	failed := &atomic.Bool{}
	c.OnWrite(func(w sim.Write) error {
		if w.User == "federatedhpa" && w.Resource == "horizontalpodautoscalers" && !failed.Swap(true) {
			return failure
		}
		return nil
	})
	return failed
}

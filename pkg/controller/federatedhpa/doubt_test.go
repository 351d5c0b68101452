// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
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

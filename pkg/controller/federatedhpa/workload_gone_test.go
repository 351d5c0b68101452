// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
)

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

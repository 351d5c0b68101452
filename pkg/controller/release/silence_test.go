// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// atMax lets a pod wait while its pool is at max.
func (c *cluster) atMax() {
	c.grow("a", 1, 2, "1:1")
	c.Start("release", aware(usual))
	c.settle()
	c.create(fresh(1, "picky", 1000)...)
	c.settle()
	Expect(c.writes(0)).To(BeEmpty())
}

func (c *cluster) delete(pod string) {
	GinkgoHelper()
	Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), pod, metav1.DeleteOptions{})).To(Succeed())
}

func (c *cluster) bounds(bounds string) {
	GinkgoHelper()
	c.patch("a", `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.BoundsAnnotation, bounds)
}

var _ = Describe("While a cluster does not answer", func() {
	It("releases nothing for pods that may be gone, and looks again when the cluster answers", func() {
		playApart(func(c *cluster) {
			c.atMax()
			c.Target.Silence(true, "release")
			c.delete("picky-0")
			time.Sleep(2 * reachability.SilentAfter)
			c.bounds("1:4")
			time.Sleep(10 * time.Minute)
			Expect(c.writes(0)).To(BeEmpty())
			c.Target.Silence(false, "release")
			c.settle()
			Expect(c.writes(0)).To(BeEmpty(), "the pod was gone all the time")
		})
	})

	It("serves pods that have waited all the time once the cluster answers, without another event", func() {
		playApart(func(c *cluster) {
			c.atMax()
			c.Target.Silence(true, "release")
			time.Sleep(2 * reachability.SilentAfter)
			c.bounds("1:4")
			time.Sleep(10 * time.Minute)
			Expect(c.writes(0)).To(BeEmpty())
			c.Target.Silence(false, "release")
			time.Sleep(3 * time.Minute)
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	DescribeTable("does not count towards doubt, since room may be taken unseen", func(before time.Duration, expected string) {
		playApart(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", aware(usual))
			c.settle()
			c.create(fresh(1, "picky", 1000)...)
			time.Sleep(before)
			Expect(c.replicas()).To(Equal("a=2"))
			c.Target.Silence(true, "release")
			c.create(fresh(1, "q", 4000)...)
			time.Sleep(10 * time.Minute)
			c.Target.Silence(false, "release")
			c.settle()
			Expect(c.replicas()).To(Equal(expected))
		})
	},
		Entry("of a pod that had waited for a moment", 10*time.Second, "a=3"),
		Entry("but does not end it either", time.Minute, "a=2"),
	)

	It("decides with the present bounds once the control cluster answers", func() {
		playApart(func(c *cluster) {
			c.grow("a", 1, 3, "1:4")
			c.Start("release", aware(usual))
			c.settle()
			c.Control.Silence(true, "release")
			c.bounds("1:2")
			time.Sleep(2 * reachability.SilentAfter)
			c.create(fresh(3, "p", 4000)...)
			time.Sleep(10 * time.Minute)
			Expect(c.writes(0)).To(BeEmpty())
			c.Control.Silence(false, "release")
			time.Sleep(3 * time.Minute)
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})
})

var _ = Describe("Storms over two clusters", func() {
	It("leave no pod behind that could be helped, whichever cluster is cut off", func() {
		storm.Seeds(suite, 20, func(seed uint64) {
			helped(rand.New(rand.NewPCG(seed, 3)), seed, aware(usual), 26, 20)
		})
	})
})

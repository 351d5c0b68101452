// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
)

// countingClock counts how often the time is read, which each sync does.
type countingClock struct {
	clock.RealClock
	reads *atomic.Int64
}

func (c countingClock) Now() time.Time {
	c.reads.Add(1)
	return c.RealClock.Now()
}

var _ = Describe("A paused Balancer", func() {
	It("rests though a target that refused to be scaled is due again, and tries it once it continues", func() {
		play(func(c *cluster) {
			c.deploy("a", 4)
			c.deploy("b", 4)
			c.balance("shop", 8, builders.Even(), "a", "b")
			var reads atomic.Int64
			c.Start("balancer", controller(Options{Clock: countingClock{reads: &reads}}))
			c.settle()
			var denied atomic.Bool
			denied.Store(true)
			c.OnWrite(func(w sim.Write) error {
				if denied.Load() && w.Name == "b" && w.Subresource == "scale" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "b", nil)
				}
				return nil
			})
			pause := func(paused bool) { c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Paused = paused }) }
			c.scale("shop", 4)
			time.Sleep(time.Second)
			pause(true)
			time.Sleep(59 * time.Second)
			reads.Store(0)
			time.Sleep(10 * time.Second)
			Expect(reads.Load()).To(BeNumerically("<", 100))
			denied.Store(false)
			pause(false)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("2/2"))
		})
	})
})

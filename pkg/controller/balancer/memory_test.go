// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = It("asks targets for nothing that rests on a memory which cannot be written", func() {
	play(func(c *cluster) {
		c.set(func() { c.out["a"] = true })
		c.deploy("a", 6)
		c.deploy("b", 10)
		c.deploy("c", 3)
		c.balance("shop", 13, builders.Shares(5, 3, 2), "a", "b", "c")
		time.Sleep(2 * time.Minute)
		b, since := c.balancer("shop"), &metav1.Time{Time: time.Now().Add(-time.Minute)}
		b.Status.Targets = []v1alpha1.TargetStatus{
			{Name: "a", Replicas: 6, BlockedSince: since, Blocks: 1}, {Name: "b", Replicas: 10}, {Name: "c", Replicas: 3, BlockedSince: since, Blocks: 1},
		}
		_, err := c.ours.BalancerV1alpha1().Balancers(ns).UpdateStatus(context.Background(), b, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		var full atomic.Bool
		full.Store(true)
		c.OnWrite(func(w sim.Write) error {
			if w.Resource == "balancers" && full.Load() {
				return apierrors.NewInternalError(errors.New("no space left on device"))
			}
			return nil
		})
		c.Start("balancer", controller(Options{}))
		time.Sleep(10 * time.Minute)
		Expect(c.writes(0)).To(BeEmpty())

		full.Store(false)
		time.Sleep(10 * time.Minute)
		Expect(c.sizes("a", "b", "c")).To(Equal("6/8/5"))
	})
})

// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("What is created and deleted again", func() {
	// Half of the workloads may not be scaled, and a quarter of the Balancers name a version that there never was.
	It("leaves nothing behind: Balancers and their workloads", Label("soak"), func() {
		const each = 100
		rounds := storm.Soak(2_000, 2*each)
		storm.Bubble(suite, func() {
			c := still(storm.NewWorld(sim.Options{Seed: 1, Resources: served}))
			defer c.End()
			var held *Controller
			c.Start("balancer", func(ctx context.Context, config *rest.Config) error {
				config.Wrap(forbidden("odd/scale"))
				return watched(Options{}, func(it *Controller) { held = it })(ctx, config)
			})
			c.settle()
			for round := range rounds {
				for i := range each {
					name := fmt.Sprintf("it-%d-%d-%s", round, i, []string{"even", "odd"}[i%2])
					c.deploy(name, 1)
					b := object(name, 3, builders.Even(), name)
					b.Spec.Policy.Fallback = nil
					if i%4 == 0 {
						b.Spec.Targets[0].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: fmt.Sprintf("apps/v%d%d", round, i), Kind: "Deployment", Name: name}
					}
					c.create(b)
				}
				time.Sleep(50 * time.Second)
				ctx := context.Background()
				Expect(held.Held()).To(BeNumerically(">=", 50), "there is something to forget")
				for _, err := range []error{
					c.ours.BalancerV1alpha1().Balancers(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
					c.user.AppsV1().Deployments(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
				} {
					Expect(err).NotTo(HaveOccurred())
				}
				time.Sleep(time.Minute)
				Expect(held.Held()).To(BeZero())
			}
			Expect(held.Kinds()).To(BeNumerically("<=", 256))
		})
	})
})

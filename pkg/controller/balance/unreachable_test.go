// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan/plantest"
)

var _ = Describe("While the target cluster does not answer", func() {
	It("the controller notices by itself, and goes on when it is back", func() {
		play(func(c *cluster) {
			var cut atomic.Bool
			target := reachability.New("target", func(context.Context) (string, error) {
				if cut.Load() {
					return "", errors.New("cut off")
				}
				return "", nil
			}, reachability.Options{})
			c.Start("probe", func(ctx context.Context, _ *rest.Config) error { return target.Run(ctx) })
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", reaching(target))
			c.settle()
			cut.Store(true)
			time.Sleep(time.Minute)
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("False " + plan.ReasonUnreachable))
			c.scale("a", 8)
			time.Sleep(time.Minute)
			Expect(c.sizes(abc...)).To(Equal("8/2/2"))
			cut.Store(false)
			time.Sleep(time.Minute)
			c.scale("b", 5)
			time.Sleep(10 * time.Minute)
			Expect(c.sizes(abc...)).To(Equal("8/4/3"))
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("True Even"))
		})
	})
})

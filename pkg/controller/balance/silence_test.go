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
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
)

var _ = Describe("While the target cluster does not answer", func() {
	silent := func(members ...Member) View {
		v := view(members...)
		v.Unreachable = "target cluster: the API server has not answered for 30s"
		return v
	}

	It("growth is acted on where it is asked for, and the condition says why", func() {
		p := NewPlan(silent(member("a", 6, scaleUp, applied(2)), member("b", 2, scaleUp, applied(2))))
		Expect(writes(p)).To(Equal("a: applied-replicas=6"))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False " + ReasonUnreachable))
		Expect(ReasonUnreachable).To(Equal(reachability.Reason))
	})

	DescribeTable("no machine moves", func(members ...Member) {
		v := silent(members...)
		Expect(writes(NewPlan(v))).To(BeEmpty())
		v.Unreachable = ""
		Expect(writes(NewPlan(v))).NotTo(BeEmpty(), "it would without the silence")
	},
		Entry("that was not promised", zones(continuous, 4, 1)[0], zones(continuous, 4, 1)[1]),
		Entry("in whose place one is in reserve",
			zones(continuous, 4, 1)[0],
			member("b", 1, continuous, applied(1), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1}))),
		Entry("that is promised",
			member("a", 4, continuous, applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			member("b", 1, continuous, applied(1), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1}))),
		Entry("whose replica has arrived",
			member("a", 4, continuous, applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			member("b", 2, continuous, applied(2), move(v1alpha1.Move{ID: "1", From: "a", Taken: 1}))),
	)

	It("growth that was promised to others arrives", func() {
		w := newWorld(zones(scaleUp, 2, 2, 2)...)
		w.ask("a", 8)
		w.carry()
		w.Unreachable = "silent"
		w.settle()
		Expect(w.replicas()).To(Equal("4/4/4"))
	})

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
			c.deployAll([]change{scaleUp}, 2, 2, 2)
			c.Start("balance", reaching(target))
			c.settle()
			cut.Store(true)
			time.Sleep(time.Minute)
			Expect(c.condition("a", ConditionBalanced)).To(Equal("False " + ReasonUnreachable))
			c.scale("a", 8)
			time.Sleep(time.Minute)
			Expect(c.sizes(abc...)).To(Equal("8/2/2"))
			cut.Store(false)
			time.Sleep(time.Minute)
			c.scale("b", 5)
			time.Sleep(10 * time.Minute)
			Expect(c.sizes(abc...)).To(Equal("8/4/3"))
			Expect(c.condition("a", ConditionBalanced)).To(Equal("True Even"))
		})
	})
})

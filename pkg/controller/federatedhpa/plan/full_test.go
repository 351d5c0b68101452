// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// growing is a cluster whose autoscaler has just asked for more replicas and has yet to see them.
func growing(c *plan.Cluster) { c.Local.Current-- }

// The original design moves maximums once CurrentReplicas == DesiredReplicas == MaxReplicas.
var _ = Describe("A cluster that runs its whole maximum", func() {
	DescribeTable("gets more, before its metrics ask for it",
		func(v plan.View, expected string) {
			stuck["stuck"] = true
			Expect(aims(plan.New(v))).To(Equal(expected))
			Expect(carried(&v)).To(BeNumerically("<=", 3))
			Expect(aims(plan.New(v))).To(Equal(expected), "once it has been carried out")
		},
		Entry("from a cluster that needs less", view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 1)), "6/6"),
		Entry("and does not take the headroom of the giver", view(Federated(2, 12, headroom(3)), has("a", 1, 4, 4), has("b", 1, 8, 4)), "5/7"),
		Entry("and one at least, where no headroom is asked for", view(Federated(2, 12, headroom(0), Prefer("a", Tier(1))), has("a", 1, 4, 4), has("b", 1, 8, 1)), "5/7"),
		Entry("from a cluster that cannot use it", isStuck(view(Federated(2, 12), has("a", 1, 2, 2), has("stuck", 1, 10, 10, readyCondition(4)))), "7/5"),
		Entry("up to its preference", view(Federated(2, 12, Prefer("a", AtMost(5))), has("a", 1, 4, 4), has("b", 1, 8, 1)), "5/7"),
		Entry("like others that run theirs", view(Federated(3, 12), has("a", 1, 2, 2), has("b", 1, 2, 2), has("c", 1, 8, 1)), "4/4/4"),
		Entry("after what metrics ask for elsewhere", view(Federated(3, 12), has("a", 1, 2, 2), has("b", 1, 2, 2, wants(9)), has("c", 1, 8, 1)), "3/7/2"),
	)

	DescribeTable("gets nothing",
		func(v plan.View) {
			p := plan.New(v)
			Expect(p.Orders).To(BeEmpty())
			Expect(p.Missing).To(BeZero())
		},
		Entry("if all run theirs", view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 8))),
		Entry("if the other one keeps headroom only", view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 7))),
		Entry("if the others keep headroom only, whatever they wish", view(Federated(3, 20, headroom(5)), has("a", 1, 4, 4), has("b", 1, 8, 4), has("c", 1, 8, 4))),
		Entry("if its minimum makes it run them", view(Federated(5, 12), has("a", 4, 4, 4, wantsLess(2)), has("b", 1, 8, 1))),
		Entry("if it has as much as it may have", view(Federated(2, 12, Prefer("a", AtMost(4))), has("a", 1, 4, 4), has("b", 1, 8, 1))),
		Entry("if it does not scale", view(Federated(2, 12), has("a", 1, 4, 4, inactive), has("b", 1, 8, 1))),
		Entry("if its workload is gone", view(Federated(2, 12), has("a", 1, 4, 4, deleted), has("b", 1, 8, 1))),
		Entry("if it is stuck itself", isStuck(view(Federated(2, 12), has("stuck", 1, 4, 4, readyCondition(2)), has("b", 1, 8, 1)))),
		Entry("if it has yet to run them", view(Federated(2, 12), has("a", 1, 4, 4, growing), has("b", 1, 8, 1))),
		Entry("if it has not seen its new maximum", view(Federated(2, 12), has("a", 1, 4, 3), has("b", 1, 8, 1))),
		Entry("until the giver has cooled down", moved(view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 1)), "b", time.Minute)),
	)

	It("is looked at again once the giver has cooled down", func() {
		v := moved(view(Federated(2, 12), has("a", 1, 4, 4), has("b", 1, 8, 1)), "b", time.Minute)
		Expect(plan.New(v).Again).To(Equal(time.Minute))
	})

	It("does not make another cluster join", func() {
		v := view(Federated(1, 10, Strict, OnDemand, Prefer("a", AtMost(6))), has("a", 1, 6, 6), none("b"))
		Expect(aims(plan.New(v))).To(Equal("6/-"))
	})

	It("leaves, though it runs its whole maximum of one", func() {
		v := view(Federated(1, 10, Strict, OnDemand), has("a", 1, 9, 3), has("b", 1, 1, 1))
		entry(&v, "b").OnDemand, entry(&v, "b").QuietSince = true, ago(time.Hour)
		Expect(orders(plan.New(v))).To(Equal([]string{"b gone"}))
	})

	It("swaps nothing with another one that does, whatever their tiers and weights", func() {
		for _, prefer := range []func(*v1alpha1.ClusterPreference){Tier(1), Weight(9), func(p *v1alpha1.ClusterPreference) { p.MinReplicas = ptr.To[int32](2) }} {
			v := view(Federated(3, 9, Prefer("b", prefer)), has("a", 1, 4, 4), has("b", 2, 5, 5))
			Expect(carried(&v)).To(BeZero())
			Expect(aims(plan.New(v))).To(Equal("4/5"))
		}
	})
})

func headroom(n int32) func(*Spec) { return func(s *Spec) { Rebalance(s).Headroom = ptr.To(n) } }

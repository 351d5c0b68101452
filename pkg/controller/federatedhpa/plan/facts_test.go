// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// The numbers of federation v1's tests, where they are behaviours and not its step by step method.
var _ = Describe("The facts of the first federation", func() {
	DescribeTable("maxima",
		func(v plan.View, expected string) {
			Expect(aims(plan.New(v))).To(Equal(expected))
			carried(&v)
			Expect(aims(plan.New(v))).To(Equal(expected), "once it has been carried out")
			Expect(plan.New(v).Orders).To(BeEmpty())
		},
		Entry("F1: two new clusters share all", view(Federated(1, 10), none("c1"), none("c2")), "5/5"),
		Entry("F2: one that joins gets what an idle one has to spare", view(Federated(1, 10), has("c1", 1, 10, 0), none("c2")), "5/5"),
		Entry("F2: a busy one keeps what it runs", view(Federated(1, 10), has("c1", 1, 10, 9), none("c2")), "9/1"),
		Entry("F2: nothing is left, so it waits", view(Federated(1, 10), has("c1", 1, 10, 10), none("c2")), "10/-"),
		Entry("F3: demand of 2", view(Federated(1, 10), has("c1", 1, 7, 5), has("c2", 1, 1, 1, wants(2)), has("c3", 1, 2, 1)), "6/2/2"),
		Entry("F3: demand of 3", view(Federated(1, 10), has("c1", 1, 7, 5), has("c2", 1, 1, 1, wants(3)), has("c3", 1, 2, 1)), "5/3/2"),
		Entry("F4: nothing to give, nothing moves", view(Federated(1, 10), has("c1", 1, 9, 9, wants(12)), has("c2", 1, 1, 1, wants(2))), "9/1"),
		Entry("F6: no cluster is limited", view(Federated(4, 10), has("c1", 3, 6, 4), has("c2", 1, 4, 3)), "6/4"),
		Entry("F7: a raised maximum is handed out", view(Federated(4, 14), has("c1", 2, 5, 0), has("c2", 2, 5, 0)), "7/7"),
		Entry("F8: a lowered maximum is taken back", view(Federated(3, 8), has("c1", 2, 8, 0), has("c2", 1, 8, 0)), "4/4"),
	)

	It("F5: a minimum moves to where it is exceeded", func() {
		v := view(Federated(4, 10, Minima), has("c1", 3, 6, 3, wantsLess(2)), has("c2", 1, 4, 3))
		Expect(least(plan.New(v))).To(Equal("2/2"))
		Expect(orders(plan.New(v))).To(Equal([]string{"c2 2..4"}), "the receiver first")
		carried(&v)
		Expect(least(plan.New(v))).To(Equal("2/2"))
		Expect(aims(plan.New(v))).To(Equal("6/4"))
	})

	It("F6: no minimum moves where no cluster wants less", func() {
		v := view(Federated(4, 10, Minima), has("c1", 3, 6, 4), has("c2", 1, 4, 3))
		Expect(plan.New(v).Orders).To(BeEmpty())
	})

	DescribeTable("the examples of the modern rule",
		func(v plan.View, expected string) {
			stuck["stuck"] = true
			Expect(aims(plan.New(v))).To(Equal(expected))
			rounds := carried(&v)
			Expect(rounds).To(BeNumerically("<=", 3))
			Expect(aims(plan.New(v))).To(Equal(expected))
		},
		Entry("in proportion to demand, in one round", view(Federated(3, 30), has("c1", 1, 10, 10, wants(25)), has("c2", 1, 10, 2), has("c3", 1, 10, 2)), "24/3/3"),
		Entry("from one that cannot use it", isStuck(view(Federated(2, 12), has("c1", 1, 2, 2, wants(6)), has("stuck", 1, 10, 8, readyCondition(4)))), "7/5"),
		Entry("not from one out of reach", view(Federated(3, 30), has("c1", 1, 10, 10, wants(18)), has("c2", 1, 10, 3), has("c3", 1, 10, 3, away)), "16/4/10"),
		Entry("not without need", view(Federated(2, 30), has("c1", 1, 4, 3), has("c2", 1, 26, 3)), "4/26"),
		Entry("to a fourth", view(Federated(4, 30), has("c1", 1, 10, 2), has("c2", 1, 10, 2), has("c3", 1, 10, 2), none("c4")), "8/8/7/7"),
	)
})

// isStuck has the cluster of that name wait for its replicas for an hour.
func isStuck(v plan.View) plan.View {
	entry(&v, "stuck").NotReadySince = ago(3600e9)
	return v
}

var _ = Describe("What went wrong in the first federation", func() {
	It("ends where a cluster joins at the minimum (it looped)", func() {
		v := view(Federated(8, 10), has("c1", 5, 10, 7), none("c2"))
		Expect(carried(&v)).To(BeNumerically("<=", 4))
		p := plan.New(v)
		Expect(aims(p)).To(Equal("7/3"))
		Expect(least(p)).To(Equal("5/3"))
	})

	It("never means a maximum below the minimum, nor leaves 0..0 behind, when the bounds shrink", func() {
		v := view(Federated(1, 3, Strict), has("c1", 1, 2, 1), has("c2", 1, 2, 1), has("c3", 1, 2, 1), has("c4", 1, 2, 1), has("c5", 1, 2, 1))
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("1/-/-/-/-"), "what the others have left running counts")
		v = view(Federated(1, 3), has("c1", 1, 2, 1), has("c2", 1, 2, 1), has("c3", 1, 2, 1), has("c4", 1, 2, 1), has("c5", 1, 2, 1))
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("1/1/1/-/-"), "the maximum has room for three with an autoscaler")
		Expect(least(plan.New(v))).To(Equal("1/1/1/-/-"))
	})

	It("drops no cluster: 3..3 over three clusters", func() {
		v := view(Federated(3, 3), none("c1"), none("c2"), none("c3"))
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("1/1/1"))
	})

	It("decides the same every time, in whatever order the clusters come", func() {
		clusters := []plan.Cluster{has("c1", 1, 10, 2), has("c2", 1, 10, 2), has("c3", 1, 3, 3, wants(9))}
		first := orders(plan.New(view(Federated(3, 23), clusters...)))
		for range 200 {
			clusters[0], clusters[1], clusters[2] = clusters[1], clusters[2], clusters[0]
			Expect(orders(plan.New(view(Federated(3, 23), clusters...)))).To(Equal(first))
		}
	})

	It("uses as many clusters as the minimum allows, if that is asked for", func() {
		v := view(Federated(2, 10, Strict), none("c1"), none("c2"), none("c3"), none("c4"), none("c5"))
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("5/5/-/-/-"))
		Expect(least(plan.New(v))).To(Equal("1/1/-/-/-"))
	})

	It("serves 24/2/2 in one round of orders where the first took up to thirteen", func() {
		v := view(Federated(3, 30), has("c1", 1, 10, 10, wants(24)), has("c2", 1, 10, 2), has("c3", 1, 10, 2))
		p := plan.New(v)
		Expect(orders(p)).To(Equal([]string{"c2 1..3", "c3 1..3"}), "givers first")
		Expect(carried(&v)).To(Equal(2), "and the receiver once they have confirmed")
		Expect(aims(plan.New(v))).To(Equal("24/3/3"))
	})
})

// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// slow is a cluster to which these bounds were sent two seconds ago.
func slow(lo, hi int64) func(*plan.Cluster) {
	return func(c *plan.Cluster) {
		c.InFlight, c.Sent = &plan.Bounds{Min: lo, Max: hi}, noon.Add(-2*time.Second)
	}
}

// unprobed is a cluster that has just given no answer to a write.
func unprobed(c *plan.Cluster) { c.Reachable, c.Unprobed = false, true }

// secondName is another name of a cluster in the view.
func secondName(c *plan.Cluster) { c.Alias, c.Fault = true, plan.Hold{Reason: "SameCluster"} }

var _ = Describe("While a cluster takes a moment to confirm a lower maximum", func() {
	DescribeTable("others keep what they run",
		func(v plan.View, expected string, sent ...string) {
			p := plan.New(v)
			Expect(aims(p)).To(Equal(expected))
			Expect(orders(p)).To(ConsistOf(sent))
		},
		Entry("where maxReplicas was lowered", view(Federated(1, 10), has("a", 1, 10, 8, slow(1, 4)), has("b", 1, 3, 3), has("c", 1, 3, 3)), "10/3/3"),
		Entry("where maxReplicas was lowered, and the cluster gave no answer", view(Federated(1, 10), has("a", 1, 10, 8, unprobed), has("b", 1, 3, 3), has("c", 1, 3, 3)), "10/3/3"),
		Entry("where maxReplicas was lowered, and the cluster is tried again soon", view(Federated(1, 10), has("a", 1, 10, 8, pausing), has("b", 1, 3, 3), has("c", 1, 3, 3)), "10/3/3"),
		Entry("where maxReplicas was lowered, and the cluster is about to be read for the first time", remembers(view(Federated(1, 10), but(none("a"), starting), has("b", 1, 3, 3), has("c", 1, 3, 3)), "a", confirmed(1, 10)), "10/3/3"),
		Entry("where maxReplicas was lowered, but no more than all of it", remembers(view(Federated(1, 2), but(none("a"), starting), has("b", 1, 1, 1), has("c", 1, 1, 1)), "a", confirmed(1, 10)), "10/1/-", "c gone"),
		Entry("where an earlier state of the cluster came back", remembers(view(Federated(1, 30), has("a", 1, 28, 3), has("b", 1, 24, 20), has("c", 1, 3, 2)), "a", confirmedAt("101")), "28/20/2", "b 1..20", "c 1..2"),
		Entry("where the cluster gets a second name while a raise may be on its way under the first one", remembers(view(Federated(1, 20), has("a", 1, 10, 8), has("b", 1, 10, 8, secondName), has("c", 1, 5, 5)), "b", outstanding(1, 15, "100")), "8/15/5", "a 1..8"),
		Entry("but not if the cluster refuses it", view(Federated(1, 10), has("a", 1, 10, 8, pausing, refusing), has("b", 1, 3, 3)), "10/-", "b gone"),
		Entry("where another client raised its maximum", view(Federated(1, 30), has("a", 1, 99, 8, slow(1, 10)), has("b", 1, 10, 8), has("c", 1, 10, 8)), "99/8/8", "b 1..8", "c 1..8"),
		Entry("but no more than the new maximum leaves for them", view(Federated(1, 10), has("a", 1, 10, 8, slow(1, 4)), has("b", 1, 10, 8), has("c", 1, 10, 8)), "10/3/3", "b 1..3", "c 1..3"),
	)

	It("others keep their minima", func() {
		v := view(Federated(6, 10), has("a", 2, 10, 8, slow(2, 4)), has("b", 2, 3, 3), has("c", 2, 3, 3))
		Expect(least(plan.New(v))).To(Equal("2/2/2"))
		Expect(orders(plan.New(v))).To(BeEmpty())
	})

	It("is looked at again soon if it gave no answer", func() {
		Expect(plan.New(view(Federated(1, 10), has("a", 1, 10, 8, unprobed))).Again).To(Equal(5 * time.Second))
	})
})

var _ = Describe("A cluster that has just given no answer to a write", func() {
	lending := func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter} }

	DescribeTable("lends its share only once its probes fail, too",
		func(change func(*Spec)) {
			v := view(Federated(2, 20, change), has("a", 1, 10, 5, unprobed), has("b", 1, 10, 10, wants(25)))
			Expect(orders(plan.New(v))).To(BeEmpty())
			v.Clusters[0].Unprobed = false
			Expect(orders(plan.New(v))).To(Equal([]string{"b 2..20"}))
		},
		Entry("where it is lent at once", lending),
		Entry("where it is listed as released", released("a")),
	)
})

var _ = Describe("A cluster that failed when the hub began to watch it a moment ago", func() {
	young := func(outage time.Duration) plan.View {
		v := remembers(view(Federated(2, 20, released("a")), but(none("a"), silent, func(c *plan.Cluster) { c.Young, c.Since = true, time.Time{} }), has("b", 1, 10, 10, wants(25))), "a", confirmed(1, 10))
		if outage > 0 {
			entry(&v, "a").UnreachableSince = ago(outage)
		}
		return v
	}

	It("lends its share only if it fails for longer", func() {
		p := plan.New(young(0))
		Expect(orders(p)).To(BeEmpty())
		Expect(p.Again).To(Equal(15 * time.Second))
	})

	It("goes on lending it in an outage that began before", func() {
		Expect(orders(plan.New(young(time.Hour)))).To(Equal([]string{"b 2..20"}))
	})
})

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

// drifted is a cluster whose autoscaler was edited by others.
func drifted(c *plan.Cluster) { c.Local.Drifted = true }

// unclaimed is a cluster whose autoscaler was not applied by the server yet.
func unclaimed(c *plan.Cluster) { c.Local.Unclaimed = true }

var _ = Describe("Orders", func() {
	DescribeTable("are sent",
		func(v plan.View, expected ...string) { Expect(orders(plan.New(v))).To(ConsistOf(expected)) },
		Entry("to no cluster, if all is as it should be", view(Federated(2, 10), has("a", 1, 5, 3), has("b", 1, 5, 3))),
		Entry("where something else was edited", view(Federated(2, 10), has("a", 1, 5, 3, drifted), has("b", 1, 5, 3)), "a 1..5"),
		Entry("where a cluster was lowered by others, unless it cannot be written to", view(Federated(2, 10), has("a", 1, 4, 3, pausing), has("b", 1, 5, 3)), "b 1..6"),
		Entry("not where one is on its way", view(Federated(2, 10), has("a", 1, 4, 3, busy(1, 5)), has("b", 1, 5, 3))),
		Entry("not to a cluster that refuses", view(Federated(2, 10), has("a", 1, 5, 3, drifted, refusing), has("b", 1, 5, 3))),
		Entry("not to a cluster out of reach", view(Federated(2, 10), has("a", 1, 5, 3, drifted, away), has("b", 1, 5, 3))),
		Entry("not for a creation that cannot have happened", view(Federated(1, 10), but(none("a"), unselected))),
	)

	It("change, create and remove what was seen, in that version", func() {
		v := view(Federated(2, 10), has("a", 1, 5, 3, unclaimed), none("b"), has("c", 1, 5, 3, unselected))
		Expect(plan.New(v).Orders).To(Equal([]plan.Order{{Cluster: "c", Operation: plan.Remove, Was: plan.Bounds{Min: 1, Max: 5}, Version: "100", UID: "c"}}))
		v.Clusters[2] = but(none("c"), unselected)
		Expect(plan.New(v).Orders).To(Equal([]plan.Order{{Cluster: "b", Operation: plan.Create, Bounds: plan.Bounds{Min: 1, Max: 5}, Epoch: 1}}))
		v.Clusters[1] = has("b", 1, 4, 3)
		v.Clusters[0].Local.Min = 2
		Expect(plan.New(v).Orders).To(Equal([]plan.Order{
			{Cluster: "a", Operation: plan.Change, Bounds: plan.Bounds{Min: 1, Max: 5}, Was: plan.Bounds{Min: 2, Max: 5}, Version: "100", UID: "a", Unclaimed: true, Epoch: 1},
			{Cluster: "b", Operation: plan.Change, Bounds: plan.Bounds{Min: 1, Max: 5}, Was: plan.Bounds{Min: 1, Max: 4}, Version: "100", UID: "b", Epoch: 1},
		}))
	})

	It("are looked after once a second", func() {
		Expect(plan.New(view(Federated(1, 10), none("a"))).Again).To(Equal(time.Second))
		Expect(plan.New(view(Federated(1, 10), has("a", 1, 10, 3))).Again).To(BeZero())
	})

	DescribeTable("enter the ledger only if they may raise a maximum or lower a minimum",
		func(v plan.View, order string, entered bool) {
			p := plan.New(v)
			Expect(orders(p)).To(Equal([]string{order}))
			Expect(status(v, p).Clusters[0].Outstanding != nil).To(Equal(entered))
		},
		Entry("a maximum is raised", view(Federated(1, 10), has("a", 1, 9, 3)), "a 1..10", true),
		Entry("a maximum is lowered", view(Federated(1, 10), has("a", 1, 11, 3)), "a 1..10", false),
		Entry("a minimum is raised", view(Federated(2, 10), has("a", 1, 10, 3)), "a 2..10", false),
		Entry("a minimum is lowered", view(Federated(1, 10), has("a", 2, 10, 3)), "a 1..10", true),
		Entry("something else is corrected", view(Federated(1, 10), has("a", 1, 10, 3, drifted)), "a 1..10", false),
	)

	DescribeTable("are remembered by their time if they move bounds",
		func(c plan.Cluster, moved bool) {
			v := view(Federated(1, 10), c)
			v.Now = noon.Add(300 * time.Millisecond)
			Expect(ledgerOf(v, "a").MovedAt.Equal(ago(0))).To(Equal(moved))
		},
		Entry("a maximum", has("a", 1, 9, 3), true),
		Entry("a minimum", has("a", 2, 10, 3), true),
		Entry("nothing of both", has("a", 1, 10, 3, drifted), false),
	)

	It("count at once as what they may do", func() {
		p := plan.New(view(Federated(1, 10), has("a", 2, 9, 3)))
		Expect(p.Clusters[0].Confirmed).To(Equal(plan.Bounds{Min: 2, Max: 9}))
		Expect(p.Clusters[0].Counted).To(Equal(plan.Bounds{Min: 1, Max: 10}))
	})
})

var _ = Describe("A maximum below the present minimum", func() {
	atMost := func(a, b int32) []func(*Spec) { return []func(*Spec){Prefer("a", AtMost(a)), Prefer("b", AtMost(b))} }

	It("waits until others have raised their minimum, if no cluster waits for it", func() {
		v := view(Federated(6, 12, atMost(2, 6)...), has("a", 5, 6, 5), has("b", 1, 6, 3))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 5..5", "b 4..6"}))
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("2/6"))
		Expect(least(plan.New(v))).To(Equal("2/4"))
	})

	It("waits, too, if it is one", func() {
		v := view(Federated(6, 12, atMost(1, 6)...), has("a", 5, 6, 5), has("b", 1, 6, 3))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 5..5", "b 5..6"}))
	})

	It("waits, too, where some room is left", func() {
		v := view(Federated(6, 12, atMost(2, 10)...), has("a", 5, 9, 5), has("b", 1, 2, 2))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 5..5", "b 2..2"}))
	})

	It("takes its minimum with it, if a raise waits for the room", func() {
		v := view(Federated(6, 12, atMost(2, 10)...), has("a", 5, 10, 5), has("b", 1, 2, 2))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 2..2", "b 2..2"}))
	})

	It("takes its minimum with it, if the maxima add up to too much", func() {
		v := view(Federated(6, 12, atMost(2, 6)...), has("a", 5, 10, 5), has("b", 1, 6, 3))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 2..2", "b 4..6"}))
	})
})

var _ = Describe("Minima", func() {
	DescribeTable("are lowered as far as others have risen",
		func(v plan.View, expected ...string) { Expect(orders(plan.New(v))).To(ConsistOf(expected)) },
		Entry("not before a raise is confirmed, whichever comes first", view(Federated(6, 20, Minima), has("a", 3, 10, 7), has("b", 3, 10, 3, wantsLess(1))), "a 5..10"),
		Entry("to their goals, if these are enough", view(Federated(2, 20), has("a", 5, 10, 5), has("b", 5, 10, 5)), "a 1..10", "b 1..10"),
		Entry("by no more together than there is beyond what is asked for", view(Federated(6, 30), has("a", 4, 10, 4), has("b", 4, 10, 4), has("c", 1, 10, 5)), "a 2..10", "b 3..10", "c 2..10"),
		Entry("by nothing that belongs to a share that is lent", view(Federated(4, 20, released("a")), has("a", 3, 10, 5, away), has("b", 5, 10, 5), has("c", 1, 10, 5)), "b 3..10", "c 2..10"),
		Entry("to less than is asked for, if the maximum allows no more", view(Federated(5, 10, Prefer("a", AtMost(2))), has("a", 5, 10, 5)), "a 2..2"),
		Entry("to less than all are to have, if that is more than is asked for", view(Federated(1, 15, Prefer("*", AtMost(5))), has("a", 3, 5, 3), has("b", 1, 5, 1), none("c")), "a 1..5", "c 1..5"),
		Entry("to nothing with the autoscaler", view(Federated(4, 10, Prefer("b", AtMost(5))), has("a", 3, 5, 3, unselected), has("b", 1, 5, 3)), "a gone", "b 4..5"),
	)
})

var _ = Describe("Raises", func() {
	It("do not wait for others if there is room for all that is asked for", func() {
		v := view(Federated(2, 30, Prefer("a", AtMost(8)), Prefer("b", AtMost(4))), has("a", 1, 5, 5), has("b", 1, 10, 2))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..8", "b 1..4"}))
	})

	// doubtful is a cluster that may have a maximum of 15, while bounds are sent to it.
	doubtful := func(lo, hi int64) plan.View {
		return remembers(view(Federated(2, 30), has("a", 1, 10, 10, wants(24)), has("b", 1, 10, 2, busy(lo, hi))), "b", outstanding(1, 15, "100"))
	}

	It("do not wait for an order that lowers no maximum", func() {
		Expect(orders(plan.New(doubtful(2, 10)))).To(Equal([]string{"a 1..15"}))
	})

	It("wait for one that does", func() {
		Expect(orders(plan.New(doubtful(1, 9)))).To(BeEmpty())
	})

	It("go to those that have less first, and take from no cluster", func() {
		v := remembers(view(Federated(3, 40), has("a", 1, 12, 12, wants(30)), has("b", 1, 2, 2, wants(30)), has("c", 1, 3, 2, busy(1, 3))), "c", outstanding(1, 20, "100"))
		Expect(orders(plan.New(v))).To(Equal([]string{"b 1..8"}))
	})

	DescribeTable("of unknown outcome",
		func(v plan.View, expected ...string) {
			Expect(orders(plan.New(remembers(v, "a", outstanding(1, 18, "100"))))).To(ConsistOf(expected))
		},
		Entry("are repeated as far as they still are wanted", view(Federated(2, 20), has("a", 1, 10, 10, wants(30)), has("b", 1, 2, 2)), "a 1..17"),
		Entry("are taken back if the sum may be too high", view(Federated(2, 20), has("a", 1, 10, 10, wants(30)), has("b", 1, 8, 8)), "a 1..10"),
	)

	It("are taken back if the sum may be too high, even if they are what is wanted", func() {
		v := remembers(view(Federated(2, 20), has("a", 1, 10, 10, wants(30)), has("b", 1, 10, 8)), "a", outstanding(1, 11, "100"))
		Expect(aims(plan.New(v))).To(Equal("11/9"))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..10", "b 1..9"}))
	})

	It("of another hub are not repeated on a version older than theirs, unless the cluster certainly has no later one", func() {
		v := remembers(view(Federated(2, 20), has("a", 1, 10, 10), has("b", 1, 10, 5)), "a", outstanding(1, 11, "108"))
		v.Clusters[0].Local.Version = "107"
		p := plan.New(v)
		Expect(orders(p)).NotTo(ContainElement(HavePrefix("a ")))
		Expect(p.Clusters[0].UnseenVersion()).To(Equal("108"))
		Expect(p.Clusters[0].Counted.Max).To(BeEquivalentTo(11))
		v.Clusters[0].Verified = "108"
		p = plan.New(v)
		Expect(orders(p)).To(ContainElement("a 1..10"))
		Expect(status(v, p).Clusters[0].Outstanding.Base).To(Equal("107"))
	})

	It("are taken back as far as possible where a creation of unknown outcome may be too much", func() {
		v := remembers(view(Federated(2, 20), none("a"), has("b", 1, 8, 8)), "a", outstanding(1, 18, ""))
		Expect(orders(plan.New(v))).To(ContainElement("a 1..1"))
	})
})

var _ = Describe("A creation of unknown outcome that is not wanted any more", func() {
	unwanted := func(change ...func(*Spec)) plan.View {
		v := view(Federated(1, 12, change...), but(none("a"), unselected))
		v.Now = noon.Add(time.Second - time.Nanosecond)
		return remembers(v, "a", outstanding(1, 9, ""))
	}

	It("is made as small as possible, also where the maxima may add up to too much", func() {
		v := view(Federated(1, 12), but(none("a"), unselected), has("b", 1, 12, 5))
		Expect(orders(plan.New(remembers(v, "a", outstanding(1, 9, ""))))).To(Equal([]string{"a 1..1"}))
	})

	It("may take effect for three minutes, which the ledger has in whole seconds", func() {
		Expect(ledgerOf(unwanted(), "a").RemovableAfter.Time).To(Equal(noon.Add(3 * time.Minute)))
	})

	It("is not removable before a second creation was sent", func() {
		Expect(ledgerOf(view(Federated(1, 12), none("a")), "a").RemovableAfter).To(BeNil())
	})

	It("gets a minimum that each cluster allows, also with AllowZero", func() {
		Expect(orders(plan.New(unwanted(allowZero)))).To(Equal([]string{"a 1..1"}))
	})

	removable := func(after time.Duration, lo, hi int64) plan.View {
		v := view(Federated(1, 12), has("a", lo, hi, 1, unselected, unclaimed))
		entry(&v, "a").RemovableAfter = ptr.To(*ago(-after))
		return v
	}

	DescribeTable("is removed after that time, and small until then",
		func(v plan.View, again time.Duration, expected ...string) {
			p := plan.New(v)
			Expect(orders(p)).To(ConsistOf(expected))
			Expect(p.Again).To(Equal(again))
		},
		Entry("it is small", removable(time.Minute, 1, 1), time.Minute),
		Entry("it is larger", removable(time.Minute, 1, 9), time.Second, "a 1..1"),
		Entry("it is larger and runs some", but(removable(time.Minute, 1, 9), func(v *plan.View) { v.Clusters[0].Local.Desired = 4 }), time.Second, "a 1..4"),
		Entry("its minimum is larger", removable(time.Minute, 5, 9), time.Second, "a 1..1"),
		Entry("its minimum is smaller", removable(time.Minute, 0, 9), time.Second, "a 0..1"),
		Entry("not a moment too early", removable(time.Nanosecond, 1, 1), time.Nanosecond),
		Entry("in time", removable(0, 1, 1), time.Second, "a gone"),
	)

	It("is changed in the version that was seen", func() {
		Expect(plan.New(removable(time.Minute, 1, 9)).Orders).To(Equal([]plan.Order{
			{Cluster: "a", Operation: plan.Change, Bounds: plan.Bounds{Min: 1, Max: 1}, Was: plan.Bounds{Min: 1, Max: 9}, Version: "100", UID: "a", Unclaimed: true},
		}))
	})
})

var _ = Describe("A creation that may still arrive", func() {
	DescribeTable("needs no further look",
		func(v plan.View) {
			entry(&v, "a").RemovableAfter = ago(-time.Minute)
			Expect(plan.New(v).Again).To(BeZero())
		},
		Entry("where the autoscaler stays", view(Federated(1, 10), has("a", 1, 10, 3))),
		Entry("where no autoscaler is wanted, and none is there", view(Federated(1, 10), but(none("a"), unselected))),
		Entry("where no autoscaler is wanted, and another one scales the same workload", view(Federated(1, 10), but(none("a"), unselected, scaledTwice))),
	)
})

var _ = Describe("An autoscaler of which another client took the name", func() {
	share := func(v plan.View) plan.View { return remembers(v, "a", confirmed(1, 10)) }

	DescribeTable("keeps its share, and nothing is sent to its cluster",
		func(v plan.View, expected string, others ...string) {
			p := plan.New(v)
			Expect(aims(p)).To(Equal(expected))
			Expect(orders(p)).To(ConsistOf(others))
		},
		Entry("where nothing changes", share(view(Federated(1, 10), but(none("a"), taken))), "10"),
		Entry("where others need more", share(view(Federated(2, 20), but(none("a"), taken), has("b", 1, 10, 10, wants(30)))), "10/10"),
		Entry("where more is there", share(view(Federated(1, 20), but(none("a"), taken))), "10"),
		Entry("where less is there", share(view(Federated(1, 8), but(none("a"), taken))), "10"),
	)

	It("says so", func() {
		v := share(view(Federated(1, 10), but(none("a"), taken)))
		Expect(ledgerOf(v, "a").State).To(Equal(v1alpha1.Refused))
		Expect(ledgerOf(v, "a").Reason).To(Equal("NameTaken"))
		Expect(ledgerOf(v, "a").ConfirmedMaxReplicas).To(BeEquivalentTo(10))
	})
})

var _ = Describe("A share that is lent", func() {
	It("keeps the bounds that it had", func() {
		v := view(Federated(2, 20, released("a")), has("a", 3, 10, 5, away), has("b", 2, 20, 5))
		p := plan.New(v)
		Expect(p.Clusters[0].Aim).To(Equal(plan.Bounds{Min: 3, Max: 10}))
		Expect(orders(p)).To(BeEmpty())
	})

	It("needs no time any more if it was released before its time", func() {
		v := view(Federated(2, 20, func(s *Spec) {
			s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](600), Released: []string{"a"}}
		}), has("a", 3, 10, 5, away), has("b", 2, 20, 5))
		Expect(plan.New(v).Again).To(BeZero())
	})

	It("is lent at once by default", func() {
		v := view(Federated(2, 20, func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter} }), has("a", 3, 10, 5, away), has("b", 2, 10, 5))
		Expect(orders(plan.New(v))).To(Equal([]string{"b 2..20"}))
	})
})

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

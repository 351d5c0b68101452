// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

func orphaning(s *Spec) { s.DeletionPolicy = v1alpha1.Orphan }

func paused(s *Spec) { s.Paused = true }

func starting(c *plan.Cluster) {
	c.Starting, c.Reachable, c.Absent, c.Since = true, false, false, time.Time{}
}

// silent is a cluster that has never answered.
func silent(c *plan.Cluster) { c.Reachable, c.Absent = false, false }

// taken is a cluster in which another client's autoscaler has the name.
func taken(c *plan.Cluster) {
	c.Absent, c.Foreign = false, plan.Hold{Reason: "NameTaken"}
}

// scaledTwice is a cluster in which another autoscaler, of another name, scales the same workload.
func scaledTwice(c *plan.Cluster) { c.Foreign = plan.Hold{Reason: "AutoscaledTwice"} }

// garbled is a cluster whose autoscaler with the object's name cannot be read.
func garbled(c *plan.Cluster) {
	c.Absent, c.Fault = false, plan.Hold{Reason: "AutoscalerUnreadable"}
}

// kindless is what is known of a workload in a cluster that lacks its kind.
func kindless(w *plan.Workload) { w.Fault = plan.Hold{Reason: "NoSuchKind"} }

// shown is the version up to which a cluster's autoscalers are known.
func shown(version string) func(*plan.Cluster) {
	return func(c *plan.Cluster) { c.Shown = version }
}

func confirmedAt(version string) func(*v1alpha1.ClusterStatus) {
	return func(s *v1alpha1.ClusterStatus) { confirmed(1, 10)(s); s.ConfirmedVersion = version }
}

// deletedObject is a view in which the user has deleted the object.
func deletedObject(v plan.View) plan.View {
	v.Object.DeletionTimestamp = ago(time.Minute)
	return v
}

// sentOnce is a view in which one order, and no more, was once sent to a cluster.
func sentOnce(v plan.View, name string) plan.View {
	entry(&v, name).Epoch = 1
	return v
}

var _ = Describe("A deleted object", func() {
	gone, remains := true, false

	DescribeTable("removes its autoscalers, and is gone once none is left",
		func(v plan.View, done bool, expected ...string) {
			p := plan.New(deletedObject(v))
			Expect(orders(p)).To(ConsistOf(expected))
			Expect(p.Gone).To(Equal(done))
		},
		Entry("nothing is left", view(Federated(1, 10), none("a")), gone),
		Entry("an autoscaler is left", view(Federated(1, 10), has("a", 1, 10, 3)), remains, "a gone"),
		Entry("one of two is left", view(Federated(1, 10), has("a", 1, 10, 3), none("b")), remains, "a gone"),
		Entry("a cluster with an autoscaler is out of reach", view(Federated(1, 10), has("a", 1, 10, 3, away)), remains),
		Entry("a cluster with an autoscaler waits after a failure", view(Federated(1, 10), has("a", 1, 10, 3, pausing)), remains),
		Entry("a removal is under way", view(Federated(1, 10), has("a", 1, 10, 3, busy(0, 0))), remains),
		Entry("a cluster has never answered, and nothing was sent there", view(Federated(1, 10), but(none("a"), silent)), gone),
		Entry("a cluster has never answered, and something was sent there", sentOnce(view(Federated(1, 10), but(none("a"), silent)), "a"), remains),
		Entry("a cluster has nothing left of what was sent there", sentOnce(view(Federated(1, 10), none("a")), "a"), gone),
		Entry("a cluster is about to answer", view(Federated(1, 10), but(none("a"), starting)), remains),
		Entry("a cluster is no longer registered", remembers(view(Federated(1, 10), plan.Cluster{Name: "a"}), "a", confirmed(1, 10)), gone),
		Entry("a cluster is no longer registered, and is being written to", view(Federated(1, 10), has("a", 1, 10, 3, unregistered, busy(0, 0))), remains),
		Entry("another one is no longer registered", remembers(view(Federated(1, 10), has("a", 1, 10, 3), plan.Cluster{Name: "b"}), "b", confirmed(1, 10)), remains, "a gone"),
		Entry("an autoscaler may still be created", remembers(view(Federated(1, 10), none("a")), "a", outstanding(1, 9, "")), remains, "a 1..1"),
		Entry("another client took the name where it had an autoscaler", remembers(view(Federated(1, 10), but(none("a"), taken)), "a", confirmed(1, 10)), gone),
		Entry("another client had the name first, and what was sent was refused", sentOnce(view(Federated(1, 10), but(none("a"), taken)), "a"), gone),
		Entry("another client took the name, and another cluster has an autoscaler", sentOnce(view(Federated(1, 10), but(none("a"), taken), has("b", 1, 10, 3)), "a"), remains, "b gone"),
		Entry("another client took the name, and a change that was sent came too late", remembers(view(Federated(1, 10), but(none("a"), taken)), "a", outstanding(1, 9, "7")), gone),
		Entry("another client took the name, and a creation that was sent may follow", remembers(view(Federated(1, 10), but(none("a"), taken)), "a", outstanding(1, 9, "")), remains),
		Entry("another client took the name, and something is being sent", sentOnce(view(Federated(1, 10), but(none("a"), taken, busy(1, 5))), "a"), remains),
		Entry("another client took the name, but the cluster is out of reach", sentOnce(view(Federated(1, 10), but(none("a"), taken, away)), "a"), remains),
		Entry("another client had the name before this object, as old caches still show", remembers(view(Federated(1, 10), but(none("a"), taken, shown("99"))), "a", confirmedAt("100")), remains),
		Entry("another autoscaler scales the same workload", view(Federated(1, 10), has("a", 1, 10, 3, scaledTwice)), remains, "a gone"),
		Entry("an autoscaler cannot be read", remembers(view(Federated(1, 10), but(none("a"), garbled)), "a", confirmed(1, 10)), remains),
		Entry("all stay, if it orphans them", view(Federated(1, 10, orphaning), has("a", 1, 10, 3)), gone),
		Entry("all stay, but one is being written to", view(Federated(1, 10, orphaning), has("a", 1, 10, 3, busy(1, 5))), remains),
		Entry("all stay, but the first is being written to", view(Federated(1, 10, orphaning), has("a", 1, 5, 3, busy(1, 4)), has("b", 1, 5, 3)), remains),
	)

	It("aims at nothing in any cluster, each of which is leaving", func() {
		v := deletedObject(view(Federated(1, 10), has("a", 1, 5, 3), has("b", 1, 5, 3, away)))
		p := plan.New(v)
		Expect(aims(p)).To(Equal("-/-"))
		Expect(least(p)).To(Equal("-/-"))
		s := status(v, p)
		Expect(s.Clusters[0].State).To(Equal(v1alpha1.Leaving))
		Expect(s.Clusters[1].State).To(Equal(v1alpha1.StateUnreachable))
	})

	DescribeTable("waits while a creation may still be on its way to a cluster", func(v plan.View) {
		v = deletedObject(v)
		entry(&v, "a").RemovableAfter, entry(&v, "a").Epoch = ago(-time.Minute), 1
		p := plan.New(v)
		Expect(p.Gone).To(BeFalse())
		Expect(p.Again).To(Equal(time.Minute))
		v.Now = v.Now.Add(time.Minute - time.Nanosecond)
		Expect(plan.New(v).Gone).To(BeFalse())
		v.Now = v.Now.Add(time.Nanosecond)
		p = plan.New(v)
		Expect(p.Gone).To(BeTrue())
		Expect(p.Again).To(BeZero())
	},
		Entry("where another client took the name", view(Federated(1, 10), but(none("a"), taken))),
		Entry("where another client took the name of an autoscaler that was created", remembers(view(Federated(1, 10), but(none("a"), taken)), "a", confirmed(1, 10))),
		Entry("where another client removed the autoscaler that was created", view(Federated(1, 10), none("a"))),
		Entry("where another client removed it, and another autoscaler scales the same workload", view(Federated(1, 10), but(none("a"), scaledTwice))),
	)

	It("removes its workloads after the autoscalers", func() {
		v := deletedObject(view(Federated(1, 10, withTemplate), but(none("a"), runs(exists, ours))))
		p := plan.New(v)
		Expect(p.Placings).To(Equal([]plan.WorkloadWrite{{Cluster: "a", Operation: plan.Remove, Version: "7", UID: "w"}}))
		Expect(p.Gone).To(BeFalse())
		v.Clusters[0].Workload = plan.Workload{Known: true}
		Expect(plan.New(v).Gone).To(BeTrue())
	})

	It("removes its workloads also where another client took the name of the autoscaler", func() {
		v := deletedObject(view(Federated(1, 10, withTemplate), but(none("a"), taken, runs(exists, ours))))
		p := plan.New(v)
		Expect(p.Placings).To(Equal([]plan.WorkloadWrite{{Cluster: "a", Operation: plan.Remove, Version: "7", UID: "w"}}))
		Expect(p.Gone).To(BeFalse())
	})

	It("leaves its workloads if it orphans them", func() {
		p := plan.New(deletedObject(view(Federated(1, 10, withTemplate, orphaning), but(none("a"), runs(exists, ours)))))
		Expect(p.Placings).To(BeEmpty())
		Expect(p.Gone).To(BeTrue())
	})

	DescribeTable("waits for workloads that it created",
		func(v plan.View, done bool) {
			withTemplate(&v.Object.Spec)
			Expect(plan.New(deletedObject(v)).Gone).To(Equal(done))
		},
		Entry("in a cluster out of reach", view(Federated(1, 10), but(none("a"), runs(exists, ours), away)), remains),
		Entry("in a cluster out of reach, next to one that has none", view(Federated(1, 10), but(none("a"), runs(exists, ours), away), but(none("b"), runs())), remains),
		Entry("in a cluster that refuses writes", view(Federated(1, 10), but(none("a"), runs(exists, ours), refusing)), remains),
		Entry("but not for those of another client", view(Federated(1, 10), but(none("a"), runs(exists), away)), gone),
		Entry("but not for one that is gone", view(Federated(1, 10), but(none("a"), runs(ours), away)), gone),
		Entry("but not in a cluster that is no longer registered", view(Federated(1, 10), but(none("a"), runs(exists, ours), unregistered)), gone),
		Entry("but not if it orphans them", view(Federated(1, 10, orphaning), but(none("a"), runs(exists, ours), away)), gone),
		Entry("in a cluster that something was sent to, and whose workloads are not known yet", sentOnce(view(Federated(1, 10), but(none("a"), runs(unknown))), "a"), remains),
		Entry("but not in a cluster that nothing was ever sent to", view(Federated(1, 10), but(none("a"), runs(unknown))), gone),
		Entry("but not in a cluster that no longer has their kind", sentOnce(view(Federated(1, 10), but(none("a"), runs(unknown, kindless))), "a"), gone),
	)

	It("waits for no workload if it has no template", func() {
		v := deletedObject(view(Federated(1, 10), but(none("a"), runs(exists, ours), away)))
		Expect(plan.New(v).Gone).To(BeTrue())
	})

	It("removes its workloads everywhere, also if more clusters have one than an object can hold and the first are out of reach", func() {
		v := view(Federated(1, 3000, withTemplate))
		for i := range 300 {
			c := but(none(fmt.Sprintf("c%03d", i)), runs(exists, ours))
			c.Reachable = i >= 256
			v.Clusters = append(v.Clusters, c)
		}
		v = deletedObject(v)
		p := plan.New(v)
		Expect(p.Gone).To(BeFalse())
		Expect(p.Placings).To(HaveLen(44))
		Expect(status(v, p).Clusters).To(HaveLen(256))
		for i := range v.Clusters[:256] {
			v.Clusters[i].Workload = plan.Workload{Known: true}
		}
		p = plan.New(v)
		Expect(p.Gone).To(BeFalse())
		Expect(p.Placings).To(HaveLen(44))
		for i := range v.Clusters {
			v.Clusters[i].Workload = plan.Workload{Known: true}
		}
		Expect(plan.New(v).Gone).To(BeTrue())
	})

	DescribeTable("waits no longer for a cluster that will not return, as the user says",
		func(done bool, c plan.Cluster) {
			v := deletedObject(view(Federated(1, 10, withTemplate, released("a")), c))
			p := plan.New(v)
			Expect(p.Gone).To(Equal(done))
			Expect(p.Orders).To(BeEmpty())
		},
		Entry("while it is out of reach", gone, has("a", 1, 10, 3, away)),
		Entry("while it is out of reach and has only a workload", gone, but(none("a"), runs(exists, ours), away)),
		Entry("but while it is being written to", remains, has("a", 1, 10, 3, away, busy(1, 5))),
		Entry("but while it is about to answer", remains, but(has("a", 1, 10, 3, away), func(c *plan.Cluster) { c.Starting = true })),
		Entry("but for another one", remains, has("b", 1, 10, 3, away)),
	)

	It("waits for such a cluster while it is about to answer, though the ledger contains an outage", func() {
		v := deletedObject(view(Federated(1, 10, released("a")), but(has("a", 1, 10, 3, away), func(c *plan.Cluster) { c.Starting = true })))
		entry(&v, "a").UnreachableSince = ago(time.Hour)
		Expect(plan.New(v).Gone).To(BeFalse())
	})

	It("removes what is in a cluster that should not return, if it answers", func() {
		p := plan.New(deletedObject(view(Federated(1, 10, released("a")), has("a", 1, 10, 3))))
		Expect(orders(p)).To(Equal([]string{"a gone"}))
		Expect(p.Gone).To(BeFalse())
	})

	DescribeTable("says what it waits for",
		func(message string, clusters ...plan.Cluster) {
			v := deletedObject(view(Federated(1, 10, released("lost")), clusters...))
			conditions := status(v, plan.New(v)).Conditions
			Expect(meta.FindStatusCondition(conditions, "Ready")).To(And(HaveField("Reason", "Deleting"), HaveField("Message", message)))
		},
		Entry("clusters that answer", "the objects in clusters are being removed", has("a", 1, 5, 3), none("b")),
		Entry("one that does not", "the objects in clusters are being removed; unreachable: b", has("a", 1, 5, 3), has("b", 1, 5, 3, away)),
		Entry("not for one that will not return, as the user says", "the objects in clusters are being removed; unreachable: b", has("b", 1, 5, 3, away), has("lost", 1, 5, 3, away)),
		Entry("not for one that is no longer registered", "the objects in clusters are being removed", has("a", 1, 5, 3, unregistered)),
	)

	It("makes no other statement", func() {
		v := deletedObject(view(Federated(1, 10), has("a", 1, 10, 3)))
		for _, kind := range []string{"Balanced", "Limited", "OverCommitted", "MinExceeded", "JoiningBlocked"} {
			Expect(condition(v, kind)).To(Equal("Unknown Deleting"))
		}
		Expect(condition(v, "ClustersUnreachable")).To(Equal("False AllReached"))
	})
})

var _ = Describe("An object that must not be acted on", func() {
	conflict := plan.Hold{Reason: "Conflict", Message: "old is older"}
	stopped := func(clusters ...plan.Cluster) plan.View {
		v := view(Federated(1, 8, withTemplate), clusters...)
		v.Stop = conflict
		return v
	}

	It("keeps what it has, and changes nothing", func() {
		v := stopped(has("a", 1, 10, 3, runs()), none("b"))
		p := plan.New(v)
		Expect(p.Stop).To(Equal(conflict))
		Expect(p.Orders).To(BeEmpty())
		Expect(p.Placings).To(BeEmpty())
		Expect(aims(p)).To(Equal("10/-"))
		s := status(v, p)
		Expect(s.Clusters[0].State).To(Equal(v1alpha1.Used))
		Expect(s.Clusters[1].State).To(Equal(v1alpha1.Idle))
	})

	It("keeps what it has also while its selector is invalid and selects nothing", func() {
		v := stopped(has("a", 1, 10, 3, unselected))
		Expect(status(v, plan.New(v)).Clusters).To(HaveExactElements(HaveField("State", v1alpha1.Used)))
	})

	It("says why, and makes no other statement", func() {
		v := stopped(has("a", 1, 10, 3))
		Expect(condition(v, "Ready")).To(Equal("False Conflict"))
		for _, kind := range []string{"Balanced", "Limited", "OverCommitted", "MinExceeded", "JoiningBlocked"} {
			Expect(condition(v, kind)).To(Equal("Unknown Conflict"))
		}
	})
})

var _ = Describe("A paused object", func() {
	It("shows what it would do, and sends nothing", func() {
		v := view(Federated(1, 8, paused), has("a", 1, 10, 3))
		p := plan.New(v)
		Expect(aims(p)).To(Equal("8"))
		Expect(p.Orders).To(BeEmpty())
		Expect(condition(v, "Ready")).To(Equal("False Paused"))
	})
})

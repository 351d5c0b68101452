// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

// withTemplate has the workload created from a template, and deleted from clusters that leave.
func withTemplate(s *Spec) {
	s.Placement, s.LeavePolicy = &v1alpha1.Placement{Mode: v1alpha1.Template}, v1alpha1.LeaveDelete
}

// runs is what a cluster has of the workload: nothing, or version 7 of it.
func runs(change ...func(*plan.Workload)) func(*plan.Cluster) {
	return func(c *plan.Cluster) {
		c.Workload = plan.Workload{Known: true}
		for _, f := range change {
			f(&c.Workload)
		}
	}
}

func exists(w *plan.Workload)      { w.Exists, w.Version, w.UID = true, "7", "w" }
func ours(w *plan.Workload)        { w.Ours = true }
func outdated(w *plan.Workload)    { w.Drifted = true }
func arriving(w *plan.Workload)    { w.Arriving = true }
func unknown(w *plan.Workload)     { w.Known = false }
func unselected(c *plan.Cluster)   { c.Selected = false }
func unregistered(c *plan.Cluster) { c.Registered, c.Selected, c.Reachable = false, false, false }
func pausing(c *plan.Cluster)      { c.Pausing = true }
func refusing(c *plan.Cluster)     { c.Fault = plan.Hold{Reason: "RefusedForbidden"} }

// busy is a cluster to which these bounds are being sent.
func busy(lo, hi int64) func(*plan.Cluster) {
	return func(c *plan.Cluster) { c.InFlight, c.Sent = &plan.Bounds{Min: lo, Max: hi}, noon }
}

// but is something that differs in some way.
func but[T any](it T, change ...func(*T)) T {
	for _, f := range change {
		f(&it)
	}
	return it
}

var _ = Describe("Workloads", func() {
	DescribeTable("of a template",
		func(c plan.Cluster, expected ...plan.WorkloadWrite) {
			Expect(plan.New(view(Federated(1, 10, withTemplate), c)).Placings).To(ConsistOf(expected))
		},
		Entry("are created where an autoscaler is", has("a", 1, 10, 0, runs()), plan.WorkloadWrite{Cluster: "a", Operation: plan.Create}),
		Entry("are created together with the autoscaler", but(none("a"), runs()), plan.WorkloadWrite{Cluster: "a", Operation: plan.Create}),
		Entry("are not created where the cluster was not asked for them yet", has("a", 1, 10, 0, runs(unknown))),
		Entry("are not created in a cluster out of reach", has("a", 1, 10, 0, runs(), away)),
		Entry("are not created in a cluster that refuses", has("a", 1, 10, 0, runs(), refusing)),
		Entry("are not created where the object selects no cluster", but(none("a"), runs(), unselected)),
		Entry("follow the template, each in the version that was seen", has("a", 1, 10, 3, runs(exists, ours, outdated)),
			plan.WorkloadWrite{Cluster: "a", Operation: plan.Change, Version: "7", UID: "w"}),
		Entry("stay if they are as the template says", has("a", 1, 10, 3, runs(exists, ours))),
		Entry("stay as they are if another client created them", has("a", 1, 10, 3, runs(exists, outdated))),
		Entry("go after the autoscaler", but(none("a"), runs(exists, ours), unselected),
			plan.WorkloadWrite{Cluster: "a", Operation: plan.Remove, Version: "7", UID: "w"}),
		Entry("go, whether or not they follow the template", but(none("a"), runs(exists, ours, outdated), unselected),
			plan.WorkloadWrite{Cluster: "a", Operation: plan.Remove, Version: "7", UID: "w"}),
		Entry("do not go before the autoscaler", has("a", 1, 10, 3, runs(exists, ours), unselected)),
		Entry("do not go if another client created them", but(none("a"), runs(exists), unselected)),
		Entry("do not go a second time", but(none("a"), runs(ours), unselected)),
	)

	It("are not removed while an autoscaler may be created", func() {
		v := remembers(view(Federated(1, 10, withTemplate), but(none("a"), runs(exists, ours), unselected)), "a", outstanding(1, 9, ""))
		Expect(plan.New(v).Placings).To(BeEmpty())
	})

	It("keep a deleted object until they are known, also where its autoscaler was adopted and is removed first", func() {
		v := deletedObject(view(Federated(1, 10, withTemplate), has("a", 1, 10, 3, runs(unknown))))
		p := plan.New(v)
		Expect(orders(p)).To(Equal([]string{"a gone"}))
		v.Object.Status = status(v, p)
		obey(&v, p.Orders[0])
		Expect(plan.New(v).Gone).To(BeFalse())
		v.Clusters[0].Workload.Known = true
		Expect(plan.New(v).Gone).To(BeTrue())
	})

	It("stay where another client has removed the autoscaler, while a cluster has yet to answer and none is added", func() {
		v := view(Federated(1, 10, withTemplate), but(none("a"), runs(exists, ours)), but(none("b"), starting), but(none("c"), runs(exists, ours), unselected))
		Expect(plan.New(v).Placings).To(Equal([]plan.WorkloadWrite{{Cluster: "c", Operation: plan.Remove, Version: "7", UID: "w"}}))
	})

	DescribeTable("keep a cluster that is not selected in the status until they are gone",
		func(state string, v plan.View) {
			withTemplate(&v.Object.Spec)
			all := status(v, plan.New(v)).Clusters
			if state == "" {
				Expect(all).To(BeEmpty())
				return
			}
			Expect(all).To(HaveExactElements(HaveField("State", v1alpha1.ClusterState(state))))
		},
		Entry("where one is left", "Leaving", view(Federated(1, 10), but(none("a"), runs(exists, ours), unselected))),
		Entry("where one is left and the cluster is out of reach", "Unreachable", view(Federated(1, 10), but(none("a"), runs(exists, ours), unselected, away))),
		Entry("where something was sent, and workloads are not known yet", "Leaving", sentOnce(view(Federated(1, 10), but(none("a"), runs(unknown), unselected)), "a")),
		Entry("where one may be about to be created", "Leaving", view(Federated(1, 10), but(none("a"), runs(arriving), unselected))),
		Entry("but not where none is left", "", sentOnce(view(Federated(1, 10), but(none("a"), runs(), unselected)), "a")),
		Entry("but not where another client created it", "", view(Federated(1, 10), but(none("a"), runs(exists), unselected))),
		Entry("but not in a cluster that is no longer registered", "", sentOnce(view(Federated(1, 10), plan.Cluster{Name: "a"}), "a")),
	)

	It("are not removed while their autoscaler waits for room", func() {
		v := view(Federated(2, 10, withTemplate), has("a", 1, 10, 3), but(none("b"), runs(exists, ours)))
		Expect(orders(plan.New(v))).To(Equal([]string{"a 1..5"}))
		Expect(plan.New(v).Placings).To(BeEmpty())
	})

	DescribeTable("are left alone",
		func(change func(*Spec)) {
			Expect(plan.New(view(Federated(1, 10, change), has("a", 1, 10, 0, runs()))).Placings).To(BeEmpty())
		},
		Entry("without a placement", func(*Spec) {}),
		Entry("with a placement by others", func(s *Spec) { s.Placement = &v1alpha1.Placement{Mode: v1alpha1.External} }),
		Entry("with a placement of no mode", func(s *Spec) { s.Placement = &v1alpha1.Placement{} }),
		Entry("while the object is paused", func(s *Spec) { withTemplate(s); paused(s) }),
	)

	It("are placed in each cluster for itself", func() {
		v := view(Federated(2, 10, withTemplate), has("a", 1, 5, 0, runs(), away), has("b", 1, 2, 2, runs(exists, ours)), has("c", 1, 3, 0, runs()))
		Expect(plan.New(v).Placings).To(Equal([]plan.WorkloadWrite{{Cluster: "c", Operation: plan.Create}}))
	})
})

// deleted is a cluster whose workload is gone. Its autoscaler still says what it last wished for.
func deleted(c *plan.Cluster) {
	c.Workload = plan.Workload{Known: true, Fault: plan.Hold{Reason: "NoWorkload"}}
	c.Local.Inactive = plan.Hold{Reason: "FailedGetScale"}
}

// unreadable is a cluster whose autoscaler cannot read or write the scale of a workload that may well run.
func unreadable(c *plan.Cluster) {
	c.Workload = plan.Workload{}
	c.Local.Inactive = plan.Hold{Reason: "FailedGetScale"}
}

// since has replicas of a cluster missing for so long.
func since(v plan.View, name string, d time.Duration) plan.View {
	entry(&v, name).NotReadySince = ago(d)
	return v
}

var _ = Describe("A workload that was deleted after it ran", func() {
	DescribeTable("and its share",
		func(v plan.View, expected string) { Expect(aims(plan.New(v))).To(Equal(expected)) },
		Entry("stays for a while, since it may be about to be made again",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 10, wants(15))), "c1", time.Minute), "10/10"),
		Entry("goes to a cluster in need after the start timeout",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 10, wants(15))), "c1", time.Hour), "1/19"),
		Entry("is no longer asked to be larger, though its autoscaler was at its maximum",
			since(view(Federated(2, 20), has("c1", 1, 10, 10, wants(40), deleted), has("c2", 1, 10, 10, wants(15))), "c1", time.Hour), "1/19"),
		Entry("stays where no one needs it",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 3)), "c1", time.Hour), "10/10"),
		Entry("stays where the cluster does not show whether there is one",
			since(view(Federated(2, 20), has("c1", 1, 10, 9, unreadable), has("c2", 1, 10, 10, wants(15))), "c1", time.Hour), "10/10"),
	)

	It("has the next cluster join on demand", func() {
		v := since(view(Federated(1, 20, Strict, OnDemand), has("c1", 1, 20, 9, deleted), none("c2")), "c1", time.Hour)
		Expect(aims(plan.New(v))).NotTo(HaveSuffix("-"))
	})

	It("is said, and counts as nothing that runs", func() {
		v := since(view(Federated(2, 20), has("c1", 1, 10, 9, deleted), has("c2", 1, 10, 3)), "c1", time.Hour)
		s := status(v, plan.New(v))
		Expect(s.CurrentReplicas).To(BeEquivalentTo(3))
		Expect(s.Clusters[0].State).To(Equal(v1alpha1.Used))
		Expect(s.Clusters[0].Reason).To(Equal("NoWorkload"))
	})
})

var _ = Describe("An autoscaler that cannot scale", func() {
	It("keeps its bounds, and says why", func() {
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		h.Spec.MaxReplicas = 10
		h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
			{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionFalse, Reason: "FailedUpdateScale", Message: "quota"},
			{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound"},
		}
		Expect(plan.LocalOf(h).Inactive).To(Equal(plan.Hold{Reason: "FailedUpdateScale", Message: "quota"}))
	})
})

var _ = Describe("Replicas that are not ready when a cluster is reached again", func() {
	DescribeTable("keep their share for the rest of the start timeout, without the time of the outage",
		func(waited, outage time.Duration, expected string) {
			v := since(view(Federated(2, 20), has("c1", 1, 10, 9, readyCondition(2)), has("c2", 1, 10, 10, wants(18))), "c1", waited)
			entry(&v, "c1").UnreachableSince = ago(outage)
			Expect(aims(plan.New(v))).To(Equal(expected))
			Expect(ledgerOf(v, "c1").NotReadySince).To(Equal(ago(waited - outage)))
		},
		Entry("which has not passed", 20*time.Minute, 18*time.Minute, "10/10"),
		Entry("which had passed before", 40*time.Minute, 18*time.Minute, "3/17"),
		Entry("which passes now", 33*time.Minute, 18*time.Minute, "3/17"),
	)
})

func zeroing(s *Spec)  { s.LeavePolicy = v1alpha1.LeaveScaleToZero }
func deleting(s *Spec) { s.LeavePolicy = v1alpha1.LeaveDelete }

// left is a cluster that has no autoscaler any more and is not selected. Its workload asks for as many replicas.
func left(name string, requested int64, change ...func(*plan.Cluster)) plan.Cluster {
	c := but(none(name), unselected)
	c.Workload = plan.Workload{Known: true, Exists: true, Version: "7", UID: "w", Requested: requested, Ready: requested, AsOf: noon}
	return but(c, change...)
}

func selected(c *plan.Cluster)   { c.Selected = true }
func autoscaled(c *plan.Cluster) { c.Workload.Autoscaled = true }
func created(c *plan.Cluster)    { c.Workload.Ours = true }
func refusedThere(c *plan.Cluster) {
	c.Workload.Refused = plan.Hold{Reason: "WorkloadRefused", Message: "no"}
}
func withoutReplicas(c *plan.Cluster) { c.Workload.Requested = -1 }

// counting is a view whose ledger counts replicas that a cluster has left running, since some time.
func counting(v plan.View, name string, replicas int32, since time.Duration) plan.View {
	e := entry(&v, name)
	e.LeftReplicas, e.MovedAt, e.Epoch = replicas, ago(since), 2
	return v
}

// twenty is an object over b, which needs more, and a cluster that has left.
func twenty(a plan.Cluster, change ...func(*Spec)) plan.View {
	return view(Federated(2, 20, change...), a, has("b", 1, 10, 10, wants(30)))
}

var _ = Describe("What a cluster that has left still runs", func() {
	DescribeTable("counts against the maximum",
		func(v plan.View, counts int32, expected string) {
			p := plan.New(v)
			Expect(aims(p)).To(Equal(expected))
			s := status(v, p)
			if counts == 0 {
				Expect(s.Clusters).NotTo(ContainElement(HaveField("Name", "a")))
				return
			}
			Expect(s.Clusters[0].LeftReplicas).To(Equal(counts))
			Expect(s.CountedReplicas).To(BeNumerically("<=", 20))
		},
		Entry("as its last maximum, where its autoscaler has just gone", remembers(twenty(left("a", 4)), "a", confirmed(1, 10)), int32(10), "-/10"),
		Entry("as the highest that was sent, where its autoscaler has just gone", remembers(remembers(twenty(left("a", 4)), "a", confirmed(1, 5)), "a", outstanding(1, 9, "100")), int32(9), "-/11"),
		Entry("as what it runs, where its autoscaler went before it obeyed a lower maximum", remembers(twenty(left("a", 9)), "a", confirmed(1, 5)), int32(9), "-/11"),
		Entry("as its last maximum, while it may still be scaled", counting(twenty(left("a", 4)), "a", 10, 15*time.Second-time.Nanosecond), int32(10), "-/10"),
		Entry("as many as its workload asks for, after that", counting(twenty(left("a", 4)), "a", 10, 15*time.Second), int32(4), "-/16"),
		Entry("as its last maximum, while what is known of its workload is older", counting(twenty(left("a", 4, func(c *plan.Cluster) { c.Workload.AsOf = noon.Add(-time.Hour) })), "a", 10, time.Minute), int32(10), "-/10"),
		Entry("not more than before, whoever adds replicas there", counting(twenty(left("a", 9)), "a", 4, time.Hour), int32(4), "-/16"),
		Entry("not at all, once its workload is scaled to 0", counting(twenty(left("a", 0)), "a", 4, time.Hour), int32(0), "-/20"),
		Entry("not at all, once its workload is gone", counting(twenty(left("a", 0, func(c *plan.Cluster) { c.Workload.Exists = false })), "a", 10, time.Minute), int32(0), "-/20"),
		Entry("though its workload is being deleted", counting(twenty(left("a", 4, func(c *plan.Cluster) { c.Workload.Terminating = true })), "a", 10, time.Hour), int32(4), "-/16"),
		Entry("not at all, once another autoscaler scales it", counting(twenty(left("a", 4, autoscaled, scaledTwice)), "a", 10, time.Second), int32(0), "-/20"),
		Entry("not at all, once another client's autoscaler of that name scales it", remembers(twenty(left("a", 4, autoscaled, taken)), "a", confirmed(1, 10)), int32(0), "-/20"),
		Entry("though another client's autoscaler has the name, if it scales something else", counting(twenty(left("a", 4, taken)), "a", 10, time.Hour), int32(4), "-/16"),
		Entry("as before, while the cluster is out of reach", counting(twenty(left("a", 4, away)), "a", 10, time.Hour), int32(10), "-/10"),
		Entry("as before, while its workload has yet to be read", counting(twenty(left("a", 4, func(c *plan.Cluster) { c.Workload.Known = false })), "a", 10, time.Hour), int32(10), "-/10"),
		Entry("as before, though the cluster is no longer registered", counting(twenty(plan.Cluster{Name: "a"}), "a", 10, time.Hour), int32(10), "-/10"),
		Entry("not at all, once the cluster is released", counting(twenty(plan.Cluster{Name: "a"}, released("a")), "a", 10, time.Hour), int32(0), "-/20"),
		Entry("not at all, once a cluster that answers is released", counting(twenty(left("a", 4), released("a")), "a", 10, time.Hour), int32(0), "-/20"),
		Entry("as its last maximum, if its kind does not show replicas", counting(twenty(left("a", 4, withoutReplicas)), "a", 10, time.Hour), int32(10), "-/10"),
		Entry("under its other name, if it is registered twice", counting(twenty(left("a", 4, func(c *plan.Cluster) { c.Alias = true })), "a", 10, time.Hour), int32(0), "-/20"),
		Entry("where a cluster is selected, but fewer are used", counting(view(Federated(1, 20, Strict), left("a", 4, selected), has("b", 1, 10, 10, wants(30))), "a", 10, time.Hour), int32(4), "-/16"),
		Entry("as one, where the hub created it and it never had an autoscaler", twenty(left("a", 3, created)), int32(1), "-/19"),
		Entry("not where the object never used the cluster", twenty(left("a", 4)), int32(0), "-/20"),
	)

	It("is lent while the cluster is out of reach, if that is asked for", func() {
		lending := func(s *Spec) {
			s.Unreachable = &v1alpha1.Unreachable{Policy: v1alpha1.ReleaseAfter, AfterSeconds: ptr.To[int32](60)}
		}
		v := counting(twenty(left("a", 4, away), lending), "a", 10, time.Hour)
		entry(&v, "a").UnreachableSince = ago(59 * time.Second)
		Expect(aims(plan.New(v))).To(Equal("-/10"))
		Expect(plan.New(v).Again).To(Equal(time.Second))
		entry(&v, "a").UnreachableSince = ago(time.Minute)
		Expect(aims(plan.New(v))).To(Equal("-/20"))
		Expect(said(v, "OverCommitted")).To(ContainSubstring("10 of these are the lent shares of unreachable clusters"))
	})

	It("is looked at again once the cluster does not scale it any more", func() {
		Expect(plan.New(counting(view(Federated(2, 20), left("a", 4), has("b", 2, 10, 3)), "a", 10, 8*time.Second)).Again).To(Equal(7 * time.Second))
		Expect(plan.New(counting(view(Federated(2, 20), left("a", 4, func(c *plan.Cluster) { c.Workload.AsOf = noon.Add(-time.Hour) }), has("b", 2, 10, 3)), "a", 10, time.Hour)).Again).To(Equal(5*time.Second), "the watch is late")
	})

	It("is never given away before that, from the order to the end", func() {
		v := view(Federated(2, 20), has("a", 1, 10, 4, unselected), has("b", 2, 10, 10, wants(30)))
		p := plan.New(v)
		Expect(orders(p)).To(Equal([]string{"a gone"}))
		v.Object.Status = status(v, p)
		obey(&v, p.Orders[0])
		p = plan.New(v)
		Expect(orders(p)).To(BeEmpty())
		v.Object.Status = status(v, p)
		Expect(v.Object.Status.CountedReplicas).To(BeEquivalentTo(20))
		v.Now = noon.Add(15 * time.Second)
		v.Clusters[0].Workload.AsOf = v.Now
		p = plan.New(v)
		Expect(orders(p)).To(Equal([]string{"b 2..16"}))
		Expect(status(v, p).CountedReplicas).To(BeEquivalentTo(20))
	})

	DescribeTable("is named",
		func(v plan.View, state, reason, message string) {
			Expect(condition(v, "ReplicasLeft")).To(Equal(reason))
			Expect(said(v, "ReplicasLeft")).To(HaveSuffix(message))
			Expect(ledgerOf(v, "a").State).To(BeEquivalentTo(state))
		},
		Entry("where it stays", counting(twenty(left("a", 4)), "a", 4, time.Hour), "Left", "True WithoutAutoscaler", "4 replicas run without an autoscaler, and count against maxReplicas, in clusters that have left: a"),
		Entry("where another client created it", counting(twenty(left("a", 4), withTemplate), "a", 4, time.Hour), "Left", "True WithoutAutoscaler", ": a"),
		Entry("where the cluster refuses to scale it", counting(twenty(left("a", 4, refusedThere), zeroing), "a", 4, time.Hour), "Leaving", "True WithoutAutoscaler", ": a"),
		Entry("where the cluster is gone from the registry, whatever was to happen", counting(twenty(plan.Cluster{Name: "a"}, zeroing), "a", 4, time.Hour), "Unreachable", "True WithoutAutoscaler", ": a"),
		Entry("where it cannot be scaled to 0, because its kind does not show replicas", counting(twenty(left("a", 4, withoutReplicas), zeroing), "a", 4, time.Hour), "Left", "True WithoutAutoscaler", ": a"),
		Entry("but not while it is scaled to 0", counting(twenty(left("a", 4), zeroing), "a", 4, time.Hour), "Leaving", "False NoneLeft", ""),
		Entry("but not while it is deleted", counting(twenty(left("a", 4, created), withTemplate), "a", 4, time.Hour), "Leaving", "False NoneLeft", ""),
		Entry("but not where the cluster is used again", counting(twenty(left("a", 4, selected)), "a", 4, time.Hour), "Joining", "False NoneLeft", ""),
	)

	DescribeTable("is handled as the object asks for",
		func(v plan.View, expected ...plan.WorkloadWrite) {
			Expect(plan.New(v).Placings).To(ConsistOf(expected))
		},
		Entry("kept", counting(twenty(left("a", 4, created), func(s *Spec) { withTemplate(s); s.LeavePolicy = "" }), "a", 4, time.Hour)),
		Entry("scaled to 0, whoever created it", counting(twenty(left("a", 4), zeroing), "a", 10, time.Second), plan.WorkloadWrite{Cluster: "a", Operation: plan.Scale, Version: "7", UID: "w"}),
		Entry("not scaled to 0 before the autoscaler is gone", twenty(has("a", 1, 10, 3, unselected), zeroing)),
		Entry("not scaled to 0 while an autoscaler may be created", remembers(counting(twenty(left("a", 4), zeroing), "a", 10, time.Hour), "a", outstanding(1, 1, ""))),
		Entry("not scaled to 0 where it is already", counting(twenty(left("a", 0), zeroing), "a", 10, time.Second)),
		Entry("not scaled to 0 where another autoscaler scales it", counting(twenty(left("a", 4, autoscaled), zeroing), "a", 10, time.Second)),
		Entry("not scaled to 0 where the object never used the cluster", twenty(left("a", 4), zeroing)),
		Entry("not scaled to 0 where the cluster is released", counting(twenty(left("a", 4), zeroing, released("a")), "a", 10, time.Second)),
		Entry("not scaled to 0 while it is being deleted", counting(twenty(left("a", 4, func(c *plan.Cluster) { c.Workload.Terminating = true }), zeroing), "a", 10, time.Second)),
		Entry("deleted, if the hub created it", counting(twenty(left("a", 4, created), withTemplate), "a", 10, time.Second), plan.WorkloadWrite{Cluster: "a", Operation: plan.Remove, Version: "7", UID: "w"}),
		Entry("not deleted, if it is another client's", counting(twenty(left("a", 4), withTemplate), "a", 10, time.Second)),
		Entry("not deleted, if the object no longer places it", counting(twenty(left("a", 4, created), deleting), "a", 10, time.Second)),
		Entry("not scaled to one before there is an autoscaler, whose maximum counts", twenty(left("a", 0, selected, func(c *plan.Cluster) { c.Workload.Zeroed = true }))),
		Entry("scaled to one, where the hub has scaled it to 0 and the autoscaler is back", twenty(has("a", 1, 5, 0, inactive, runs(exists, func(w *plan.Workload) { w.Zeroed = true }))), plan.WorkloadWrite{Cluster: "a", Operation: plan.Scale, Version: "7", UID: "w", Replicas: 1}),
		Entry("not scaled to one, where a user has scaled it to 0", twenty(left("a", 0, selected))),
	)

	DescribeTable("belongs to the cluster's share when it is used again",
		func(v plan.View, expected string, sent ...string) {
			p := plan.New(v)
			Expect(aims(p)).To(Equal(expected))
			Expect(orders(p)).To(ConsistOf(sent))
		},
		Entry("with room for more", counting(view(Federated(2, 20), left("a", 4, selected), has("b", 1, 10, 3)), "a", 4, time.Hour), "10/10", "a 1..10"),
		Entry("with no room for more", counting(view(Federated(2, 20), left("a", 4, selected), has("b", 1, 16, 16, wants(30))), "a", 4, time.Hour), "4/16", "a 1..4"),
		Entry("though others have too much already", counting(view(Federated(2, 20), left("a", 4, selected), has("b", 1, 18, 16)), "a", 4, time.Hour), "4/16", "a 1..4", "b 1..16"),
		Entry("as far as it runs, where it counts with more than that and the sum is too high", counting(view(Federated(2, 20), left("a", 1, selected), has("b", 1, 18, 18)), "a", 4, time.Second), "1/19", "a 1..1"),
		Entry("as far as it runs, where it gets more later, and the sum is too high", counting(view(Federated(2, 20), left("a", 1, selected), has("b", 1, 12, 12), has("c", 1, 6, 6, unselected)), "a", 4, time.Second), "7/13/-", "a 1..1", "c gone"),
		Entry("before one that has never been used", counting(view(Federated(1, 20, Strict), none("a"), left("b", 4, selected)), "b", 4, time.Hour), "-/20", "b 1..20"),
		Entry("at once, where another client removed its autoscaler", remembers(view(Federated(2, 20), left("a", 4, selected), has("b", 1, 10, 3)), "a", confirmed(1, 10)), "10/10", "a 1..10"),
	)

	It("counts beyond the maximum of an autoscaler that is back and has yet to obey it", func() {
		v := counting(view(Federated(2, 20), has("a", 1, 2, 2, unselected), has("b", 1, 16, 3)), "a", 4, time.Hour)
		v.Clusters[0].Workload.Requested = 4
		Expect(ledgerOf(v, "a").LeftReplicas).To(BeEquivalentTo(4))
		v.Clusters[0].Workload.Requested = 2
		Expect(ledgerOf(v, "a").LeftReplicas).To(BeZero())
	})

	It("stays as it is where an autoscaler is created only to be certainly removed", func() {
		v := remembers(counting(twenty(left("a", 4)), "a", 4, time.Hour), "a", outstanding(1, 9, ""))
		Expect(orders(plan.New(v))).To(ConsistOf("a 1..4", "b 2..11"))
	})

	It("ends to count once the autoscaler is back", func() {
		v := counting(view(Federated(2, 20), has("a", 1, 10, 3), has("b", 1, 10, 3)), "a", 4, time.Hour)
		Expect(ledgerOf(v, "a").LeftReplicas).To(BeZero())
	})

	It("leaves one replica at least to each cluster in use, and the condition says by how much that is too much", func() {
		v := counting(counting(view(Federated(3, 4), left("a", 4), has("b", 1, 2, 2), has("c", 1, 2, 2)), "a", 4, time.Hour), "c", 0, 0)
		carried(&v)
		Expect(aims(plan.New(v))).To(Equal("-/1/1"))
		Expect(least(plan.New(v))).To(Equal("-/1/1"))
		Expect(said(v, "OverCommitted")).To(ContainSubstring("up to 2 more than maxReplicas"))
	})

	It("keeps a cluster that would join waiting", func() {
		v := counting(view(Federated(2, 10), left("a", 4), has("b", 1, 6, 6), none("c")), "a", 4, time.Hour)
		Expect(aims(plan.New(v))).To(Equal("-/6/-"))
		Expect(condition(v, "JoiningBlocked")).To(Equal("True NoRoom"))
	})

	It("does not keep a deleted object, and is deleted with it if the hub created it", func() {
		v := deletedObject(counting(view(Federated(2, 20, withTemplate), left("a", 4)), "a", 4, time.Hour))
		Expect(plan.New(v).Gone).To(BeTrue())
		v.Object.Spec.LeavePolicy = v1alpha1.LeaveKeep
		v.Clusters[0].Workload.Ours = true
		p := plan.New(v)
		Expect(p.Gone).To(BeFalse())
		Expect(p.Placings).To(HaveExactElements(HaveField("Operation", plan.Remove)))
	})
})

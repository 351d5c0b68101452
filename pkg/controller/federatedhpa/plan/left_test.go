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
		Expect(said(v, "OverCommitted")).To(ContainSubstring("10 of these belong to unreachable clusters"))
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
		Entry("scaled to one, where the hub has scaled it to 0 and the cluster is used again", twenty(left("a", 0, selected, func(c *plan.Cluster) { c.Workload.Zeroed = true })), plan.WorkloadWrite{Cluster: "a", Operation: plan.Scale, Version: "7", UID: "w", Replicas: 1}),
		Entry("scaled to one, where the autoscaler is back first", twenty(has("a", 1, 5, 0, inactive, runs(exists, func(w *plan.Workload) { w.Zeroed = true }))), plan.WorkloadWrite{Cluster: "a", Operation: plan.Scale, Version: "7", UID: "w", Replicas: 1}),
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

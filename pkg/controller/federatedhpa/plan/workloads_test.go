// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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

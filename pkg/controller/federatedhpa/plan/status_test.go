// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan/plantest"
)

var _ = Describe("Status", func() {
	state := func(v plan.View, name string) string {
		for _, c := range status(v, plan.New(v)).Clusters {
			if c.Name == name {
				return string(c.State) + " " + c.Reason
			}
		}
		return "absent"
	}

	DescribeTable("says what a cluster is",
		func(expected string, c plan.Cluster) {
			Expect(state(view(Federated(1, 10), c), "a")).To(Equal(expected))
		},
		Entry(nil, "Used ", has("a", 1, 10, 3)),
		Entry(nil, "Joining ", none("a")),
		Entry(nil, "Frozen FailedGetResourceMetric", has("a", 1, 10, 3, inactive)),
		Entry(nil, "Unreachable NoContact", has("a", 1, 10, 3, away)),
		Entry(nil, "Unreachable ListRefused", has("a", 1, 10, 3, away, func(c *plan.Cluster) { c.Fault = plan.Hold{Reason: "ListRefused"} })),
		Entry(nil, "Refused RefusedForbidden", has("a", 1, 10, 3, func(c *plan.Cluster) { c.Fault = plan.Hold{Reason: "RefusedForbidden"} })),
		Entry(nil, "Refused AutoscaledTwice", has("a", 1, 10, 3, func(c *plan.Cluster) { c.Foreign = plan.Hold{Reason: "AutoscaledTwice"} })),
		Entry(nil, "Leaving ", has("a", 1, 10, 3, func(c *plan.Cluster) { c.Selected = false })),
		Entry(nil, "Unreachable NotRegistered", has("a", 1, 10, 3, away, func(c *plan.Cluster) { c.Registered, c.Selected = false, false })),
		Entry(nil, "absent", func() plan.Cluster { c := none("a"); c.Selected = false; return c }()),
	)

	It("adds up what is known, and lets no plan without change look like one", func() {
		v := view(Federated(2, 20), has("a", 1, 12, 5), has("b", 1, 8, 3, readyCondition(2)))
		v.Object.Status = status(v, plan.New(v))
		s := v.Object.Status
		Expect([]int32{s.CurrentReplicas, s.DesiredReplicas, s.ReadyReplicas, s.MinReplicas, s.MaxReplicas, s.CountedReplicas}).To(Equal([]int32{8, 8, 7, 2, 20, 20}))
		v.Now = noon.Add(5e9)
		Expect(status(v, plan.New(v))).To(Equal(s), "time alone changes nothing")
	})

	It("has all conditions, sorted, with the generation", func() {
		s := status(view(Federated(2, 20), none("a")), plan.New(view(Federated(2, 20), none("a"))))
		var types []string
		for _, c := range s.Conditions {
			Expect(c.ObservedGeneration).To(BeEquivalentTo(3))
			Expect(c.Message).NotTo(BeEmpty())
			types = append(types, c.Type)
		}
		Expect(types).To(Equal([]string{"Balanced", "ClustersUnreachable", "JoiningBlocked", "Limited", "MinExceeded", "OverCommitted", "Ready"}))
	})

	It("is ready with nobody to use only if it says so", func() {
		v := view(Federated(1, 10))
		Expect(condition(v, v1alpha1.ConditionReady)).To(Equal("False NoClusters"))
	})
})

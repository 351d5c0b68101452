// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("Hibernation without the right to read the Cluster", func() {
	asleep := func(v View) string { return condition(New(v), "ns-p-z1", ConditionShare) }
	reserve := says(v1alpha1.BoundsAnnotation, "0:9:2")
	condemn := func(members []Member) []Member {
		for _, m := range members {
			for i := range m.Machines {
				m.Machines[i].Object.Labels["force-deletion"] = "True"
			}
		}
		return members
	}

	DescribeTable("is recognized (law 13)", func(want string, v View) { Expect(asleep(v)).To(Equal(want)) },
		Entry("by replicas of 0", "True Hibernated", stockRights(view(shoot(reserve, 0, 0)...))),
		Entry("by replicas of 0 of the only zone", "True Hibernated", stockRights(view(shoot(reserve, 0)...))),
		Entry("not while a zone runs", "True Spread", stockRights(view(shoot(reserve, 0, 1)...))),
		Entry("by machines that are to be deleted by force", "True Hibernated", stockRights(view(condemn(shoot(reserve, 1, 1))...))),
		Entry("by replicas of 0 of all that stay", "True Hibernated", stockRights(view(with(shoot(reserve, 0, 0, 2), 2, beingDeleted)...))),
		Entry("by replicas of 0 of all that Gardener created", "True Hibernated", stockRights(view(append(shoot(reserve, 0, 0), NewMember("other", 3))...))),
		Entry("not by some of them", "True Spread", stockRights(view(append(condemn(shoot(reserve, 1)), shoot(reserve, 1, 1)[1])...))),
	)

	It("is not recognized where Gardener created no MachineDeployment", func() {
		members := append(shoot(reserve, 0), NewMember("other", 0))
		v := stockRights(view(members...))
		v.Members[0].Object.Labels = nil
		Expect(asleep(v)).To(Equal("True Spread"))
	})

	It("is not recognized by machines where there are none", func() {
		v := stockRights(view(shoot(reserve, 1, 1)...))
		for i := range v.Members {
			v.Members[i].Machines = nil
		}
		Expect(asleep(v)).To(Equal("True Spread"))
	})

	It("leaves those without a reserve as they are", func() {
		v := stockRights(view(shoot(nil, 0, 0)...))
		Expect(writes(New(v))).To(BeEmpty())
		Expect(asleep(v)).To(BeEmpty())
	})

	It("leaves those as they are whose reserve cannot be counted", func() {
		v := view(NewMember("ns-p-z1", 1, bounds("1:9:max(2,cpu=4)"), unknownTemplate))
		v.Garden.Hibernated = true
		Expect(writes(New(v))).To(BeEmpty())
	})

	It("is what the Cluster says where that can be read", func() {
		v := view(shoot(reserve, 0, 0)...)
		v.Garden = Garden{Known: true, Here: true, ClusterKnown: true, Bounds: map[string]v1alpha1.Bounds{"ns-p-z1": between(0, 5)}}
		Expect(asleep(v)).To(Equal("True Spread"))
		v.Garden.Hibernated = true
		Expect(asleep(v)).To(Equal("True Hibernated"))
	})

	DescribeTable("neither begins nor ends a reserve while it will soon be known", func(g Garden) {
		v := view(shoot(reserve, 0, 0)...)
		bounds("0:5:2")(&v.Members[0])
		share(2)(&v.Members[0])
		bounds("0:5:0")(&v.Members[1])
		share(0)(&v.Members[1])
		v.Garden = g
		v.Garden.Bounds = map[string]v1alpha1.Bounds{"ns-p-z1": between(0, 5), "ns-p-z2": between(0, 5)}
		for i := range v.Members {
			annotate := v.Members[i].Object.Annotations
			annotate[v1alpha1.GivenBoundsAnnotation] = annotate[v1alpha1.BoundsAnnotation]
			v.Members[i].Object.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: ConditionShare, Status: "True", Reason: "Spread", Message: "it was"}}
		}
		Expect(writes(New(v))).To(BeEmpty())
		Expect(asleep(v)).To(Equal("True Spread"))
		Expect(message(New(v), "ns-p-z1", ConditionShare)).To(Equal("it was"))
	},
		Entry("whether there is a Gardener", Garden{}),
		Entry("what its Cluster says", Garden{Known: true, Here: true, ClusterAwaited: true}),
	)

	DescribeTable("ends the reserve also when the process has just started, and Nodes do not show yet what machines offer", func(key, value string) {
		v := stockRights(starting(shoot(says(key, value), 0, 0)...))
		for i := range v.Members {
			share(1)(&v.Members[i])
			settling(&v.Members[i])
		}
		Expect(asleep(v)).To(Equal("True Hibernated"))
	},
		Entry("of bounds", v1alpha1.BoundsAnnotation, "0:9:cpu=8"),
		Entry("of a pool's excess", v1alpha1.PoolExcessAnnotation, "cpu=8"),
	)

	It("is nothing that clusters without a Gardener know", func() {
		v := view(shoot(reserve, 0, 0)...)
		Expect(asleep(v)).To(Equal("True Spread"))
	})

	It("ends the reserve, and brings it back", func() {
		w := newWorld(shoot(reserve, 1, 1)...)
		w.Garden = stockRights(w.View).Garden
		w.settle()
		Expect(w.shares()).To(Equal("1/1"))
		for i := range w.Members {
			w.Members[i].Object.Spec.Replicas = 0
		}
		w.settle()
		Expect(w.shares()).To(Equal("0/0"))
		for i := range w.Members {
			w.Members[i].Object.Spec.Replicas = 1
		}
		w.settle()
		Expect(w.shares()).To(Equal("1/1"))
	})
})

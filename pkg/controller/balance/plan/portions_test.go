// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// shoot are the zones of one pool of a Shoot, each with so many replicas, as Gardener makes them.
func shoot(annotations map[string]string, replicas ...int) []Member {
	names := []string{"ns-p-z1", "ns-p-z2", "ns-p-z10"}
	var all []Member
	for i, n := range replicas {
		all = append(all, NewMember(names[i], n, Labelled("p"), func(m *Member) {
			m.Object.Spec.Template.Spec.NodeTemplateSpec.Annotations = annotations
		}))
	}
	return all
}

func says(key, value string) map[string]string { return map[string]string{key: value} }

// stockRights are those that gardenlet gives.
func stockRights(v View) View {
	v.Garden = Garden{Known: true, Here: true, Forbidden: true}
	v.Missing = []string{"no Worker"}
	return v
}

func young(m *Member) { m.Object.CreationTimestamp = metav1.NewTime(Noon.Add(-time.Second)) }

var _ = Describe("Bounds of a pool by its worker's annotation", func() {
	DescribeTable("are split over zones as Gardener splits (law 12)", func(text, want string) {
		v := stockRights(view(shoot(says(v1alpha1.BoundsAnnotation, text), 1, 1, 1)...))
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal(want))
		Expect(after(v, New(v), v1alpha1.GivenBoundsAnnotation)).To(Equal(want))
	},
		Entry(nil, "3:9:4", "1:3:2/1:3:1/1:3:1"),
		Entry("the first zones have one more", "4:11:0", "2:4:0/1:4:0/1:3:0"),
		Entry("with a percentage of the pool", "3:9:10%", "1:3:1/1:3:0/1:3:0"),
		Entry("with at least two machines", "3:9:max(2,10%)", "1:3:1/1:3:0/1:3:1"),
		Entry("without an excess", "3:9", "1:3/1:3/1:3"),
		Entry("that leave room for less than the excess", "3:4:9", "1:2:1/1:1:0/1:1:0"),
	)

	It("have their excess beside them, where the worker has an annotation for it", func() {
		v := stockRights(view(shoot(map[string]string{v1alpha1.BoundsAnnotation: "3:9:4", v1alpha1.PoolExcessAnnotation: "1"}, 1, 1, 1)...))
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:3:1/1:3:0/1:3:0"))
	})

	It("give way to the Worker where that can be read", func() {
		v := view(shoot(says(v1alpha1.BoundsAnnotation, "3:9:4"), 1, 1)...)
		v.Garden = Garden{Known: true, Here: true, Bounds: map[string]v1alpha1.Bounds{"ns-p-z1": between(1, 2), "ns-p-z2": between(1, 2)}}
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:2:1/1:2:1"))
	})

	It("give way to what a user wrote on a MachineDeployment", func() {
		v := stockRights(view(shoot(says(v1alpha1.BoundsAnnotation, "3:9:4"), 1, 1, 1)...))
		bounds("1:5")(&v.Members[0])
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:5/1:3:1/1:3:1"))
	})

	It("count with the smaller max while one zone after the other is changed", func() {
		v := stockRights(view(shoot(says(v1alpha1.BoundsAnnotation, "3:9:4"), 1, 1, 1)...))
		v.Members[1].Object.Spec.Template.Spec.NodeTemplateSpec.Annotations = says(v1alpha1.BoundsAnnotation, "3:6:4")
		v.Members[2].Object.Spec.Template.Spec.NodeTemplateSpec.Annotations = nil
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:2:1/1:2:1/1:2:1"))
	})

	It("give way to a Worker that does not mention the zone", func() {
		v := view(shoot(says(v1alpha1.BoundsAnnotation, "3:9:4"), 1, 1)...)
		v.Garden = Garden{Known: true, Here: true, Bounds: map[string]v1alpha1.Bounds{"ns-p-z1": between(1, 2)}}
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:2:1/-"))
	})

	It("without an excess ask for no reserve", func() {
		p := New(stockRights(view(shoot(says(v1alpha1.BoundsAnnotation, "3:9"), 1, 1, 1)...)))
		Expect(condition(p, "ns-p-z1", ConditionShare)).To(BeEmpty())
	})

	It("are split without a Gardener, too", func() {
		v := view(shoot(says(v1alpha1.BoundsAnnotation, "3:9:4"), 1, 1, 1)...)
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:3:2/1:3:1/1:3:1"))
	})

	It("come before those of a flag", func() {
		v := view(shoot(says(v1alpha1.BoundsAnnotation, "3:9"), 1, 1, 1)...)
		v.Settings.Bounds = map[string]v1alpha1.Bounds{"ns-p-z1": between(5, 9)}
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:3/1:3/1:3"))
	})

	It("are not those of a MachineDeployment without a pool", func() {
		v := view(shoot(says(v1alpha1.BoundsAnnotation, "3:9"), 1, 1)...)
		v.Members[1].Object.Labels = nil
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("3:9/-"))
	})

	It("are split over the zones that stay", func() {
		v := view(shoot(says(v1alpha1.BoundsAnnotation, "2:8"), 1, 1, 1)...)
		beingDeleted(&v.Members[1])
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:4/-/1:4"))
	})

	DescribeTable("give the first zones one more, by the names", func(want string, names ...string) {
		v := view()
		for _, name := range names {
			m := NewMember(name, 1, Labelled("p"))
			m.Object.Spec.Template.Spec.NodeTemplateSpec.Annotations = says(v1alpha1.BoundsAnnotation, "1:3")
			v.Members = append(v.Members, m)
		}
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal(want))
	},
		Entry("of zones in the order of their numbers", "0:1/1:2", "ns-p-z10", "ns-p-z9"),
		Entry("of zones in the order of their pools' names", "0:1/1:2", "ns-q-z1", "ns-p-z2"),
		Entry("in the order of the names without numbers", "0:1/1:2", "ns-b", "ns-a"),
		Entry("in the order of the names, of which one has no number", "0:1/1:2", "ns-q", "ns-p-z1"),
		Entry("in the order of their names if one ends with 0 and one has no number", "0:1/1:2", "ns-p-z0", "ns-p-z"),
	)

	It("are split once the newest zone is ten seconds old", func() {
		for age, want := range map[time.Duration]string{10*time.Second - 1: "-/-", 10 * time.Second: "1:2/1:2"} {
			v := view(shoot(says(v1alpha1.BoundsAnnotation, "2:4"), 1, 1)...)
			v.Members[1].Object.CreationTimestamp = metav1.NewTime(Noon.Add(-age))
			Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal(want), "%v", age)
		}
	})

	It("that a zone has count while another zone is new", func() {
		v := stockRights(view(shoot(says(v1alpha1.BoundsAnnotation, "2:6:4"), 1, 1)...))
		given("1:3:1")(&v.Members[0])
		young(&v.Members[1])
		p := New(v)
		Expect(shares(v, p)).To(Equal("2/-"))
		Expect(after(v, p, v1alpha1.BoundsAnnotation)).To(Equal("1:3:1/-"))
	})

	It("are split by what the valid annotations say while another zone's is invalid", func() {
		v := stockRights(view(shoot(says(v1alpha1.BoundsAnnotation, "2:6:2"), 1, 1)...))
		v.Members[1].Object.Spec.Template.Spec.NodeTemplateSpec.Annotations = says(v1alpha1.BoundsAnnotation, "many")
		p := New(v)
		Expect(after(v, p, v1alpha1.BoundsAnnotation)).To(Equal("1:3:1/1:3:1"))
		Expect(condition(p, "ns-p-z2", ConditionShare)).To(Equal("False Invalid"))
	})

	It("are not split before all zones are there", func() {
		v := stockRights(view(shoot(says(v1alpha1.BoundsAnnotation, "3:9:4"), 3)...))
		young(&v.Members[0])
		p := New(v)
		Expect(writes(p)).To(BeEmpty())
		Expect(p.Again).To(Equal(9 * time.Second))
		w := newWorld(v.Members...)
		w.Garden = v.Garden
		w.pass(time.Minute)
		w.settle()
		Expect(w.each(func(m Member) string { return m.Object.Annotations[v1alpha1.BoundsAnnotation] })).To(Equal("3:9:4"))
	})

	DescribeTable("leave the reserve as it is in every wrong form, and say what to write", func(key, text string) {
		members := shoot(says(key, text), 1, 1, 1)
		for i := range members {
			given("1:3:1")(&members[i])
			share(1)(&members[i])
		}
		if key == v1alpha1.PoolExcessAnnotation {
			for i := range members {
				members[i].Object.Spec.Template.Spec.NodeTemplateSpec.Annotations[v1alpha1.BoundsAnnotation] = "3:9"
			}
		}
		v := stockRights(view(members...))
		p := New(v)
		Expect(writes(p)).To(BeEmpty())
		Expect(condition(p, "ns-p-z1", ConditionShare)).To(Equal("False Invalid"))
		Expect(message(p, "ns-p-z1", ConditionShare)).To(ContainSubstring("write "))
	},
		Entry(nil, v1alpha1.BoundsAnnotation, "3-9-4"), Entry(nil, v1alpha1.BoundsAnnotation, "9"), Entry(nil, v1alpha1.BoundsAnnotation, " 3:9:4"),
		Entry(nil, v1alpha1.BoundsAnnotation, "3:9:four"), Entry(nil, v1alpha1.BoundsAnnotation, "-1:9:4"), Entry(nil, v1alpha1.BoundsAnnotation, "3:9:4:1"),
		Entry(nil, v1alpha1.PoolExcessAnnotation, "many"), Entry(nil, v1alpha1.PoolExcessAnnotation, "-1"), Entry(nil, v1alpha1.PoolExcessAnnotation, "10 %"),
	)
})

var _ = Describe("Balance by a worker's annotation", func() {
	DescribeTable("is", func(own, worker, want string) {
		members := shoot(says(v1alpha1.BalanceAnnotation, worker), 2, 2, 2)
		for i := range members {
			if own != "" {
				Annotate(v1alpha1.BalanceAnnotation, own)(&members[i])
			}
		}
		Expect(condition(New(view(members...)), "ns-p-z1", ConditionBalanced)).To(Equal(want))
	},
		Entry("on for all zones of the pool", "", "ScaleUp", "True Even"),
		Entry("off", "", "Off", ""),
		Entry("what the MachineDeployment itself has", "Off", "ScaleUp", ""),
		Entry("what the MachineDeployment itself has, also if the worker's is invalid", "ScaleUp", "Sideways", "True Even"),
		Entry("refused in an unknown mode", "", "Sideways", "False Invalid"),
		Entry("refused in an unknown mode of the MachineDeployment", "Sideways", "ScaleUp", "False Invalid"),
	)

	It("has replicas applied only as far as they are split", func() {
		w := newWorld(shoot(says(v1alpha1.BalanceAnnotation, "ScaleUp"), 2, 2, 2)...)
		Expect(writes(New(w.View))).To(Equal("ns-p-z1: applied-replicas=2; ns-p-z2: applied-replicas=2; ns-p-z10: applied-replicas=2"))
	})
})

var _ = Describe("A Gardener whose Worker may not be read", func() {
	It("has no reserve without a max, and the condition says what to write (law 11)", func() {
		v := stockRights(view(shoot(says(v1alpha1.PoolExcessAnnotation, "2"), 1, 1, 1)...))
		p := New(v)
		Expect(shares(v, p)).To(Equal("0/0/0"))
		Expect(condition(p, "ns-p-z1", ConditionShare)).To(Equal("False MaximumUnknown"))
		Expect(message(p, "ns-p-z1", ConditionShare)).To(ContainSubstring("set the worker annotation " + v1alpha1.BoundsAnnotation))
		Expect(message(p, "ns-p-z1", ConditionRights)).To(Equal("no Worker"))
	})

	It("takes away bounds of a Worker that could be read before", func() {
		v := stockRights(view(shoot(says(v1alpha1.PoolExcessAnnotation, "2"), 1)...))
		given("1:5:2")(&v.Members[0])
		share(2)(&v.Members[0])
		Expect(shares(v, New(v))).To(Equal("0"))
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("-"))
	})

	It("gives no growth to a member whose max is not known (law 11)", func() {
		growing := func() View {
			v := view(shoot(nil, 2, 2)...)
			for i := range v.Members {
				ScaleUp(&v.Members[i])
				Applied(2)(&v.Members[i])
			}
			v.Members[0].Object.Spec.Replicas = 6
			return v
		}
		Expect(writes(New(stockRights(growing())))).To(Equal("ns-p-z1: applied-replicas=6"))
		v := growing()
		v.Garden = Garden{}
		Expect(writes(New(v))).To(Equal("ns-p-z1: applied-replicas=6"), "while nothing is known of a Gardener")
		Expect(writes(New(growing()))).To(ContainSubstring("move"), "without a Gardener, there is no max")
		v = stockRights(growing())
		for i := range v.Members {
			v.Members[i].Object.Labels = map[string]string{}
		}
		Expect(writes(New(v))).To(ContainSubstring("move"), "Gardener did not create these")
	})

	It("moves no machine between members whose max is not known (law 11)", func() {
		v := view(shoot(nil, 4, 1)...)
		for i := range v.Members {
			Continuous(&v.Members[i])
			Applied([]int{4, 1}[i])(&v.Members[i])
		}
		Expect(writes(New(v))).To(ContainSubstring("move"), "without a Gardener, there is no max")
		p := New(stockRights(v))
		Expect(writes(p)).To(BeEmpty())
		Expect(condition(p, "ns-p-z1", ConditionBalanced)).To(Equal("True Even"))
	})

	It("writes nothing where nothing is asked for", func() {
		v := stockRights(view(shoot(nil, 1, 0)...))
		p := New(v)
		Expect(writes(p)).To(BeEmpty())
		Expect(p.Outcomes[0].Conditions).To(BeEmpty())
		v.Members = shoot(nil, 0, 0)
		Expect(writes(New(v))).To(BeEmpty())
	})
})

var _ = Describe("A Gardener of which nothing is known yet", func() {
	It("leaves shares of pools without bounds as they are", func() {
		for _, garden := range []Garden{{}, {Here: true}} {
			v := view(shoot(says(v1alpha1.PoolExcessAnnotation, "2"), 1, 1)...)
			v.Garden = garden
			Expect(writes(New(v))).To(BeEmpty())
			share(5)(&v.Members[0])
			Expect(shares(v, New(v))).To(Equal("5/-"))
		}
	})

	It("gives to other members what is missing beside a share that stays as it is", func() {
		v := view(shoot(says(v1alpha1.PoolExcessAnnotation, "3"), 1, 1)...)
		v.Garden = Garden{}
		share(2)(&v.Members[0])
		bounds("1:9")(&v.Members[1])
		Expect(shares(v, New(v))).To(Equal("2/1"))
	})

	It("has no reserve before the Worker has bounds", func() {
		v := view(shoot(says(v1alpha1.PoolExcessAnnotation, "2"), 1)...)
		v.Garden = Garden{Known: true, Here: true}
		Expect(shares(v, New(v))).To(Equal("0"))
	})
})

// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// between are bounds without an excess.
func between(low, high int32) v1alpha1.Bounds { return v1alpha1.Bounds{Min: low, Max: high} }

func given(text string) Change {
	return func(m *Member) {
		bounds(text)(m)
		Annotate(v1alpha1.GivenBoundsAnnotation, text)(m)
	}
}

var _ = Describe("Bounds", func() {
	// worker has a Gardener's Worker give bounds to a, b and c.
	worker := func(v View, all ...v1alpha1.Bounds) View {
		v.Garden.Bounds = map[string]v1alpha1.Bounds{}
		for i, b := range all {
			v.Garden.Bounds[string(rune('a'+i))] = b
		}
		return v
	}
	three := func(b v1alpha1.Bounds) []v1alpha1.Bounds { return []v1alpha1.Bounds{b, b, b} }

	DescribeTable("are written with the share of the pool's excess", func(want string, v View) {
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal(want))
		Expect(after(v, New(v), v1alpha1.GivenBoundsAnnotation)).To(Equal(want))
	},
		Entry("3 to 9 over three zones", "1:3:2/1:3:1/1:3:1", worker(view(poolOf("4", 1, 1, 1)...), three(between(1, 3))...)),
		Entry("unequal zones", "2:4:1/1:3:1/1:3:1", worker(view(poolOf("3", 2, 1, 1)...), between(2, 4), between(1, 3), between(1, 3))),
		Entry("zones without room for their share", "2:2:0/1:3:2/1:3:1", worker(view(poolOf("3", 2, 1, 2)...), between(2, 2), between(1, 3), between(1, 3))),
		Entry("after a change", "1:5:2/1:5:2/1:5:2", worker(view(with(poolOf("6", 1, 1, 1), 0, given("1:3:2"))...), three(between(1, 5))...)),
		Entry("none that a pool has", "1:3/1:3/1:3", worker(view(NewMember("a", 1), NewMember("b", 1), NewMember("c", 1)), three(between(1, 3))...)),
		Entry("a pool that is shut", "0:0:0/0:0:0/0:0:0", worker(view(poolOf("4", 0, 0, 0)...), three(between(0, 0))...)),
		Entry("one that the Worker does not know", "1:3:1/-", worker(view(poolOf("2", 1, 1)...), between(1, 3))),
	)

	It("count before they are written", func() {
		v := worker(view(poolOf("4", 1, 3, 3)...), between(1, 9), between(1, 4), between(1, 3))
		Expect(shares(v, New(v))).To(Equal("3/1/0"))
	})

	It("contain no share of a machine that was created for a move, in a pool without an excess", func() {
		v := worker(view(continuous("a", 4), created("b", 1)), between(1, 5), between(1, 5))
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:5/1:5"))
	})

	It("contain no machine that was created for a move", func() {
		v := worker(view(continuous("a", 4, Labelled("p"), Excess("2"), share(1), ready(1)), created("b", 1, Labelled("p"), Excess("2"), share(2), ready(1))), between(1, 5), between(1, 5))
		Expect(shares(v, New(v))).To(Equal("1/2"))
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:5:1/1:5:1"))
	})

	It("of an older offer do not limit growth", func() {
		v := worker(view(NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), given("1:2"))), between(1, 9), between(1, 9))
		Expect(writes(New(v))).To(ContainSubstring(`"to":{"b":2}`))
	})

	It("of a user limit growth, whatever is offered", func() {
		v := worker(view(NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), bounds("1:3"))), between(1, 9), between(1, 9))
		Expect(writes(New(v))).To(ContainSubstring(`"to":{"b":1}`))
	})

	It("that were given once do not limit growth any more when nothing is offered", func() {
		v := view(NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), given("1:2")))
		Expect(writes(New(v))).To(Equal(`a: applied-replicas=4 move={"id":"11","to":{"b":2}}; b: -bounds -given-bounds`))
	})

	It("are the user's where a user wrote them", func() {
		v := worker(view(with(poolOf("3", 1, 1, 1), 0, bounds("1:7"))...), three(between(1, 3))...)
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:7/1:3:1/1:3:1"))
		Expect(after(v, New(v), v1alpha1.GivenBoundsAnnotation)).To(Equal("-/1:3:1/1:3:1"))
	})

	It("are the user's where a user changed ours, and ours again where he took them away", func() {
		v := worker(view(with(poolOf("3", 1, 1, 1), 0, given("1:3:1"), bounds("2:8"))...), three(between(1, 3))...)
		p := New(v)
		Expect(after(v, p, v1alpha1.BoundsAnnotation)).To(Equal("2:8/1:3:1/1:3:1"))
		Expect(of(p, "a").Write.Annotations).To(HaveKeyWithValue(v1alpha1.GivenBoundsAnnotation, ""))
		w := newWorld(v.Members...)
		w.Garden = v.Garden
		w.settle()
		delete(w.Members[0].Object.Annotations, v1alpha1.BoundsAnnotation)
		w.settle()
		Expect(w.each(func(m Member) string { return m.Object.Annotations[v1alpha1.BoundsAnnotation] })).To(Equal("1:3:1/1:3:1/1:3:1"))
	})

	It("are ours again in one write where a user took ours away", func() {
		v := worker(view(NewMember("a", 1, Annotate(v1alpha1.GivenBoundsAnnotation, "1:3"))), between(1, 3))
		Expect(writes(New(v))).To(Equal("a: bounds=1:3"))
	})

	It("that were given limit growth while it is unknown whether there is a Gardener", func() {
		v := view(NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), given("1:3")))
		v.Garden = Garden{}
		v.Settings.Bounds = map[string]v1alpha1.Bounds{"b": between(1, 9)}
		Expect(writes(New(v))).To(ContainSubstring(`"to":{"b":1}`))
	})

	It("are left while it is unknown whether there is a Gardener", func() {
		v := view(NewMember("a", 1, given("1:3")))
		v.Garden.Known = false
		v.Settings.Bounds = map[string]v1alpha1.Bounds{"a": between(5, 9)}
		Expect(writes(New(v))).To(BeEmpty())
	})

	It("go with what gave them, and the field for excess is what it was", func() {
		w := newWorld(NewMember("a", 1, ExcessField(3)), NewMember("b", 1))
		w.Settings.Bounds = map[string]v1alpha1.Bounds{"a": {Min: 1, Max: 9, Excess: &v1alpha1.Excess{Count: ptr.To[int32](1)}}}
		w.settle()
		Expect(w.Members[0].Object.Annotations).To(HaveKeyWithValue(v1alpha1.BoundsAnnotation, "1:9:1"))
		*w.Members[0].Object.Spec.ExcessReplicas = 1 // the controller of MachineDeployments shows what bounds come to
		w.Settings.Bounds = nil
		w.settle()
		Expect(w.Members[0].Object.Annotations).To(BeEmpty())
		Expect(*w.Members[0].Object.Spec.ExcessReplicas).To(BeEquivalentTo(3))
	})

	It("keep what the field held, also where a client has just removed it", func() {
		v := worker(view(NewMember("a", 1, Annotate(v1alpha1.WantedExcessAnnotation, "3"))), between(1, 9))
		v.Members[0].Object.Labels = map[string]string{PoolLabel: "p"}
		Excess("1")(&v.Members[0])
		Expect(after(v, New(v), v1alpha1.OwnExcessAnnotation)).To(Equal("3"))
	})

	It("of a flag count where no Worker gives any", func() {
		v := worker(view(NewMember("a", 1), NewMember("b", 1)), between(1, 3))
		v.Settings.Bounds = map[string]v1alpha1.Bounds{"a": between(5, 9), "b": between(5, 9)}
		Expect(after(v, New(v), v1alpha1.BoundsAnnotation)).To(Equal("1:3/5:9"))
	})

	It("that cannot be understood concern the member that has them", func() {
		v := worker(view(with(poolOf("3", 1, 1, 1), 0, bounds("many"))...), three(between(1, 3))...)
		p := New(v)
		Expect(condition(p, "a", ConditionShare)).To(Equal("False Invalid"))
		Expect(after(v, p, v1alpha1.BoundsAnnotation)).To(Equal("many/1:3:2/1:3:1"), "its reserve stays as it is, and others have the pool's")
	})
})

var _ = DescribeTable("The field for excess, while a share or bounds take its place,", func(want string, changes ...Change) {
	Expect(writes(New(view(NewMember("a", 1, changes...))))).To(Equal(want))
},
	Entry("has its reserve of one kept", "a: share=2 own-excess=1", Excess("2"), ExcessField(1)),
	Entry("has no reserve to keep", "a: share=2", Excess("2"), ExcessField(0)),
	Entry("has what it contained first kept, not what it shows since", "", bounds("1:9:2"), ExcessField(2), kept(1)),
	Entry("has what it shows kept nowhere", "", bounds("1:9:2"), ExcessField(2)),
	Entry("is restored after that", "a: excess=1 -share -own-excess", bounds("1:9"), ExcessField(2), kept(1), share(2)),
	Entry("is restored after that where a client has removed it", "a: excess=1 -share -own-excess", bounds("1:9"), kept(1), share(2)),
	Entry("has nothing to restore where it shows the same", "a: -share -own-excess", bounds("1:9"), ExcessField(1), kept(1), share(2)),
	Entry("is 0 again if it was empty", "a: excess=0 -share", bounds("1:9"), ExcessField(2), share(2)),
)

var _ = Describe("Bounds by flag", func() {
	DescribeTable("are read", func(text, want string) {
		namespace, name, b, err := ParseNodes(text)
		Expect(err).NotTo(HaveOccurred())
		Expect(namespace + " " + name + " " + b.String()).To(Equal(want))
	},
		Entry("with a count", "1:10:2:shoot--a--b.pool-z1", "shoot--a--b pool-z1 1:10:2"),
		Entry("with a percentage", "1:10:5%:ns.pool", "ns pool 1:10:5%"),
		Entry("with resources", "1:10:cpu=16,memory=64Gi:ns.pool", "ns pool 1:10:cpu=16,memory=64Gi"),
		Entry("without", "1:10:ns.pool", "ns pool 1:10:0"),
		Entry("of a name with a dot", "1:10:ns.pool.z1", "ns pool.z1 1:10:0"),
	)

	DescribeTable("are refused", func(text string) {
		_, _, _, err := ParseNodes(text)
		Expect(err).To(MatchError(ContainSubstring("write min:max:excess:namespace.name, as in 1:10:2:default.pool-z1")))
	},
		Entry(nil, ""), Entry(nil, "pool"), Entry(nil, "1:ns.pool"), Entry(nil, "1:2:3:4:ns.pool"), Entry(nil, "1:2:pool"),
		Entry(nil, "1:2:.pool"), Entry(nil, "1:2:ns."), Entry(nil, "ns.pool"), Entry(nil, "."),
	)

	DescribeTable("are refused with what is wrong about the numbers", func(text, want string) {
		_, _, _, err := ParseNodes(text)
		Expect(err).To(MatchError(And(HavePrefix("%q: bounds ", text), ContainSubstring(want))))
	},
		Entry(nil, "a:2:ns.pool", "write min:max"), Entry(nil, "3:2:ns.pool", "min must not be above max"), Entry(nil, "1:2:x:ns.pool", "write min:max"),
	)
})

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

// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// unrecorded is for MachineSets that do not say for which number their size was decided.
func unrecorded(s *mcm.MachineSet) {
	delete(s.Annotations, desired)
	delete(s.Annotations, maximum)
}

var _ = DescribeTable("Replicas change",
	func(d *api.MachineDeployment, to int, sets []part, want string) {
		v := viewOf(d, sets...)
		d.Spec.Replicas = int32(to)
		Expect(moves(New(v))).To(Equal(want))
	},
	Entry("D2, D3: the only set has them", newDeployment(2), 3, parts(of("new", 2, "rr")), "new 2 -> 3, new creates 1"),
	Entry("D2, D3: fewer, too", newDeployment(2), 1, parts(of("new", 2, "rr")), "new 2 -> 1, delete new-0"),
	Entry("D1: a set with less than none has what it has", newDeployment(2), 3, parts(of("a", -1, "", isMarked), of("new", 2, "rr")), "a -1 -> 0, new 2 -> 3, new creates 1"),
	Entry("D1: which are the machines that are not leaving", newDeployment(3), 3, parts(of("a", -1, "rrl"), of("new", 1, "p")), "a -1 -> 2"),
	Entry("D3: none", newDeployment(2), 0, parts(of("new", 2, "rr")), "new 2 -> 0, delete new-0, delete new-1"),
	Entry("D3: the new set, where none has machines", newDeployment(0), 2, parts(of("a", 0, ""), of("new", 0, "")), "new 0 -> 2, new creates 2"),
	Entry("D3: the record alone, where the size is right", newDeployment(2), 3, parts(of("new", 3, "rrr")), "new desired-replicas 3, new max-replicas 4"),
	Entry("D3: the old set, while it is the only one with machines", newDeployment(2), 4, parts(of("old", 2, "rr"), of("new", 0, "")), "old 2 -> 4, new 0 -> 1, old creates 2, new creates 1"),
	Entry("D2: not a set without a record", newDeployment(2), 3, parts(of("old", 2, "rr", unrecorded), of("new", 1, "p", unrecorded)), "new 1 -> 2, new creates 1"),
	Entry("D2: nothing while there is no new set: that is a rollout", newDeployment(2), 3, parts(of("old", 2, "rr")), "new set of 2"),
	Entry("D4: old sets go when the new one has all", newDeployment(2), 2, parts(of("old", 2, "rr", func(s *mcm.MachineSet) { s.Annotations[desired] = "3" }), of("new", 2, "rr")), "old 2 -> 0, delete old-0, delete old-1"),
	Entry("D5: the new set has them in a rollout, within surge", newDeployment(3), 5, parts(of("old", 3, "rrr"), of("new", 1, "p")),
		"old desired-replicas 5, old max-replicas 6, new 1 -> 3, new creates 2"),
	Entry("D5: it grows from none", newDeployment(3, rolls("1", "1")), 5, parts(of("a", 1, "r"), of("b", 1, "r"), of("new", 0, "")),
		"a desired-replicas 5, a max-replicas 6, b desired-replicas 5, b max-replicas 6, new 0 -> 4, new creates 4"),
	Entry("D5: it never has more than replicas", newDeployment(3, rolls("3", "0")), 4, parts(of("old", 1, "r"), of("new", 3, "ppp")), "old desired-replicas 4, old max-replicas 7, new 3 -> 4, new creates 1"),
	Entry("D5: nor grows when replicas fall within surge", newDeployment(3, rolls("3", "0")), 2, parts(of("old", 1, "r"), of("new", 2, "pp")), "old desired-replicas 2, old max-replicas 5, new desired-replicas 2, new max-replicas 5"),
	Entry("D6: all shrink in proportion", newDeployment(8, rolls("2", "0")), 3, parts(of("old", 7, "rrrrrrr"), of("new", 3, "ppp")), "old 7 -> 3, new 3 -> 2, delete old-0, delete old-1, delete old-2, delete old-3, delete new-0"),
	Entry("D6: and the rollout goes on", newDeployment(4, rolls("2", "0")), 1, parts(of("a", 2, "rr"), of("b", 2, "rr"), of("new", 2, "pp")),
		"a 2 -> 0, b 2 -> 1, new 2 -> 1, delete a-0, delete a-1, delete b-0, delete new-0"),
	Entry("D6: all go, where none is wanted", newDeployment(3), 0, parts(of("old", 3, "rrr"), of("new", 1, "p")), "old 3 -> 0, new 1 -> 0, delete old-0, delete old-1, delete old-2, delete new-0"),
)

var _ = DescribeTable("Replicas change while it is paused",
	func(d *api.MachineDeployment, to int, sets []part, want string) {
		v := viewOf(d, sets...)
		d.Spec.Replicas = int32(to)
		Expect(moves(New(v))).To(Equal(want))
	},
	Entry("D8, D3: the only set has them, and no new one is created", newDeployment(2, paused), 3, parts(of("old", 2, "rr")), "old 2 -> 3, old creates 1"),
	Entry("D8, D3: the newest old set, where none has machines", newDeployment(0, paused), 2, parts(of("a", 0, ""), of("b", 0, "")), "b 0 -> 2, b creates 2"),
	Entry("D8, D3: no set, where there is none", newDeployment(0, paused), 2, parts(), ""),
	Entry("D8, D5: the new set has them, surge included", newDeployment(3, paused), 5, parts(of("old", 3, "rrr"), of("new", 1, "r")), "old desired-replicas 5, old max-replicas 6, new 1 -> 3, new creates 2"),
	Entry("D8, D5: no set, if there is no new one", newDeployment(3, paused), 5, parts(of("a", 2, "rr"), of("b", 1, "r")), "a desired-replicas 5, a max-replicas 6, b desired-replicas 5, b max-replicas 6"),
	Entry("D8, D6: all shrink in proportion", newDeployment(3, paused), 1, parts(of("old", 3, "rrr"), of("new", 1, "r")), "old 3 -> 1, new desired-replicas 1, new max-replicas 2, delete old-0, delete old-1"),
	Entry("D8, D6: what is left by rounding is of the largest", newDeployment(5, rolls("2", "0"), paused), 2, parts(of("a", 3, "rrr"), of("b", 3, "rrr"), of("new", 1, "p")),
		"a 3 -> 1, b 3 -> 2, new desired-replicas 2, new max-replicas 4, delete a-0, delete a-1, delete b-0"),
	Entry("D8, D6: what is left by rounding is of the largest, wherever that stands", newDeployment(5, rolls("2", "0"), paused), 2, parts(of("a", 1, "r"), of("b", 4, "rrrr"), of("new", 2, "pp")),
		"b 4 -> 2, new 2 -> 1, a desired-replicas 2, a max-replicas 4, delete b-0, delete b-1, delete new-0"),
	Entry("D8, D6: what is left by rounding is of the oldest of those, also if that is the new one", newDeployment(5, rolls("2", "0"), paused), 2, parts(of("new", 3, "ppp"), of("a", 3, "rrr"), of("b", 1, "r")),
		"revision 4, new 3 -> 1, new revision 4, new revision-history 1, a 3 -> 2, b desired-replicas 2, b max-replicas 4, delete new-0, delete new-1, delete a-0"),
	Entry("D8, D6: all go, where none is wanted", newDeployment(3, paused), 0, parts(of("old", 3, "rrr"), of("new", 1, "r")), "old 3 -> 0, new 1 -> 0, delete old-0, delete old-1, delete old-2, delete new-0"),
	Entry("D8, D6: also if nothing says what their sizes were decided for", newDeployment(3, paused), 0, parts(of("old", 3, "rrr", unrecorded), of("new", 1, "r", unrecorded)),
		"old 3 -> 0, new 1 -> 0, delete old-0, delete old-1, delete old-2, delete new-0"),
	Entry("D8, D6: from the largest, where nothing says what their sizes were decided for", newDeployment(3, paused, rolls("0", "1")), 1, parts(of("a", 1, "r", unrecorded), of("new", 3, "rrr", unrecorded)),
		"new 3 -> 0, a desired-replicas 1, a max-replicas 1, delete new-0, delete new-1, delete new-2"),
	Entry("D8, D4: old sets go when the new one has all", newDeployment(2, paused), 2, parts(of("old", 2, "rr"), of("new", 2, "rr")), "old 2 -> 0, delete old-0, delete old-1"),
	Entry("D8, D4: but not while those are not available", newDeployment(2, paused), 2, parts(of("old", 1, "r"), of("new", 2, "rp")), ""),
	Entry("D8, D4: nor while it has them only because one is leaving", newDeployment(2, paused), 2, parts(of("old", 1, "r"), of("new", 1, "rl")), ""),
	Entry("D8, D3: whatever machines of others are leaving", newDeployment(0, paused), 1, parts(of("a", 0, "tt"), of("b", 0, "")), "b 0 -> 1, b creates 1"),
	Entry("D8: nothing in other strategies", newDeployment(3, paused, recreates), 5, parts(of("old", 2, "rr"), of("new", 1, "r")), ""),
	Entry("E5: no step of a rollout", newDeployment(3, paused), 3, parts(of("old", 3, "rrr"), of("new", 1, "r")), ""),
)

var _ = It("T13: The record of a size says for which number, surge included", func() {
	d := newDeployment(4, rolls("50%", "0"))
	p := New(viewOf(d))
	Expect(p.NewSets[0].Annotations).To(And(HaveKeyWithValue(desired, "4"), HaveKeyWithValue(maximum, "6")))
	recreates(d)
	p = New(viewOf(d))
	Expect(p.NewSets[0].Annotations).To(And(HaveKeyWithValue(desired, "4"), HaveKeyWithValue(maximum, "4")))
})

var _ = It("D9: A change of a size is reported once, and one of the record alone is not", func() {
	d := newDeployment(2)
	v := viewOf(d, of("new", 2, "rr"))
	d.Spec.Replicas = 3
	p := New(v)
	Expect(p.Sets).To(HaveLen(1))
	Expect(p.Sets[0].Events).To(ConsistOf(HaveField("Message", "Scaled up machine set new to 3")))
	v = viewOf(newDeployment(2), of("new", 3, "rrr"))
	v.Sets[0].Object.Annotations[desired] = "2"
	p = New(v)
	Expect(p.Sets[0].Events).To(ConsistOf(HaveField("Message", "Scaled down machine set new to 2")))
	v = viewOf(newDeployment(2), of("new", 2, "rr"))
	v.Sets[0].Object.Annotations[desired] = "1"
	p = New(v)
	Expect(p.Sets).To(HaveLen(1))
	Expect(p.Sets[0].Events).To(BeEmpty())
})

var _ = It("D11: A surge without bounds is one", func() {
	surge, _ := Bounds(newDeployment(3, rolls("2147483647", "0")))
	Expect(surge + 3).To(BeNumerically(">", 3))
	Expect(moves(New(viewOf(newDeployment(3, rolls("2147483647", "0")), of("old", 3, "rrr"), of("new", 1, "p"))))).To(Equal("new 1 -> 3, new creates 2"))
})

var _ = It("D11: Less than none is none", func() {
	surge, unavailable := Bounds(newDeployment(3, rolls("-1", "-2")))
	Expect([]int32{surge, unavailable}).To(Equal([]int32{0, 1}))
})

// drawnBounds draws a strategy.
func drawnBounds(t *rapid.T) deploymentChange {
	number := rapid.SampledFrom([]string{"0", "1", "2", "7", "10%", "34%", "50%", "100%", "130%"})
	surge, unavailable := number.Draw(t, "surge"), number.Draw(t, "unavailable")
	inPlace := func(how mcm.OrchestrationType) deploymentChange {
		return func(d *api.MachineDeployment) {
			rolls(surge, unavailable)(d)
			d.Spec.Strategy = mcm.MachineDeploymentStrategy{Type: mcm.InPlaceUpdateMachineDeploymentStrategyType, InPlaceUpdate: &mcm.InPlaceUpdateMachineDeployment{
				UpdateConfiguration: d.Spec.Strategy.RollingUpdate.UpdateConfiguration, OrchestrationType: how,
			}}
		}
	}
	return rapid.SampledFrom([]deploymentChange{rolls(surge, unavailable), rolls(surge, unavailable), recreates, inPlace(mcm.OrchestrationTypeAuto), inPlace(mcm.OrchestrationTypeManual)}).Draw(t, "strategy")
}

var _ = Describe("Arithmetic is that of machine-controller-manager", func() {
	It("D11, V3: bounds", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := newDeployment(rapid.Int32Range(0, 12).Draw(t, "replicas"), drawnBounds(t))
			surge, unavailable := Bounds(d)
			if theirs := stockOf(d); surge != controller.MaxSurge(*theirs) || unavailable != controller.MaxUnavailable(*theirs) {
				t.Fatalf("%d %d, theirs %d %d", surge, unavailable, controller.MaxSurge(*theirs), controller.MaxUnavailable(*theirs))
			}
		})
	})

	It("D6: shares", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			d := newDeployment(rapid.Int32Range(0, 12).Draw(t, "replicas"), drawnBounds(t))
			d.Status.Replicas = rapid.Int32Range(1, 12).Draw(t, "status")
			s := newSet("s", rapid.Int32Range(1, 12).Draw(t, "size"))
			if rapid.Bool().Draw(t, "recorded") {
				s.Annotations = map[string]string{maximum: fmt.Sprint(rapid.IntRange(1, 15).Draw(t, "recorded"))}
			}
			const many = -1000
			ours, theirs := ProportionOf(d, s)-s.Spec.Replicas, controller.GetProportion(s, *stockOf(d), many, 0)
			if ours != min(0, theirs) {
				t.Fatalf("%d, theirs %d", ours, theirs)
			}
		})
	})

	It("D10: the size of a new set, where all machines were created", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			number := rapid.SampledFrom([]string{"0", "1", "2", "50%"})
			d := newDeployment(rapid.Int32Range(0, 6).Draw(t, "replicas"), rolls(number.Draw(t, "surge"), number.Draw(t, "unavailable")))
			if rapid.IntRange(0, 3).Draw(t, "recreate") == 0 {
				recreates(d)
			}
			var all []part
			for i := range rapid.IntRange(0, 2).Draw(t, "sets") {
				present, terminating := rapid.IntRange(0, 4).Draw(t, "present"), rapid.IntRange(0, 2).Draw(t, "terminating")
				if d.Spec.Strategy.RollingUpdate == nil {
					present, terminating = 0, 0 // it waits for these
				}
				all = append(all, of(fmt.Sprint("old", i), int32(present), "rrrr"[:present]+"tt"[:terminating]))
			}
			v := viewOf(d, all...)
			var theirs []*mcm.MachineSet
			for _, s := range v.Sets {
				s := s.Object.DeepCopy()
				for _, c := range New(v).Statuses {
					if c.Set.UID == s.UID {
						s.Status = c.After
					}
				}
				theirs = append(theirs, s)
			}
			want, err := controller.NewISNewReplicas(stockOf(d), theirs, newSet("new", 0))
			if p := New(v); err != nil || p.NewSets[0].Spec.Replicas != want {
				t.Fatalf("%d, theirs %d %v", p.NewSets[0].Spec.Replicas, want, err)
			}
		})
	})
})

// stockOf returns a MachineDeployment as machine-controller-manager knows it.
func stockOf(d *api.MachineDeployment) *mcm.MachineDeployment {
	theirs := &mcm.MachineDeployment{ObjectMeta: *d.ObjectMeta.DeepCopy(), Status: d.Status.StockMachineDeploymentStatus}
	theirs.Spec = *d.Spec.StockMachineDeploymentSpec.DeepCopy()
	return theirs
}

var _ = It("D2: A MachineSet without machines keeps the number of replicas that it was decided for, if none are wanted", func() {
	v := viewOf(newDeployment(0), of("new", 0, "", func(s *mcm.MachineSet) { s.Annotations[desired] = "4" }))
	Expect(New(v).Sets).To(BeEmpty())
})

var _ = DescribeTable("D11: The block of another strategy does not count", func(of mcm.MachineDeploymentStrategyType, surge, unavailable int32) {
	d := newDeployment(9, rolls("5", "0"))
	d.Spec.Strategy.Type = of
	d.Spec.Strategy.InPlaceUpdate = limits{4, 2, mcm.OrchestrationTypeManual}.strategy().InPlaceUpdate
	is, may := Bounds(d)
	Expect([]int32{is, may}).To(Equal([]int32{surge, unavailable}))
},
	Entry("with RollingUpdate", mcm.RollingUpdateMachineDeploymentStrategyType, int32(5), int32(0)),
	Entry("with InPlaceUpdate", mcm.InPlaceUpdateMachineDeploymentStrategyType, int32(0), int32(2)),
	Entry("with Recreate", mcm.RecreateMachineDeploymentStrategyType, int32(0), int32(0)),
)

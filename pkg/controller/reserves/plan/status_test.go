// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
)

// holding is a MachineDeployment with machines in reserve.
func holding(p Pool, all, ready int, why string) Pool {
	Holds(all, ready, why)(&p)
	return p
}

var _ = DescribeTable("The message of a Reserve describes its progress and the reason",
	func(r *v1alpha1.Reserve, why, says string, pools ...Pool) {
		d := New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: pools}).Decisions[0]
		Expect(d.Reason + ": " + d.Message).To(Equal(why + ": " + says))
	},
	Entry("complete", Wish("r", Replicas(2)), reason.Complete, "2 of 2 machines are ready in 1 MachineDeployment", holding(Site("a", 3), 2, 2, reason.Complete)),
	Entry("complete, with more ready than it requests", Wish("r", Replicas(2)), reason.Complete, "2 of 2 machines are ready in 1 MachineDeployment", holding(Site("a", 3), 5, 5, reason.Complete)),
	Entry("growing", Wish("r", Replicas(3)), reason.Growing, "1 of 3 machines are ready in 2 MachineDeployments", holding(Site("a", 3), 2, 1, reason.Growing), Site("b", 2)),
	Entry("for a schedule", Wish("r", OfficeHours), reason.Growing, "0 of 5 machines are ready in 1 MachineDeployment; active: office-hours", Site("a", 3)),
	Entry("for two schedules", Wish("r", OfficeHours, Scheduled("noon", "0 12 * * *", "1h", 8)), reason.Growing, "0 of 8 machines are ready in 1 MachineDeployment; active: noon, office-hours", Site("a", 3)),
	Entry("not requested", Wish("r"), reason.NotRequested, "no machines are requested now", Site("a", 3)),
	Entry("not requested, by an active schedule", Wish("r", Scheduled("noon", "0 12 * * *", "1h", 0)), reason.NotRequested, "no machines are requested now; active: noon", Site("a", 3)),
	Entry("without room for one", Wish("r", Replicas(2)), reason.NoRoom,
		"0 of 2 machines are ready in 1 MachineDeployment; there is no room for 1: raise max in the bounds, select more MachineDeployments, or request less", Site("a", 3, Bounds("1:4"))),
	Entry("without room, as long as some are drained", Wish("r", Replicas(2)), reason.PoolsDrained,
		"0 of 2 machines are ready in 2 MachineDeployments; there is no room for 1, because the annotation drain-reserve removes the reserve of b", Site("a", 3, Bounds("1:4")), Site("b", 2, Annotated(machine.DrainReserveAnnotation, "true"))),
	Entry("without room, as long as it is drained, in a cluster that hibernates", Wish("r", Replicas(1)), reason.PoolsDrained,
		"0 of 1 machines are ready in 1 MachineDeployment; there is no room for 1, because the annotation drain-reserve removes the reserve of a",
		Site("a", 0, Labelled("worker.gardener.cloud/pool", "w"), Annotated(machine.DrainReserveAnnotation, "true"))),
	Entry("with room, though some are drained", Wish("r", Replicas(1)), reason.Growing,
		"0 of 1 machines are ready in 2 MachineDeployments", Site("a", 3), Site("b", 2, Annotated(machine.DrainReserveAnnotation, "true"))),
	Entry("without room, as long as a maximum is unknown", Wish("r", Replicas(2)), reason.MaximumUnknown,
		"0 of 2 machines are ready in 1 MachineDeployment; there is no room for 2, because Gardener created a, and the maximum is unknown: set the annotation bounds", Site("a", 3, Labelled("worker.gardener.cloud/pool", "w"))),
	Entry("without room for one, as long as its maximum is unknown", Wish("r", Replicas(1)), reason.MaximumUnknown,
		"0 of 1 machines are ready in 1 MachineDeployment; there is no room for 1, because Gardener created a, and the maximum is unknown: set the annotation bounds", Site("a", 3, Labelled("worker.gardener.cloud/pool", "w"))),
	Entry("with room, though a maximum is unknown", Wish("r", Replicas(1)), reason.Growing,
		"0 of 1 machines are ready in 2 MachineDeployments", Site("a", 3, Labelled("worker.gardener.cloud/pool", "w")), Site("b", 2)),
	Entry("without room for one, in a cluster that hibernates", Wish("r", Replicas(1)), reason.Hibernated,
		"the cluster is hibernated and has no reserve", Site("a", 0, Labelled("worker.gardener.cloud/pool", "w"), Bounds("1:9"))),
	Entry("with room, though the cluster hibernates", Wish("r", Replicas(1)), reason.Growing,
		"0 of 1 machines are ready in 2 MachineDeployments", Site("a", 0, Labelled("worker.gardener.cloud/pool", "w"), Bounds("1:9")), Site("b", 0)),
	Entry("where machines cannot be created", Wish("r", Replicas(2)), reason.CannotBeMade,
		"0 of 2 machines are ready in 1 MachineDeployment; machines cannot be created in a, and other MachineDeployments replace only some of them", holding(Site("a", 3), 1, 0, reason.CannotBeMade)),
)

var _ = DescribeTable("The message of a Reserve is not too long to be stored",
	func(r *v1alpha1.Reserve, why, says string, change ...func(*machine.MachineDeployment)) {
		v := View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}}
		for i := range 1000 {
			v.Pools = append(v.Pools, holding(Site(fmt.Sprintf("pool-%03d-%s", i, strings.Repeat("z", 40)), 3, change...), 1, 0, reason.CannotBeMade))
		}
		d := New(v).Decisions[0]
		Expect(d.Reason).To(Equal(why))
		Expect(d.Message).To(ContainSubstring(says))
		Expect(len(d.Message)).To(BeNumerically("<=", 32768))
	},
	Entry("for many pools whose maximum is unknown", Wish("r", Replicas(2)), reason.MaximumUnknown, "zzz and 980 more, and the maximum is unknown", Labelled("worker.gardener.cloud/pool", "w")),
	Entry("for many pools that are drained", Wish("r", Replicas(2)), reason.PoolsDrained, "zzz and 980 more", Annotated(machine.DrainReserveAnnotation, "true")),
	Entry("for many pools whose machines cannot be created", Wish("r", Replicas(2000)), reason.CannotBeMade, "zzz and 980 more, and other MachineDeployments replace only some of them"),
	Entry("for a selector that is long", Wish("r", func(r *v1alpha1.Reserve) {
		r.Spec.Pools.Selector = metav1.SetAsLabelSelector(map[string]string{"pool": strings.Repeat("z", 100_000)})
	}), reason.Invalid, "until this is fixed"),
)

var _ = Describe("A status", func() {
	It("has all numbers, the schedules and the next change", func() {
		r := Wish("r", Replicas(1), OfficeHours)
		v := View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: []Pool{holding(Site("a", 3), 2, 1, reason.Growing), holding(Site("b", 2, func(d *machine.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To[int32](2) }), 9, 9, reason.Complete)}}
		s := NewStatus(New(v).Decisions[0], Monday)
		Expect(s.Conditions).To(HaveLen(1))
		Expect(s.Conditions[0]).To(And(HaveField("Type", "Ready"), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", reason.Growing),
			HaveField("ObservedGeneration", int64(2)), HaveField("LastTransitionTime", metav1.NewTime(Monday)),
			HaveField("Message", "3 of 5 machines are ready in 2 MachineDeployments; active: office-hours")))
		s.Conditions = nil
		end := time.Date(2026, 3, 2, 18, 0, 0, 0, time.UTC)
		Expect(s.NextChange.Time.UTC()).To(Equal(end))
		Expect(s.NextChange.DesiredReplicas).To(BeEquivalentTo(1))
		s.NextChange = nil
		Expect(s).To(Equal(v1alpha1.ReserveStatus{
			ObservedGeneration: 2, DesiredReplicas: 5, Replicas: 4, ReadyReplicas: 3, ActiveSchedules: []string{"office-hours"},
			Selector: "reserve.autoscaling.evenkeel.dev/uid=uid-of-it",
			Pools:    []v1alpha1.ReservePoolStatus{{Name: "a", DesiredReplicas: 3, ReadyReplicas: 1}, {Name: "b", DesiredReplicas: 2, ReadyReplicas: 2, CountedBy: "spec.excessReplicas"}},
		}))
	})

	It("is that of the Reserve afterwards, and the one from before stays as it was", func() {
		r := Wish("r", Replicas(1))
		d := New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: two()}).Decisions[0]
		after := d.After(Monday)
		Expect(after.Name).To(Equal("r"))
		Expect(after.Status).To(Equal(NewStatus(d, Monday)))
		Expect(r.Status).To(Equal(v1alpha1.ReserveStatus{}))
	})

	It("is as it is stored, also if a schedule ends within a second (law 9)", func() {
		r := Wish("r", Scheduled("short", "0 7 * * *", "9.5555h", 3))
		s := NewStatus(New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: two()}).Decisions[0], Monday)
		text, err := json.Marshal(s.NextChange)
		Expect(err).NotTo(HaveOccurred())
		var stored v1alpha1.ReserveChange
		Expect(json.Unmarshal(text, &stored)).To(Succeed())
		Expect(stored.Time.Equal(&s.NextChange.Time)).To(BeTrue())
	})

	It("has no next change without schedules, and keeps the time of a condition that does not change", func() {
		r := Wish("r", Replicas(1))
		v := View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: two()}
		r.Status = NewStatus(New(v).Decisions[0], Monday)
		Expect(r.Status.NextChange).To(BeNil())
		Expect(NewStatus(New(v).Decisions[0], Monday.Add(time.Hour))).To(Equal(r.Status))
	})
})

var _ = It("A decision has each term with its machines, and when it is active", func() {
	r := Wish("r", Replicas(1), Amount("40%"), OfficeHours, Scheduled("night", "0 22 * * *", "6h", 50))
	d := New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: two()}).Decisions[0]
	Expect(d.Terms).To(HaveLen(3))
	Expect(d.Terms[0]).To(Equal(Term{Machines: 2, Active: true}))
	Expect(d.Terms[1]).To(And(HaveField("Schedule", "office-hours"), HaveField("Machines", 5), HaveField("Active", true)))
	Expect(d.Terms[1].Until.UTC()).To(Equal(time.Date(2026, 3, 2, 18, 0, 0, 0, time.UTC)))
	Expect(d.Terms[2]).To(And(HaveField("Schedule", "night"), HaveField("Machines", 50), HaveField("Active", false)))
	Expect(d.Terms[2].Until.UTC()).To(Equal(time.Date(2026, 3, 2, 21, 0, 0, 0, time.UTC)))
	Expect(d.Active).To(Equal([]string{"office-hours"}))
})

var _ = DescribeTable("A MachineDeployment counts as one where machines cannot be created",
	func(blocked bool, before bool, conditions ...mcm.MachineDeploymentCondition) {
		p := Site("a", 3)
		p.Deployment.Status.Conditions = conditions
		r := Wish("r", Replicas(2))
		r.Status.Pools = []v1alpha1.ReservePoolStatus{{Name: "a", DesiredReplicas: 2, Blocked: before}}
		Expect(New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: []Pool{p}}).Decisions[0].Parts[0].Blocked).To(Equal(blocked))
	},
	Entry("if the controller of MachineDeployments says so", true, false, mcm.MachineDeploymentCondition{Type: machine.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.CannotBeMade}),
	Entry("not while it grows for the first time", false, false, mcm.MachineDeploymentCondition{Type: machine.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.Growing}),
	Entry("while it grows again", true, true, mcm.MachineDeploymentCondition{Type: machine.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.Growing}),
	Entry("not once it has been ready", false, true, mcm.MachineDeploymentCondition{Type: machine.ReserveReady, Status: mcm.ConditionTrue, Reason: reason.Complete}),
	Entry("not without a condition", false, true),
	Entry("not by another condition", false, false, mcm.MachineDeploymentCondition{Type: mcm.MachineDeploymentAvailable, Status: mcm.ConditionFalse, Reason: reason.CannotBeMade},
		mcm.MachineDeploymentCondition{Type: machine.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.Growing}),
)

var _ = It("A Reserve selects the MachineDeployments of its worker pools, and no others", func() {
	of := func(worker string) func(*machine.MachineDeployment) {
		return Labelled("worker.gardener.cloud/pool", worker)
	}
	r := Wish("r", Replicas(2), func(r *v1alpha1.Reserve) { r.Spec.Pools = v1alpha1.ReservePools{WorkerPools: []string{"w", ""}} })
	v := View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: []Pool{Site("a", 3, of("w"), Bounds("1:9")), Site("b", 2, of("x"), Bounds("1:9")), Site("c", 2)}}
	Expect(spread(New(v).Decisions[0])).To(Equal("a=2"))
})

var _ = DescribeTable("A MachineDeployment without replicas",
	func(wishes *v1alpha1.Reserve, want string, pool Pool) {
		Expect(spread(New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{wishes}, Pools: []Pool{pool}}).Decisions[0])).To(Equal(want))
	},
	Entry("has all the room of its bounds", Wish("r", Replicas(5)), "a=4", Site("a", 0, Bounds("0:4"))),
	Entry("has no part of a percentage", Wish("r", Amount("50%")), "a=0", Site("a", 0)),
	Entry("has no more room if replicas are negative", Wish("r", Replicas(5)), "a=4", Site("a", -3, Bounds("0:4"))),
)

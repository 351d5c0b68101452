// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// reservesOf returns one Reserve.
func reservesOf(change ...func(*v1alpha1.Reserve)) []*v1alpha1.Reserve {
	return []*v1alpha1.Reserve{Wish("r", change...)}
}

// scheduledAmount adds a schedule with an amount.
func scheduledAmount(text string) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) {
		r.Spec.Schedules = append(r.Spec.Schedules, v1alpha1.ReserveSchedule{Name: "s", Start: "0 20 * * *", Duration: "1h", Amount: v1alpha1.ReserveAmount(text)})
	}
}

var _ = Describe("The view of a namespace", func() {
	// seen returns what is read of a MachineDeployment whose machines have four CPUs, and of which two
	// machines are in reserve, one of them ready.
	seen := func(reserves []*v1alpha1.Reserve, change ...func(*machine.MachineDeployment)) Pool {
		d := Site("a", 3, change...).Deployment
		d.UID, d.Spec.Template.Spec.Class.Name = "uid", fixture.Class
		set, machines := fixture.Spares(d, 2, 1)
		class := fixture.MachineClass(fixture.Class, func(c *mcm.MachineClass) {
			c.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{"cpu": resource.MustParse("4")}}
		})
		source := pool.NewList(pool.Objects{Sets: []*mcm.MachineSet{set}, Machines: machines, Classes: []*mcm.MachineClass{class}})
		return NewView(Monday, reserves, []*machine.MachineDeployment{d}, source).Pools[0]
	}

	It("has the time, the Reserves and each MachineDeployment", func() {
		a, b := Site("a", 3).Deployment, Site("b", 2).Deployment
		v := NewView(Monday, reservesOf(), []*machine.MachineDeployment{a, b}, pool.NewList(pool.Objects{}))
		Expect(v).To(Equal(View{Now: Monday, Reserves: reservesOf(), Pools: []Pool{{Deployment: a}, {Deployment: b}}}))
	})

	It("counts spare machines if there is a Reserve", func() {
		Expect(seen(reservesOf())).To(And(HaveField("Exist", 2), HaveField("Ready", 1)))
		Expect(seen(nil)).To(And(HaveField("Exist", 0), HaveField("Ready", 0)))
	})

	DescribeTable("has the capacity of machines if something depends on it",
		func(known bool, reserves []*v1alpha1.Reserve, change ...func(*machine.MachineDeployment)) {
			p := seen(reserves, change...)
			if !known {
				Expect(p.Allocatable).To(BeNil())
				return
			}
			Expect(p.Allocatable.Cpu().Value()).To(BeEquivalentTo(4))
		},
		Entry("a number", false, reservesOf(Replicas(2))),
		Entry("a percentage", false, reservesOf(Amount("20%"))),
		Entry("resources", true, reservesOf(Amount("cpu=10"))),
		Entry("another resource", true, reservesOf(Amount("memory=10Gi"))),
		Entry("a schedule's percentage", false, reservesOf(scheduledAmount("20%"))),
		Entry("a schedule's resources", true, reservesOf(scheduledAmount("cpu=10"))),
		Entry("one of two Reserves", true, append(reservesOf(Replicas(2)), reservesOf(Amount("cpu=10"))...)),
		Entry("bounds with an excess", true, reservesOf(Replicas(2)), Bounds("1:9:cpu=4")),
		Entry("bounds without one", false, reservesOf(Replicas(2)), Bounds("1:9")),
		Entry("bounds that cannot be read", false, reservesOf(Replicas(2)), Bounds("many")),
		Entry("bounds, and no Reserve", false, nil, Bounds("1:9:cpu=4")),
	)
})

var _ = Describe("What is not known", func() {
	It("is a resource that only some machines have", func() {
		gpu := Sized(Site("a", 3), "8")
		gpu.Allocatable["nvidia.com/gpu"] = resource.MustParse("1")
		p := New(View{Now: Monday, Reserves: reservesOf(Amount("nvidia.com/gpu=1")), Pools: []Pool{gpu, Sized(Site("b", 2), "4")}})
		Expect(p.Decisions[0].Reason).To(Equal(reason.CapacityUnknown))
		p = New(View{Now: Monday, Reserves: reservesOf(Amount("nvidia.com/gpu=1")), Pools: []Pool{gpu}})
		Expect(spread(p.Decisions[0])).To(Equal("a=1"))
	})

	It("is how many devices machines have, and the message says of which MachineDeployment, and why", func() {
		gpu, booting := Sized(Site("a", 3), "8"), Sized(Site("b", 2), "8")
		gpu.Allocatable["devices.gpu"] = resource.MustParse("4")
		booting.Unknown = pool.Unknown{"devices.gpu": "no Node is ready", "devices.other": "of no interest"}
		v := View{Now: Monday, Reserves: reservesOf(Amount("devices.gpu=9")), Pools: []Pool{gpu, booting}}
		Expect(v.DeviceClasses()).To(HaveExactElements("gpu"))
		d := New(v).Decisions[0]
		Expect(d.Reason).To(Equal(reason.CapacityUnknown))
		Expect(d.Message).To(And(ContainSubstring("devices.gpu: MachineDeployment b: no Node is ready"), Not(ContainSubstring("of no interest"))))
		v.Pools = v.Pools[:1]
		Expect(spread(New(v).Decisions[0])).To(Equal("a=3"))
	})

	It("is how many devices machines have of those that a schedule requests", func() {
		Expect(View{Reserves: reservesOf(scheduledAmount("devices.gpu=9"))}.DeviceClasses()).To(HaveExactElements("gpu"))
	})

	It("is looked for again half a minute later, and the first is reported", func() {
		r := Wish("r", Amount("cpu=10"), scheduledAmount("memory=10Gi"))
		r.Spec.Schedules[0].Start = "0 10 * * *"
		r.Spec.Schedules[0].Duration = "2h"
		p := New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: two()})
		Expect(p.Again).To(Equal(30 * time.Second))
		Expect(p.Decisions[0].Message).To(And(ContainSubstring("convert cpu=10 to machines"), Not(ContainSubstring("memory"))))
	})

	It("is the next change, if the capacity that it needs is not", func() {
		p := New(View{Now: Monday, Reserves: reservesOf(Replicas(1), scheduledAmount("cpu=10")), Pools: two()})
		Expect(p.Decisions[0].Next).To(BeNil())
		Expect(p.Decisions[0].Desired).To(Equal(1))
		p = New(View{Now: Monday, Reserves: reservesOf(Replicas(1), scheduledAmount("cpu=10")), Pools: []Pool{Sized(Site("a", 3), "4")}})
		Expect(p.Decisions[0].Next).To(HaveField("Desired", 3))
		p = New(View{Now: Monday, Reserves: reservesOf(Replicas(1), scheduledAmount("max(3,cpu=10)")), Pools: two()})
		Expect(p.Decisions[0].Next).To(BeNil(), "it may be more than 3")
	})

	It("is the next change of any other schedule after that", func() {
		late := Scheduled("late", "0 23 * * *", "1h", 9)
		p := New(View{Now: Monday, Reserves: reservesOf(Replicas(1), late, scheduledAmount("cpu=10")), Pools: two()})
		Expect(p.Decisions[0].Next).To(BeNil())
		p = New(View{Now: Monday, Reserves: reservesOf(Replicas(1), late, scheduledAmount("1")), Pools: two()})
		Expect(p.Decisions[0].Next).To(HaveField("Desired", 9))
	})

	It("is a MachineDeployment's own excess, if its settings are invalid or its capacity is not known", func() {
		_, _, err := Site("a", 3, Bounds("many")).Own()
		Expect(err).To(HaveOccurred())
		_, _, err = Site("a", 3, Bounds("1:9:cpu=4")).Own()
		Expect(err).To(MatchError(reserve.ErrUnknownCapacity))
		n, source, err := Site("a", 3, Bounds("1:9:2")).Own()
		Expect([]any{n, source, err}).To(Equal([]any{2, "the excess in bounds", nil}))
	})

	It("is not taken for a wish of another MachineDeployment that is being deleted", func() {
		gone := Site("a", 3, Annotated(machine.RequestedExcessAnnotation, "r=3"), func(d *machine.MachineDeployment) { d.DeletionTimestamp = &metav1.Time{Time: Monday} })
		Expect(New(View{Now: Monday, Reserves: reservesOf(Replicas(2)), Pools: []Pool{gone, Site("b", 2)}}).Requests).To(HaveLen(1))
	})
})

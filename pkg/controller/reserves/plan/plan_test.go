// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"strings"

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

// two are two MachineDeployments with three and two machines for workload.
func two() []Pool { return []Pool{Site("a", 3), Site("b", 2)} }

var _ = DescribeTable("What a Reserve asks for, and where (laws 1, 2 and 8)",
	func(r *v1alpha1.Reserve, pools []Pool, want, why string) {
		v := View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: pools}
		p := New(v)
		Expect(spread(p.Decisions[0])).To(Equal(want))
		Expect(New(after(after(v))).Decisions[0].Reason).To(Equal(why))
	},
	Entry("nothing", Wish("r"), two(), "a=0 b=0", reason.NotRequested),
	Entry("a count, evenly", Wish("r", Replicas(3)), two(), "a=2 b=1", reason.Complete),
	Entry("a percentage of all replicas", Wish("r", Amount("50%")), two(), "a=2 b=1", reason.Complete),
	Entry("the larger of both", Wish("r", Replicas(1), Amount("max(2,80%)")), two(), "a=2 b=2", reason.Complete),
	Entry("the replicas, where they are larger", Wish("r", Replicas(5), Amount("2")), two(), "a=3 b=2", reason.Complete),
	Entry("resources, in the smallest machines", Wish("r", Amount("cpu=10")), []Pool{Sized(Site("a", 3), "8"), Sized(Site("b", 2), "4")}, "a=2 b=1", reason.Complete),
	Entry("resources whose capacity is not known", Wish("r", Amount("cpu=10")), two(), "a=0 b=0", reason.CapacityUnknown),
	Entry("a percentage of a resource that one does not have", Wish("r", Amount("nvidia.com/gpu=10%")), []Pool{Sized(Site("a", 3), "8")}, "a=0", reason.CapacityUnknown),
	Entry("an active schedule", Wish("r", Replicas(1), OfficeHours), two(), "a=3 b=2", reason.Complete),
	Entry("the largest of several", Wish("r", OfficeHours, Scheduled("noon", "0 12 * * *", "1h", 8), Scheduled("night", "0 22 * * *", "6h", 50)), two(), "a=4 b=4", reason.Complete),
	Entry("the replicas, where a schedule asks for less", Wish("r", Replicas(7), OfficeHours), two(), "a=4 b=3", reason.Complete),
	Entry("a schedule that is suspended", Wish("r", OfficeHours, func(r *v1alpha1.Reserve) { r.Spec.Schedules[0].Suspend = true }), two(), "a=0 b=0", reason.NotRequested),
	Entry("a Reserve that is suspended", Wish("r", Replicas(3), OfficeHours, func(r *v1alpha1.Reserve) { r.Spec.Suspend = true }), two(), "a=0 b=0", reason.Suspended),
	Entry("a schedule with an amount", Wish("r", OfficeHours, func(r *v1alpha1.Reserve) {
		r.Spec.Schedules[0].Replicas, r.Spec.Schedules[0].Amount = nil, "40%"
	}), two(), "a=1 b=1", reason.Complete),
	Entry("within max", Wish("r", Replicas(6)), []Pool{Site("a", 3, Bounds("1:4")), Site("b", 2)}, "a=1 b=5", reason.Complete),
	Entry("with too little room", Wish("r", Replicas(6)), []Pool{Site("a", 3, Bounds("1:4")), Site("b", 2, Bounds("1:3"))}, "a=1 b=1", reason.NoRoom),
	Entry("above max", Wish("r", Replicas(2)), []Pool{Site("a", 7, Bounds("1:4"))}, "a=0", reason.NoRoom),
	Entry("no pools", Wish("r", Replicas(2), Names("c")), two(), "", reason.NoPools),
	Entry("no pools, and resources", Wish("r", Amount("cpu=2"), Names("c")), two(), "", reason.NoPools),
	Entry("pools by name", Wish("r", Replicas(2), Names("b", "c")), two(), "b=2", reason.Complete),
	Entry("pools by worker", Wish("r", Replicas(2), func(r *v1alpha1.Reserve) { r.Spec.Pools = v1alpha1.ReservePools{WorkerPools: []string{"w"}} }),
		[]Pool{Site("a", 3, Labelled("worker.gardener.cloud/pool", "w"), Bounds("1:9")), Site("b", 2)}, "a=2", reason.Complete),
	Entry("pools by worker, where only the node template names it", Wish("r", Replicas(2), func(r *v1alpha1.Reserve) { r.Spec.Pools = v1alpha1.ReservePools{WorkerPools: []string{"w"}} }),
		[]Pool{Site("a", 3, func(d *machine.MachineDeployment) {
			d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"worker.gardener.cloud/pool": "w"}
		}), Site("b", 2)}, "a=2", reason.Complete),
	Entry("an empty selector: all", Wish("r", Replicas(2), func(r *v1alpha1.Reserve) {
		r.Spec.Pools = v1alpha1.ReservePools{Selector: &metav1.LabelSelector{}}
	}), two(), "a=1 b=1", reason.Complete),
	Entry("an invalid selector", Wish("r", Replicas(2), func(r *v1alpha1.Reserve) {
		r.Spec.Pools.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
	}), two(), "", reason.Invalid),
	Entry("one whose reserve is drained", Wish("r", Replicas(2)), []Pool{Site("a", 3, Annotated(machine.DrainReserveAnnotation, "true")), Site("b", 2)}, "a=0 b=2", reason.Complete),
	Entry("only such", Wish("r", Replicas(2)), []Pool{Site("a", 3, Annotated(machine.DrainReserveAnnotation, "true"))}, "a=0", reason.PoolsDrained),
	Entry("one of a Gardener without bounds", Wish("r", Replicas(2)), []Pool{Site("a", 3, Labelled("worker.gardener.cloud/pool", "w"))}, "a=0", reason.MaximumUnknown),
	Entry("a cluster that hibernates", Wish("r", Replicas(2)), []Pool{Site("a", 0, Labelled("worker.gardener.cloud/pool", "w"), Bounds("1:9"))}, "a=0", reason.Hibernated),
	Entry("a cluster with one machine, which does not hibernate", Wish("r", Replicas(2)), []Pool{Site("a", 1, Labelled("worker.gardener.cloud/pool", "w"), Bounds("1:9"))}, "a=2", reason.Complete),
	Entry("a pool without replicas that does not hibernate", Wish("r", Replicas(2)), []Pool{Site("a", 0)}, "a=2", reason.Complete),
	Entry("one that is being deleted", Wish("r", Replicas(2)), []Pool{Site("a", 3, func(d *machine.MachineDeployment) { d.DeletionTimestamp = &metav1.Time{Time: Monday} }), Site("b", 1)}, "b=2", reason.Complete),
	Entry("the largest number there is", Wish("r", Replicas(math.MaxInt32)), []Pool{Site("a", 3)}, "a=2147483647", reason.Complete),
	Entry("one with bounds that are invalid, as it was", Wish("r", Replicas(2)), []Pool{Site("a", 3, Bounds("many")), Site("b", 2)}, "a=0 b=2", reason.Complete),
)

var _ = It("Machines stay where they are as long as that is as even (law 2)", func() {
	r := Wish("r", Replicas(3))
	r.Status.Pools = []v1alpha1.ReservePoolStatus{{Name: "a", DesiredReplicas: 1}, {Name: "b", DesiredReplicas: 2}}
	Expect(spread(New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: two()}).Decisions[0])).To(Equal("a=1 b=2"))
})

var _ = It("Machines stay as they are where bounds are invalid (law 8)", func() {
	r := Wish("r", Replicas(5))
	r.Status.Pools = []v1alpha1.ReservePoolStatus{{Name: "a", DesiredReplicas: 2}}
	Expect(spread(New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: []Pool{Site("a", 3, Bounds("many")), Site("b", 2)}}).Decisions[0])).To(Equal("a=2 b=3"))
})

var _ = DescribeTable("What is invalid is said, and changes nothing (law 5)",
	func(change func(*v1alpha1.Reserve), says string) {
		pools := append(two(), Site("c", 1, Labelled("pool", "other")))
		v := after(View{Now: Monday, Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(3)), Wish("s", Replicas(4))}, Pools: pools})
		change(v.Reserves[0])
		p := New(v)
		Expect(spread(p.Decisions[0])).To(Equal("a=2 b=1"))
		Expect(p.Decisions[0].Desired).To(Equal(3))
		Expect(p.Decisions[0].Reason).To(Equal(reason.Invalid))
		Expect(p.Decisions[0].Message).To(ContainSubstring(says))
		Expect(p.Decisions[1].Reason).To(Equal(reason.Complete), "law 10")
		Expect(p.Requests).To(BeEmpty())
		Expect(p.Again).To(BeZero(), "only a change can help")
	},
	Entry("an amount", Amount("lots"), "spec.amount: excess \"lots\": write a count"),
	Entry("an amount that names a resource twice", Amount("cpu=1,cpu=2"), "name cpu only once"),
	Entry("a time", Scheduled("s", "0 25 * * *", "1h", 1), "schedule s: start: time"),
	Entry("a time zone", func(r *v1alpha1.Reserve) {
		OfficeHours(r)
		r.Spec.Schedules[0].TimeZone = "Berlin"
	}, "schedule office-hours: time zone \"Berlin\" is unknown"),
	Entry("a schedule's amount", func(r *v1alpha1.Reserve) {
		OfficeHours(r)
		r.Spec.Schedules[0].Amount = "5%%"
	}, "schedule office-hours: excess"),
	Entry("a selector", func(r *v1alpha1.Reserve) {
		r.Spec.Pools.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
	}, "spec.pools.selector"),
)

var _ = DescribeTable("What is invalid asks for nothing where there can be no reserve, and for the same as before once there can be (laws 5 and 8)",
	func(stop, start func(*machine.MachineDeployment), want string) {
		gardeners := func() Pool {
			return Site("a", 3, Labelled("worker.gardener.cloud/pool", "w"), Labelled("pool", "shop"), Bounds("1:9"))
		}
		v := after(View{Now: Monday, Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(2))}, Pools: []Pool{gardeners(), Site("b", 0)}})
		v.Reserves[0].Spec.Amount = "lots"
		stop(v.Pools[0].Deployment)
		v = after(v)
		Expect(spread(New(v).Decisions[0])).To(Equal(want))
		start(v.Pools[0].Deployment)
		p := New(after(after(v)))
		Expect(spread(p.Decisions[0])).To(Equal("a=1 b=1"))
		Expect(p.Decisions[0].Reason).To(Equal(reason.Invalid))
	},
	Entry("a cluster that hibernates", func(d *machine.MachineDeployment) { d.Spec.Replicas = 0 }, func(d *machine.MachineDeployment) { d.Spec.Replicas = 3 }, "a=0 b=2"),
	Entry("a MachineDeployment that is drained", Annotated(machine.DrainReserveAnnotation, "true"), Annotated(machine.DrainReserveAnnotation, "false"), "a=0 b=2"),
	Entry("one whose max is unknown", func(d *machine.MachineDeployment) { delete(d.Annotations, machine.BoundsAnnotation) }, Bounds("1:9"), "a=0 b=2"),
)

var _ = DescribeTable("What is invalid asks for nothing once it is suspended (law 5)",
	func(change func(*v1alpha1.Reserve)) {
		v := after(View{Now: Monday, Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(3))}, Pools: two()})
		change(v.Reserves[0])
		v.Reserves[0].Spec.Suspend = true
		p := New(v)
		Expect(spread(p.Decisions[0])).To(Equal("a=0 b=0"))
		Expect(p.Decisions[0].Reason).To(Equal(reason.Suspended))
		Expect(Requests(p)).To(Equal("a: -, b: -"))
	},
	Entry("an amount", Amount("lots")),
	Entry("a time", Scheduled("s", "0 25 * * *", "1h", 1)),
	Entry("a selector", func(r *v1alpha1.Reserve) {
		r.Spec.Pools.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
	}),
)

var _ = It("What is invalid leaves the active schedules as they were (law 5)", func() {
	v := after(View{Now: Monday, Reserves: []*v1alpha1.Reserve{Wish("r", OfficeHours)}, Pools: two()})
	Amount("lots")(v.Reserves[0])
	d := New(v).Decisions[0]
	Expect(d.Desired).To(Equal(5))
	Expect(d.Active).To(Equal([]string{"office-hours"}))
})

var _ = Describe("Several Reserves (law 3)", func() {
	It("count by the largest of each MachineDeployment, and say what counts there", func() {
		v := View{Now: Monday, Pools: two(), Reserves: []*v1alpha1.Reserve{
			Wish("many", Replicas(4)), Wish("one", Replicas(3), Names("a")), Wish("same", Replicas(2), Names("b")), Wish("none"),
		}}
		p := New(v)
		Expect(Requests(p)).To(Equal("a: one=3, b: many=2"))
		var counted []string
		for _, d := range p.Decisions {
			for _, part := range d.Parts {
				counted = append(counted, fmt.Sprintf("%s/%s:%s", d.Reserve.Name, part.Deployment.Name, part.CountedBy))
			}
		}
		Expect(counted).To(Equal([]string{"many/a:Reserve one", "many/b:", "none/a:", "none/b:", "one/a:", "same/b:Reserve many"}))
	})

	It("say nothing about what counts where the settings of a MachineDeployment are invalid", func() {
		v := View{Now: Monday, Pools: []Pool{Site("a", 3, Bounds("many"))}}
		for _, n := range []int32{4, 2} {
			r := Wish(fmt.Sprint("r", n), Replicas(n))
			r.Status.Pools = []v1alpha1.ReservePoolStatus{{Name: "a", DesiredReplicas: n}}
			v.Reserves = append(v.Reserves, r)
		}
		for _, d := range New(v).Decisions {
			Expect(d.Parts[0].CountedBy).To(BeEmpty(), d.Reserve.Name)
		}
	})

	DescribeTable("and a MachineDeployment's own excess say so",
		func(pool Pool, want string) {
			p := New(View{Now: Monday, Pools: []Pool{pool}, Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(2))}})
			Expect(p.Decisions[0].Parts[0].CountedBy).To(Equal(want))
		},
		Entry("the field", Site("a", 3, func(d *machine.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To[int32](2) }), "spec.excessReplicas"),
		Entry("less in the field", Site("a", 3, func(d *machine.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To[int32](1) }), ""),
		Entry("the field, beside bounds that have none", Site("a", 3, Bounds("1:9"), func(d *machine.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To[int32](2) }), "spec.excessReplicas"),
		Entry("bounds", Site("a", 3, Bounds("1:9:3")), "the excess in bounds"),
		Entry("bounds with resources whose capacity is not known", Site("a", 3, Bounds("1:9:max(3,cpu=4)")), ""),
		Entry("bounds with resources", Sized(Site("a", 3, Bounds("1:9:cpu=16")), "4"), "the excess in bounds"),
		Entry("less in the field, whatever was requested before", Site("a", 3, Annotated(machine.RequestedExcessAnnotation, "r=9"), func(d *machine.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To[int32](1) }), ""),
		Entry("a share, which comes before bounds", Site("a", 3, Annotated(machine.ShareAnnotation, "4"), Bounds("1:9:3")), "the pool's excess"),
		Entry("a share", Site("a", 3, Annotated(machine.ShareAnnotation, "4")), "the pool's excess"),
	)

	It("leave no annotation where none asks, whoever wrote one (law 6)", func() {
		v := View{Now: Monday, Pools: []Pool{
			Site("a", 3, Annotated(machine.RequestedExcessAnnotation, "gone=2")),
			Site("b", 3, Annotated(machine.RequestedExcessAnnotation, "")),
			Site("c", 3, Annotated(machine.RequestedExcessAnnotation, "gone=2"), func(d *machine.MachineDeployment) { d.DeletionTimestamp = &metav1.Time{Time: Monday} }),
			Site("d", 3),
		}}
		Expect(Requests(New(v))).To(Equal("a: -, b: -"))
	})

	It("ask for nothing once they are being deleted", func() {
		r := Wish("r", Replicas(2))
		r.DeletionTimestamp = &metav1.Time{Time: Monday}
		Expect(New(View{Now: Monday, Pools: two(), Reserves: []*v1alpha1.Reserve{r}}).Requests).To(BeEmpty())
	})
})

var _ = Describe("A MachineDeployment where machines cannot be created (law 4)", func() {
	It("keeps one for the next try while others stand in, until it is ready", func() {
		v := View{Now: Monday, Pools: two(), Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(4))}}
		v = after(v, "a")
		Expect(spread(New(v).Decisions[0])).To(Equal("a=1* b=4"))
		Expect(New(v).Decisions[0].Reason).To(Equal(reason.CannotBeMade))
		v = after(v, "a")
		Expect(New(v).Decisions[0].Reason).To(Equal(reason.Complete), "the others have stood in")
		Holds(1, 0, reason.Growing)(&v.Pools[0])
		Expect(spread(New(v).Decisions[0])).To(Equal("a=1* b=4"), "a try is no success yet")
		Holds(1, 1, reason.Complete)(&v.Pools[0])
		Expect(spread(New(v).Decisions[0])).To(Equal("a=2 b=3"), "what is ready elsewhere goes only as it is replaced")
		v = after(after(after(v)))
		Expect(spread(New(v).Decisions[0])).To(Equal("a=2 b=2"))
	})

	It("keeps the one beyond its share too, where no other can stand in", func() {
		v := after(after(View{Now: Monday, Pools: two(), Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(2))}}, "a"), "a")
		Expect(spread(New(v).Decisions[0])).To(Equal("a=1* b=2"))
		Holds(1, 1, reason.CannotBeMade)(&v.Pools[1])
		for range 3 {
			Expect(spread(New(v).Decisions[0])).To(Equal("a=1* b=2*"), "else b is complete with 1, and asked for 2 again")
			v = after(v, "a", "b")
		}
		Expect(New(v).Requests).To(BeEmpty())
		v = after(after(after(after(v))))
		Expect(spread(New(v).Decisions[0])).To(Equal("a=1 b=1"))
	})

	It("keeps one for the next try, and no more, where no other can stand in", func() {
		r := Wish("r", Replicas(1))
		r.Status.Pools = []v1alpha1.ReservePoolStatus{{Name: "a", DesiredReplicas: 4}}
		p := Site("a", 3)
		Holds(4, 0, reason.CannotBeMade)(&p)
		Expect(spread(New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{r}, Pools: []Pool{p}}).Decisions[0])).To(Equal("a=1*"))
	})

	It("has room where it is the only one, which the condition shows", func() {
		v := after(View{Now: Monday, Pools: two()[:1], Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(2))}}, "a")
		Expect(New(v).Decisions[0].Reason).To(Equal(reason.CannotBeMade))
		Bounds("1:4")(v.Pools[0].Deployment)
		Expect(New(v).Decisions[0].Reason).To(Equal(reason.NoRoom))
	})

	It("keeps its machines until others are ready, even if a machine without room is ready elsewhere", func() {
		v := View{Now: Monday, Pools: []Pool{Site("a", 3), Site("b", 3), Site("c", 3, Bounds("1:3"))}, Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(2))}}
		Holds(2, 2, reason.Complete)(&v.Pools[1])
		Holds(1, 1, reason.Complete)(&v.Pools[2])
		v.Reserves[0].Status.Pools = []v1alpha1.ReservePoolStatus{{Name: "b", DesiredReplicas: 2}, {Name: "c", DesiredReplicas: 1}}
		Expect(spread(New(v).Decisions[0])).To(Equal("a=1 b=2 c=0"), "the one in c goes, so it stands in for none")
	})

	It("has nothing moved where nothing is asked for any more", func() {
		v := after(after(View{Now: Monday, Pools: two(), Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(4))}}, "a"), "a")
		v.Reserves[0].Spec.Replicas = 0
		Expect(spread(New(v).Decisions[0])).To(Equal("a=0 b=0"), "nothing is tried, and so nothing is blocked")
		v = after(v)
		Expect(spread(New(v).Decisions[0])).To(Equal("a=0 b=0"))
		v.Reserves[0].Spec.Replicas = 2
		Expect(spread(New(v).Decisions[0])).To(Equal("a=1 b=1"), "and tried like any other then")
	})
})

// dedicates dedicates machines of a Reserve to owners.
func dedicates(text string) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) { r.Annotations = map[string]string{machine.DedicatedAnnotation: text} }
}

// ofA requests machines of one MachineDeployment, some of them for owners.
func ofA(name string, n int32, text string) *v1alpha1.Reserve {
	return Wish(name, Replicas(n), Names("a"), dedicates(text))
}

var _ = DescribeTable("Whose spare machines they are (law 11)",
	func(want string, all ...*v1alpha1.Reserve) {
		p := New(View{Now: Monday, Reserves: all, Pools: two()})
		got := map[string]string{}
		for _, r := range p.Requests {
			got[r.Deployment.Name] = r.Dedicated
		}
		Expect(got["a"]).To(Equal(want))
		Expect(got["b"]).To(BeEmpty())
	},
	Entry("everybody's", "", Wish("r", Replicas(3), Names("a"))),
	Entry("an owner's", "shop=2", ofA("r", 3, "shop=2")),
	Entry("an owner's, as many as there are", "shop=3", ofA("r", 3, "shop=5")),
	Entry("those of two owners", "ci=1 shop=2", ofA("r", 3, "shop=2 ci=1")),
	Entry("those of two owners, as many as there are", "ci=2 shop=1", ofA("r", 3, "shop=2 ci=2")),
	Entry("those of one owner, where none is left for another", "ci=3", ofA("r", 3, "shop=2 ci=3")),
	Entry("those of an owner that is named twice, by the larger number", "shop=3", ofA("r", 3, "shop=1 shop=3")),
	Entry("those of another owner beside one that is named twice", "shop=2 zoo=1", ofA("r", 3, "shop=1 shop=2 zoo=1")),
	Entry("those of an owner that two Reserves name", "shop=2", ofA("r", 3, "shop=2"), ofA("s", 2, "shop=1")),
	Entry("the same, the other way round", "shop=2", ofA("r", 2, "shop=1"), ofA("s", 3, "shop=2")),
	Entry("those of owners of two Reserves", "ci=1 shop=2", ofA("r", 3, "shop=2"), ofA("s", 2, "ci=1")),
	Entry("everybody's, if the Reserve has several MachineDeployments", "", Wish("r", Replicas(3), dedicates("shop=2"))),
	Entry("everybody's, if it cannot be read", "", ofA("r", 3, "shop")),
	Entry("those of another Reserve, if one cannot be read", "ci=1", ofA("r", 3, "shop"), ofA("s", 2, "ci=1")),
	Entry("nobody's, if none are requested", "", ofA("r", 0, "shop=2")),
	Entry("everybody's, if a Reserve that names an owner requests none", "", Wish("r", Replicas(3), Names("a")), ofA("s", 0, "shop=2")),
	Entry("an owner's, as many as the Reserve requests that names it", "shop=1", Wish("r", Replicas(3), Names("a")), ofA("s", 1, "shop=2")),
	Entry("those that the MachineDeployment itself was given", "shop=1", ofA("r", 1, "shop=1"), Wish("s", Replicas(1), Names("b"))),
)

var _ = It("Owners of several Reserves are no more than can be read, so that one Reserve does not void what others dedicate (law 10)", func() {
	var owners []string
	for i := range machine.MaxDedications {
		owners = append(owners, fmt.Sprintf("team%02d=1", i))
	}
	all := []*v1alpha1.Reserve{ofA("r", 100, strings.Join(owners, " ")), ofA("s", 100, "zoo=1")}
	text := New(View{Now: Monday, Reserves: all, Pools: two()}).Requests[0].Dedicated
	Expect(machine.ParseDedications(text)).To(HaveLen(machine.MaxDedications))
	Expect(text).To(Equal(strings.Join(owners, " ")))
})

var _ = It("Owners that cannot be read are reported, and the amount counts all the same", func() {
	v := after(after(View{Now: Monday, Reserves: []*v1alpha1.Reserve{ofA("r", 3, "shop"), ofA("s", 2, "ci=1")}, Pools: two()}))
	d := New(v).Decisions
	Expect(spread(d[0])).To(Equal("a=3"))
	Expect(d[0].Reason).To(Equal(reason.Invalid))
	Expect(d[0].Message).To(And(ContainSubstring(`dedicated "shop": write owners and counts`), ContainSubstring("3 of 3 machines are ready")))
	Expect(d[1].Reason).To(Equal(reason.Complete), "law 10")
})

var _ = It("Owners of machines in several MachineDeployments are reported, and the amount counts all the same", func() {
	reserves := []*v1alpha1.Reserve{Wish("r", Replicas(3), dedicates("shop=2")), Wish("s", Replicas(2), dedicates(""))}
	d := New(after(after(View{Now: Monday, Reserves: reserves, Pools: two()}))).Decisions
	Expect(spread(d[0])).To(Equal("a=2 b=1"))
	Expect(d[0].Reason).To(Equal(reason.Invalid))
	Expect(d[0].Message).To(And(ContainSubstring("spec.pools selects 2 MachineDeployments: select a single one"), ContainSubstring("3 of 3 machines are ready")))
	Expect(d[1].Reason).To(Equal(reason.Complete))
})

var _ = DescribeTable("An annotation about owners is written only if it differs (law 6)",
	func(has string, want int) {
		pool := Site("a", 3, Annotated(machine.RequestedExcessAnnotation, "r=3"), Annotated(machine.DedicatedAnnotation, has))
		Expect(New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{ofA("r", 3, "shop=2")}, Pools: []Pool{pool}}).Requests).To(HaveLen(want))
	},
	Entry("the same", "shop=2", 0),
	Entry("another number", "shop=1", 1),
	Entry("another owner", "ci=2", 1),
	Entry("an empty one", "", 1),
)

// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan/plantest"
	"github.com/evenkeel/evenkeel/pkg/reserve"
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

var _ = DescribeTable("What is invalid is said, and changes nothing (law 5)",
	func(change func(*v1alpha1.Reserve), says string) {
		v := after(View{Now: Monday, Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(3)), Wish("s", Replicas(4))}, Pools: two()})
		change(v.Reserves[0])
		p := New(v)
		Expect(spread(p.Decisions[0])).To(Equal("a=2 b=1"))
		Expect(p.Decisions[0].Reason).To(Equal(reason.Invalid))
		Expect(p.Decisions[0].Message).To(ContainSubstring(says))
		Expect(p.Decisions[1].Reason).To(Equal(reason.Complete), "law 10")
		Expect(p.Requests).To(BeEmpty())
	},
	Entry("an amount", Amount("lots"), "spec.amount: excess \"lots\": write a count"),
	Entry("an amount that names a resource twice", Amount("cpu=1,cpu=2"), "name cpu only once"),
	Entry("a time", Scheduled("s", "0 25 * * *", "1h", 1), "schedule s: start: time"),
	Entry("a time zone", func(r *v1alpha1.Reserve) {
		OfficeHours(r)
		r.Spec.Schedules[0].TimeZone = "Berlin"
	}, "schedule office-hours: time zone \"Berlin\" is not known"),
	Entry("a schedule's amount", func(r *v1alpha1.Reserve) {
		OfficeHours(r)
		r.Spec.Schedules[0].Amount = "5%%"
	}, "schedule office-hours: excess"),
	Entry("a selector", func(r *v1alpha1.Reserve) {
		r.Spec.Pools.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
	}, "spec.pools.selector"),
)

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

	DescribeTable("and a MachineDeployment's own excess say so",
		func(pool Pool, want string) {
			p := New(View{Now: Monday, Pools: []Pool{pool}, Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(2))}})
			Expect(p.Decisions[0].Parts[0].CountedBy).To(Equal(want))
		},
		Entry("the field", Site("a", 3, func(d *machine.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To[int32](2) }), "spec.excessReplicas"),
		Entry("less in the field", Site("a", 3, func(d *machine.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To[int32](1) }), ""),
		Entry("bounds", Site("a", 3, Bounds("1:9:3")), "the excess in bounds"),
		Entry("bounds with resources", Sized(Site("a", 3, Bounds("1:9:cpu=16")), "4"), "the excess in bounds"),
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
		v = after(v)
		Expect(spread(New(v).Decisions[0])).To(Equal("a=0 b=0"))
		v.Reserves[0].Spec.Replicas = 2
		Expect(spread(New(v).Decisions[0])).To(Equal("a=1 b=1"), "and tried like any other then")
	})
})

var _ = DescribeTable("The next change of schedules",
	func(r *v1alpha1.Reserve, at string, desired int, again time.Duration) {
		p := New(View{Now: Monday, Pools: two(), Reserves: []*v1alpha1.Reserve{r}})
		if at == "" {
			Expect(p.Decisions[0].Next).To(BeNil())
		} else {
			Expect(p.Decisions[0].Next.At.Format(time.RFC3339)).To(Equal(at))
			Expect(p.Decisions[0].Next.Desired).To(Equal(desired))
		}
		Expect(p.Again).To(Equal(again))
	},
	Entry("is none without schedules", Wish("r", Replicas(1)), "", 0, time.Duration(0)),
	Entry("is the end of one that is active", Wish("r", Replicas(1), OfficeHours), "2026-03-02T18:00:00Z", 1, 10*time.Minute),
	Entry("is the start of one that is not", Wish("r", Scheduled("night", "0 22 * * *", "0 4 * * *", 9)), "2026-03-02T21:00:00Z", 9, 10*time.Minute),
	Entry("is looked at in time", Wish("r", Scheduled("soon", "3 12 * * *", "1h", 9)), "2026-03-02T11:03:00Z", 9, 3*time.Minute),
	Entry("leaves out what does not matter", Wish("r", Replicas(4), Scheduled("small", "30 * * * *", "10m", 2), Scheduled("large", "0 12 * * SAT", "1h", 6)), "2026-03-07T11:00:00Z", 6, 10*time.Minute),
	Entry("is none where none matters", Wish("r", Replicas(4), Scheduled("small", "* * * * *", "1m", 2)), "", 0, time.Minute),
	Entry("is over the clock's change", Wish("r", Scheduled("sunday", "30 2 29 3 *", "1h", 3)), "2026-03-29T01:00:00Z", 3, 10*time.Minute),
	Entry("is none where it is suspended", Wish("r", OfficeHours, func(r *v1alpha1.Reserve) { r.Spec.Suspend = true }), "", 0, time.Duration(0)),
)

var _ = DescribeTable("Office hours over a year: requests change when they begin and end, and at no other time (laws 7 and 9)",
	func(name string, outage time.Duration, want int) {
		zone, err := time.LoadLocation(name)
		Expect(err).NotTo(HaveOccurred())
		r := Wish("r", OfficeHours)
		r.Spec.Schedules[0].TimeZone = name
		v := View{Now: time.Date(2028, 1, 1, 0, 0, 0, 0, zone), Reserves: []*v1alpha1.Reserve{r}, Pools: []Pool{Site("a", 3)}}
		changes := 0
		for v.Now.In(zone).Year() == 2028 {
			p, local := New(v), v.Now.In(zone)
			open := local.Weekday() != time.Saturday && local.Weekday() != time.Sunday && local.Hour() >= 7 && local.Hour() < 19
			Expect(p.Decisions[0].Desired == 5).To(Equal(open), local.String())
			Expect(p.Decisions[0].Next.At).To(BeTemporally(">", v.Now))
			if len(p.Requests) > 0 {
				changes++
				at := v.Now
				v = after(after(v))
				v.Now = at
			}
			v.Now = v.Now.Add(max(p.Again, outage))
		}
		Expect(changes).To(Equal(want))
	},
	Entry(nil, "Europe/Berlin", time.Duration(0), 2*260),
	Entry(nil, "America/New_York", time.Duration(0), 2*260),
	Entry("with the controller away for five hours at a time", "Europe/Berlin", 5*time.Hour, 2*260),
)

// drawnView is any view, also what no API server would let in.
func drawnView(t *rapid.T) View {
	v := View{Now: Monday.Add(time.Duration(rapid.IntRange(0, 400*24).Draw(t, "hours")) * time.Hour)}
	for i := range rapid.IntRange(0, 4).Draw(t, "pools") {
		p := Site(string(rune('a'+i)), int32(rapid.IntRange(0, 5).Draw(t, "replicas")))
		Bounds(rapid.SampledFrom([]string{"", "0:4", "1:9:2", "2:6:10%", "x"}).Draw(t, "bounds"))(p.Deployment)
		if p.Deployment.Annotations[machine.BoundsAnnotation] == "" {
			delete(p.Deployment.Annotations, machine.BoundsAnnotation)
		}
		if rapid.IntRange(0, 5).Draw(t, "gardener") == 0 {
			Labelled("worker.gardener.cloud/pool", "w")(p.Deployment)
		}
		why := rapid.SampledFrom([]string{reason.Complete, reason.Growing, reason.CannotBeMade}).Draw(t, "why")
		n := rapid.IntRange(0, 4).Draw(t, "held")
		Holds(n, min(n, rapid.IntRange(0, 4).Draw(t, "ready")), why)(&p)
		if rapid.Bool().Draw(t, "annotated") {
			Annotated(machine.RequestedExcessAnnotation, rapid.SampledFrom([]string{"r0=2", "gone=1", "?"}).Draw(t, "requested"))(p.Deployment)
		}
		if rapid.Bool().Draw(t, "sized") {
			p = Sized(p, "4")
		}
		v.Pools = append(v.Pools, p)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "reserves") {
		r := Wish(fmt.Sprint("r", i), Replicas(rapid.Int32Range(-1, 9).Draw(t, "count")))
		Amount(rapid.SampledFrom([]string{"", "2", "50%", "cpu=9", "max(1,10%)", "lots"}).Draw(t, "amount"))(r)
		for j := range rapid.IntRange(0, 3).Draw(t, "schedules") {
			Scheduled(fmt.Sprint("s", j), rapid.SampledFrom([]string{"0 7 * * *", "*/15 * * * *", "0 0 29 2 *", "x"}).Draw(t, "start"),
				rapid.SampledFrom([]string{"0 19 * * *", "2h", "30 3 * * SUN"}).Draw(t, "end"), rapid.Int32Range(0, 9).Draw(t, "more"))(r)
		}
		for _, p := range v.Pools {
			if rapid.Bool().Draw(t, "known") {
				r.Status.Pools = append(r.Status.Pools, v1alpha1.ReservePoolStatus{
					Name: p.Deployment.Name, DesiredReplicas: rapid.Int32Range(-1, 5).Draw(t, "before"), Blocked: rapid.Bool().Draw(t, "blocked"),
				})
			}
		}
		v.Reserves = append(v.Reserves, r)
	}
	return v
}

var _ = Describe("Hostile sizes", func() {
	It("are decided as small ones: thousands of schedules, the one that counts and when it changes among them", func() {
		const reserves, schedules, day = 200, 64, 24 * 60
		var all []*v1alpha1.Reserve
		want := make([]int, reserves)
		noon := 12 * 60 // in Berlin, where it is Monday
		for i := range reserves {
			r := Wish(fmt.Sprintf("r%03d", i), Names("a"))
			for j := range schedules {
				start, machines := (i*schedules+j)*7%day, 1+(i*37+j*11)%1000
				Scheduled(fmt.Sprint("s", j), fmt.Sprintf("%d %d * * *", start%60, start/60), "1h", int32(machines))(r)
				if start > noon-60 && start <= noon {
					want[i] = max(want[i], machines)
				}
			}
			all = append(all, r)
		}
		always := Wish("always", Names("a"), Replicas(1000))
		for j := range schedules {
			Scheduled(fmt.Sprint("s", j), "* * * * *", "1m", int32(j))(always)
		}
		p := New(View{Now: Monday, Reserves: append(all, always), Pools: []Pool{Site("a", 3)}})
		Expect(Requests(p)).To(ContainSubstring("always=1000"))
		Expect(slices.Max(want)).To(BeNumerically(">", 900), "some are active")
		Expect(p.Again).To(BeNumerically(">", 0))
		for _, d := range p.Decisions {
			if i := slices.Index(all, d.Reserve); i >= 0 {
				Expect(d.Desired).To(Equal(want[i]), d.Reserve.Name)
				Expect(d.Next.At).To(BeTemporally(">", Monday))
			} else {
				Expect(d.Desired).To(Equal(1000))
				Expect(d.Next).To(BeNil(), "none of its schedules matters")
			}
		}
	})
})

var _ = Describe("Any plan", func() {
	It("stays within max, asks for what is desired where there is room, and settles (laws 2, 7 and 9)", func() {
		rapid.Check(suite, func(t *rapid.T) {
			v := drawnView(t)
			for before, round := "", 0; round < 12; round++ { // one for each step of make before break
				p := New(v)
				for _, d := range p.Decisions {
					checkRoom(t, v, d)
				}
				if v = after(v); text(p) == before {
					break
				}
				before = text(p)
			}
			p := New(v)
			if len(p.Requests) > 0 {
				t.Fatalf("writes %s at rest", Requests(p))
			}
			for _, d := range p.Decisions {
				sum := 0
				for _, part := range d.Parts {
					sum += part.Machines
				}
				if steady := d.Reason == reason.Complete || d.Reason == reason.NotRequested; steady && sum != d.Desired {
					t.Fatalf("%s asks for %s, desired %d", d.Reserve.Name, spread(d), d.Desired)
				}
				if d.Reason == reason.Growing || d.Reason == reason.CannotBeMade {
					t.Fatalf("%s has not settled: %s %s", d.Reserve.Name, d.Message, spread(d))
				}
				if s := NewStatus(d, v.Now.Add(time.Hour)); !equality.Semantic.DeepEqual(s, d.Reserve.Status) {
					t.Fatalf("status of %s is written at rest:\n%v\n%v", d.Reserve.Name, s, d.Reserve.Status)
				}
			}
		})
	})

	It("does not depend on the order of anything", func() {
		rapid.Check(suite, func(t *rapid.T) {
			v := drawnView(t)
			w := View{Now: v.Now, Pools: append([]Pool{}, v.Pools...), Reserves: append([]*v1alpha1.Reserve{}, v.Reserves...)}
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
			random.Shuffle(len(w.Pools), func(i, j int) { w.Pools[i], w.Pools[j] = w.Pools[j], w.Pools[i] })
			random.Shuffle(len(w.Reserves), func(i, j int) { w.Reserves[i], w.Reserves[j] = w.Reserves[j], w.Reserves[i] })
			if a, b := text(New(v)), text(New(w)); a != b {
				t.Fatalf("%s\n%s", a, b)
			}
		})
	})

	It("asks for the same with and without another Reserve (law 10)", func() {
		rapid.Check(suite, func(t *rapid.T) {
			v := drawnView(t)
			if len(v.Reserves) == 0 {
				return
			}
			rest := View{Now: v.Now, Pools: v.Pools, Reserves: v.Reserves[1:]}
			for i, d := range New(rest).Decisions {
				if other := New(v).Decisions[i+1]; spread(d) != spread(other) || d.Reason != other.Reason {
					t.Fatalf("%s %s, and beside another %s %s", spread(d), d.Reason, spread(other), other.Reason)
				}
			}
		})
	})

	It("takes no ready machine away before the one that stands in for it is ready (law 4)", func() {
		rapid.Check(suite, func(t *rapid.T) {
			v := drawnView(t)
			for _, d := range New(v).Decisions {
				if d.Reason != reason.Growing && d.Reason != reason.CannotBeMade && d.Reason != reason.Complete {
					continue // room is missing, or it stays as it is
				}
				var before, now, kept int
				for _, part := range d.Parts {
					ready, was := readyIn(v, part), 0
					for _, s := range d.Reserve.Status.Pools {
						if s.Name == part.Deployment.Name {
							was = int(max(0, s.DesiredReplicas))
						}
					}
					before, now = before+min(ready, was), now+min(ready, part.Machines)
					kept += min(ready, min(was, roomOf(part.Deployment, hibernated(v))))
				}
				if now < min(d.Desired, before, kept) {
					t.Fatalf("%d of %d ready machines stay, desired %d: %s", now, before, d.Desired, spread(d))
				}
			}
		})
	})
})

// readyIn is how many machines are ready where a part is requested.
func readyIn(v View, part Part) int {
	return v.Pools[slices.IndexFunc(v.Pools, func(p Pool) bool { return p.Deployment == part.Deployment })].Ready
}

// text is what a plan comes to.
func text(p Plan) string {
	all := Requests(p) + " " + p.Again.String()
	for _, d := range p.Decisions {
		all += fmt.Sprint("; ", d.Reserve.Name, " ", spread(d), " ", d.Desired, d.Active, d.Reason, d.Message)
	}
	return all
}

func roomOf(d *machine.MachineDeployment, hibernated bool) int {
	b, err := machine.ParseBounds(d.Annotations[machine.BoundsAnnotation])
	switch {
	case hibernated && d.Labels["worker.gardener.cloud/pool"] != "":
		return 0
	case err == nil:
		return max(0, int(b.Max-d.Spec.Replicas))
	case d.Labels["worker.gardener.cloud/pool"] != "":
		return 0
	}
	return reserve.Unbounded
}

func hibernated(v View) bool {
	return !slices.ContainsFunc(v.Pools, func(p Pool) bool { return p.Deployment.Spec.Replicas > 0 })
}

func checkRoom(t *rapid.T, v View, d Decision) {
	for _, part := range d.Parts {
		_, bounded := part.Deployment.Annotations[machine.BoundsAnnotation]
		stands := d.Reason == reason.Invalid || d.Reason == reason.CapacityUnknown || bounded && part.Deployment.Annotations[machine.BoundsAnnotation] == "x"
		if room := roomOf(part.Deployment, hibernated(v)); part.Machines < 0 || part.Machines > room && !stands {
			t.Fatalf("%s has room for %d: %s", part.Deployment.Name, room, spread(d))
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
)

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
	Entry("is none where no MachineDeployment is selected", Wish("r", OfficeHours, Names("c")), "", 0, 10*time.Minute),
	Entry("is found among 200 starts and ends", Wish("r", Scheduled("large", "0 12 * * *", "3h20m", 9), Scheduled("small", "*/2 * * * *", "1m", 2)), "2026-03-02T14:20:00Z", 2, time.Minute),
	Entry("is not looked for beyond these", Wish("r", Scheduled("large", "0 12 * * *", "3h21m", 9), Scheduled("small", "*/2 * * * *", "1m", 2)), "", 0, time.Minute),
	Entry("is over the clock's change", Wish("r", Scheduled("sunday", "30 2 29 3 *", "1h", 3)), "2026-03-29T01:00:00Z", 3, 10*time.Minute),
	Entry("is none where it is suspended", Wish("r", OfficeHours, func(r *v1alpha1.Reserve) { r.Spec.Suspend = true }), "", 0, time.Duration(0)),
)

var _ = It("A schedule is looked at a millisecond later if it begins before that", func() {
	at := time.Date(2026, 3, 2, 21, 0, 0, 0, time.UTC)
	r := Wish("r", Scheduled("night", "0 22 * * *", "6h", 9))
	for _, before := range []time.Duration{time.Microsecond, time.Millisecond} {
		Expect(New(View{Now: at.Add(-before), Pools: two(), Reserves: []*v1alpha1.Reserve{r}}).Again).To(Equal(time.Millisecond))
	}
	Expect(New(View{Now: at.Add(-2 * time.Millisecond), Pools: two(), Reserves: []*v1alpha1.Reserve{r}}).Again).To(Equal(2 * time.Millisecond))
})

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

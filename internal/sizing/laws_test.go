// SPDX-License-Identifier: Apache-2.0

package sizing_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/test/synthetic"
)

// check holds a property, with Gomega's assertions in it.
func check(property func(t *rapid.T, g Gomega)) {
	GinkgoHelper()
	rapid.Check(GinkgoT(), func(t *rapid.T) { property(t, NewWithT(t)) })
}

// simulated is the outcome, or a failure of the property.
func simulated(g Gomega, trace demand.Trace, setup sizing.Setup, policy sizing.Policy) sizing.Outcome {
	o, err := sizing.Run(trace, setup, policy)
	g.Expect(err).NotTo(HaveOccurred())
	return o
}

var _ = Describe("A simulation", func() {
	It("has the same outcome for the same input (law 1)", func() {
		check(func(t *rapid.T, g Gomega) {
			setup, trace, policy := drawnSetup(t), drawnTrace(t, false), sizing.Fixed(rapid.IntRange(0, 8).Draw(t, "amount"))
			g.Expect(simulated(g, trace, setup, policy)).To(Equal(simulated(g, trace, setup, policy)))
		})
	})

	It("counts every pod once (law 2)", func() {
		check(func(t *rapid.T, g Gomega) {
			setup, trace := drawnSetup(t), drawnTrace(t, false)
			o := simulated(g, trace, setup, sizing.Fixed(rapid.IntRange(0, 8).Draw(t, "amount")))
			created := 0
			for _, p := range trace {
				if !p.Created.Before(setup.From) && p.Created.Before(setup.To) {
					created += p.Count
				}
			}
			g.Expect(o.Pods + o.TooLarge).To(Equal(created))
			g.Expect(o.Late).To(And(BeNumerically("<=", o.Pods), BeNumerically(">=", o.Unbound)))
			g.Expect(o.Median).To(BeNumerically("<=", float64(o.P99)))
			g.Expect(o.P99).To(BeNumerically("<=", float64(o.Longest)))
		})
	})

	It("costs exactly the amount, and no pod waits, if there is no demand (law 3)", func() {
		check(func(t *rapid.T, g Gomega) {
			setup, amount := drawnSetup(t), rapid.IntRange(0, 30).Draw(t, "amount")
			o := simulated(g, nil, setup, sizing.Fixed(amount))
			kept, limit := amount, setup.Max
			if limit > 0 {
				kept = min(amount, limit-setup.Min)
			}
			hours := setup.To.Sub(setup.From).Hours()
			g.Expect(o.ReserveHours).To(BeNumerically("~", float64(kept)*hours, 1e-6))
			g.Expect(o.MachineHours).To(BeNumerically("~", float64(kept+setup.Min)*hours, 1e-6))
			g.Expect([]any{o.Pods, o.Late, o.Longest}).To(Equal([]any{0, 0, sizing.Seconds(0)}))
		})
	})

	It("never costs fewer reserve machine hours with a larger amount (law 4)", func() {
		check(func(t *rapid.T, g Gomega) {
			setup, trace, amount := drawnSetup(t), drawnTrace(t, true), rapid.IntRange(0, 8).Draw(t, "amount")
			setup.Max = 0
			less, more := simulated(g, trace, setup, sizing.Fixed(amount)), simulated(g, trace, setup, sizing.Fixed(amount+1))
			g.Expect(more.ReserveHours).To(BeNumerically(">=", less.ReserveHours-1e-6))
		})
	})

	It("has the same outcome with a schedule that is always active as with its amount (law 5)", func() {
		check(func(t *rapid.T, g Gomega) {
			setup, trace, amount := drawnSetup(t), drawnTrace(t, false), rapid.IntRange(1, 8).Draw(t, "amount")
			scheduled := sizing.Policy{Machines: rapid.IntRange(0, amount).Draw(t, "base"), Schedules: []v1alpha1.ReserveSchedule{always(amount)}}
			same(g, simulated(g, trace, setup, scheduled), simulated(g, trace, setup, sizing.Fixed(amount)))
		})
	})

	It("has the same outcome with schedules that overlap as with the largest of them and of the base (law 5)", func() {
		check(func(t *rapid.T, g Gomega) {
			setup, trace := drawnSetup(t), drawnTrace(t, false)
			overlap := sizing.Fixed(rapid.IntRange(0, 8).Draw(t, "base"))
			largest := overlap.Machines
			for range rapid.IntRange(1, 3).Draw(t, "schedules") {
				n := rapid.IntRange(0, 8).Draw(t, "amount")
				overlap.Schedules, largest = append(overlap.Schedules, always(n)), max(largest, n)
			}
			same(g, simulated(g, trace, setup, overlap), simulated(g, trace, setup, sizing.Fixed(largest)))
		})
	})

	It("lets no more pods wait for a boot with a larger amount while no pod ends (law 6)", func() {
		check(func(t *rapid.T, g Gomega) {
			setup, trace, amount := drawnSetup(t), drawnTrace(t, true), rapid.IntRange(0, 8).Draw(t, "amount")
			setup.Max, setup.Boot = 0, setup.Boot[:1]
			if setup.Autoscaler != nil {
				// With less in reserve, pods wait earlier, and a later look can find more of them: it
				// requests machines that serve the next pods, too. So the law holds for looks at once.
				setup.Autoscaler.Up = 0
			}
			for i := range trace {
				trace[i].Lasts = 0
			}
			less, more := simulated(g, trace, setup, sizing.Fixed(amount)), simulated(g, trace, setup, sizing.Fixed(amount+1))
			g.Expect(more.Late).To(BeNumerically("<=", less.Late))
			// A release can take longer than a boot.
			g.Expect(more.P99).To(BeNumerically("<=", less.P99+sizing.Seconds(setup.Release.Seconds())))
		})
	})

	It("stays within the maximum (law 7)", func() {
		check(func(t *rapid.T, g Gomega) {
			setup, trace := drawnSetup(t), drawnTrace(t, false)
			setup.Max = max(setup.Max, 1)
			o := simulated(g, trace, setup, sizing.Fixed(rapid.IntRange(0, 8).Draw(t, "amount")))
			g.Expect(o.Peak).To(BeNumerically("<=", setup.Max))
			g.Expect(o.MachineHours).To(BeNumerically("<=", float64(setup.Max)*setup.To.Sub(setup.From).Hours()+1e-6))
			g.Expect(o.ReserveHours).To(BeNumerically("<=", o.MachineHours+1e-6))
		})
	})
})

// always is a schedule that is active at any time.
func always(machines int) v1alpha1.ReserveSchedule {
	return v1alpha1.ReserveSchedule{Name: "always", Start: "* * * * *", Duration: "2m", Replicas: ptr.To(int32(machines))}
}

// same compares outcomes whose costs were added up in other steps.
func same(g Gomega, a, b sizing.Outcome) {
	g.Expect(a.ReserveHours).To(BeNumerically("~", b.ReserveHours, 1e-6))
	g.Expect(a.MachineHours).To(BeNumerically("~", b.MachineHours, 1e-6))
	a.ReserveHours, a.MachineHours = b.ReserveHours, b.MachineHours
	g.Expect(a).To(Equal(b))
}

var _ = It("Small pods need hardly more machines because there are many sizes of them, also beside pods that no machine holds", func() {
	var trace demand.Trace
	for i := range 300 {
		trace = append(trace,
			demand.Pods{Created: synthetic.Monday.Add(time.Hour), CPU: int64(20 + i), Memory: 1 << 20, Count: 1},
			demand.Pods{Created: synthetic.Monday.Add(time.Hour), CPU: int64(5000 + i), Memory: 1 << 20, Count: 1})
	}
	o := outcome(trace, usual(), sizing.Fixed(0))
	Expect(o.Peak).To(BeNumerically("<=", 14), "50,850 thousandths of a CPU fill almost 13")
	Expect([]int{o.Pods, o.TooLarge}).To(Equal([]int{300, 300}))
})

// kinds are large pods of different sizes from 3,001 thousandths of a CPU on, each for a machine of its
// own, and later a small one that has room beside the smallest of them, or not.
func kinds(n int, small int64) demand.Trace {
	var trace demand.Trace
	for i := range n - 1 {
		trace = append(trace, demand.Pods{Created: synthetic.Monday.Add(time.Hour), CPU: 3001 + int64(i), Count: 1})
	}
	return append(trace, demand.Pods{Created: synthetic.Monday.Add(2 * time.Hour), CPU: small, Count: 1})
}

var _ = DescribeTable("Many sizes of pods are told apart", func(trace demand.Trace, late int) {
	o := outcome(trace, usual(), sizing.Fixed(0))
	Expect(o.Unbound).To(BeZero())
	Expect(o.Late).To(Equal(late), "those that wait for a machine to boot")
},
	Entry("exactly, if they are 256", kinds(256, 999), 255),
	Entry("exactly, also where they have no room by one thousandth", kinds(256, 1000), 256),
	Entry("rounded up, if they are more", kinds(257, 999), 257),
	Entry("rounded up to eight binary digits, and not more", kinds(257, 992), 256),
)

var _ = It("Pods of many sizes that need almost all of a machine have room on one", func() {
	o := outcome(kinds(990, 1), usual(func(s *sizing.Setup) { s.Machine["cpu"] = resource.MustParse("3990m") }), sizing.Fixed(0))
	Expect([]int{o.Pods, o.Unbound, o.TooLarge}).To(Equal([]int{990, 0, 0}))
})

var _ = DescribeTable("A machine runs as many pods as its Node says, however small they are", func(before, late int) {
	setup := usual(func(s *sizing.Setup) { s.Machine["memory"] = resource.MustParse("1Ti") })
	Expect(outcome(demand.Trace{pods(time.Hour, before, 1, 0), pods(2*time.Hour, 1, 1, 0)}, setup, sizing.Fixed(0)).Late).To(Equal(late))
},
	Entry("one more than 109", 109, 109), Entry("and none more than 110", 110, 111),
)

var _ = DescribeTable("Stories",
	func(trace demand.Trace, setup sizing.Setup, amount int, late int, longest time.Duration) {
		o := outcome(trace, setup, sizing.Fixed(amount))
		Expect(o.Late).To(Equal(late))
		Expect(o.Longest.Duration()).To(Equal(longest))
	},
	Entry("without a reserve, a pod waits for the autoscaler and a boot", demand.Trace{pods(time.Hour, 1, 3000, 0)}, usual(), 0, 1, up+boot),
	Entry("with one, it does not", demand.Trace{pods(time.Hour, 1, 3000, 0)}, usual(), 1, 0, released),
	Entry("a second one finds the reserve empty, until it has booted", demand.Trace{pods(time.Hour, 1, 3000, 0), pods(time.Hour+time.Minute, 1, 3000, 0)}, usual(), 1, 1, time.Minute),
	Entry("a pod with room on a machine that serves does not wait", demand.Trace{pods(time.Hour, 1, 2000, 0), pods(time.Hour+time.Minute, 1, 2000, 0)}, usual(), 1, 0, released),
	Entry("nor one for which another has made room", demand.Trace{pods(time.Hour, 1, 3000, time.Minute), pods(time.Hour+time.Minute, 1, 3000, 0)}, usual(), 1, 0, released),
	Entry("a machine that has been empty for too long is gone", demand.Trace{pods(time.Hour, 1, 3000, time.Minute), pods(time.Hour+15*time.Minute, 1, 3000, 0)}, usual(), 0, 2, up+boot),
	Entry("but not one of the minimum", demand.Trace{pods(time.Hour, 2, 3000, time.Minute), pods(time.Hour+12*time.Minute, 2, 3000, 0)}, usual(bounded(2, 9)), 0, 0, time.Duration(0)),
	Entry("nor one that was not empty all the time", demand.Trace{
		pods(time.Hour, 1, 3000, time.Minute), pods(time.Hour+8*time.Minute, 1, 3000, time.Minute), pods(time.Hour+15*time.Minute, 1, 3000, 0),
	}, usual(), 0, 1, up+boot),
	Entry("a machine in reserve that boots for too long is replaced", demand.Trace{pods(time.Hour, 1, 3000, 0), pods(time.Hour+30*time.Minute, 1, 3000, 0)}, usual(unscaled, hanging), 1, 0, released),
	Entry("and waited for where patience has no limit", demand.Trace{pods(time.Hour, 1, 3000, 0), pods(time.Hour+30*time.Minute, 1, 3000, 0)},
		usual(unscaled, hanging, func(s *sizing.Setup) { s.BootPatience = 0 }), 1, 1, 10*time.Minute+released),
	Entry("without an autoscaler, the reserve alone gives machines: as many as it has in each boot", demand.Trace{pods(time.Hour, 6, 3000, 0)}, usual(unscaled), 2, 4, 2*boot+released),
	Entry("at the maximum, there is no reserve", demand.Trace{pods(time.Hour, 2, 3000, 2*time.Hour)}, usual(bounded(0, 1)), 1, 0, 2*time.Hour+released),
	Entry("a pod that is larger than a machine is not waited for", demand.Trace{pods(time.Hour, 1, 5000, 0)}, usual(), 1, 0, time.Duration(0)),
)

// SPDX-License-Identifier: Apache-2.0

package sizing_test

import (
	"math"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/test/synthetic"
)

// hourly is a pod in each of nine hours, and two in the tenth, each of which needs a machine.
func hourly() demand.Trace {
	var trace demand.Trace
	for hour := range 10 {
		trace = append(trace, pods(time.Duration(hour+1)*time.Hour, 1+hour/9, 3000, time.Minute))
	}
	return trace
}

var _ = DescribeTable("The smallest amount depends on the goal",
	func(percentile float64, wait time.Duration, want int, keeps sizing.Seconds) {
		report, err := sizing.Size(hourly(), usual(), sizing.Goal{Percentile: percentile, Wait: wait, Zone: time.UTC}, 7)
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Amount.Machines).To(Equal(want))
		Expect(report.Amount.Wait).To(Equal(keeps))
		Expect(report.Points[len(report.Points)-1].Machines).To(Equal(7), "an amount that was asked for")
	},
	Entry("nine of ten", 90.0, time.Second, 1, sizing.Seconds(0.3)),
	Entry("almost all", 99.0, time.Second, 2, sizing.Seconds(0.3)),
	Entry("almost all, within a boot", 99.0, 125*time.Second, 1, sizing.Seconds(60.3)),
	Entry("almost all, within what the autoscaler and a boot take", 99.0, up+boot, 0, sizing.Seconds(130)),
)

var _ = It("No more machines of a reserve are in use, or suggested, than the maximum leaves room for", func() {
	trace := demand.Trace{pods(-time.Hour, 8, 3000, 0)}
	for day := range 7 {
		trace = append(trace, pods(time.Duration(24*day+9)*time.Hour, 2, 3000, 30*time.Minute))
	}
	setup := usual(bounded(0, 10), func(s *sizing.Setup) { s.To = synthetic.Until(1) })
	report, err := sizing.Size(trace, setup, sizing.Goal{Percentile: 99, Wait: 5 * time.Second, Zone: time.UTC})
	Expect(err).NotTo(HaveOccurred())
	Expect(report.Amount.Machines).To(Equal(2))
	Expect(report.Week[0][9].Machines).To(Equal(2))
	Expect(report.Points[len(report.Points)-1].Machines).To(Equal(2), "more is never used")
	Expect(report.Schedule.Machines).To(BeZero())
	Expect(report.Schedule.Schedules).To(HaveExactElements(HaveField("Replicas", HaveValue(BeEquivalentTo(2)))))
})

var _ = DescribeTable("A goal that cannot be kept is an error", func(goal sizing.Goal, says string) {
	_, err := sizing.Size(hourly(), usual(), goal)
	Expect(err).To(MatchError(ContainSubstring(says)))
},
	Entry("nobody", sizing.Goal{Percentile: 0}, "percentile 0: write a number above 0 and below 100"),
	Entry("everybody", sizing.Goal{Percentile: 100}, "percentile 100"),
	Entry("not a number", sizing.Goal{Percentile: math.NaN()}, "percentile NaN"),
	Entry("before it is created", sizing.Goal{Percentile: 99, Wait: -1}, "times must not be negative"),
)

var _ = Describe("The suggestion for a synthetic week", func() {
	for _, week := range synthetic.Weeks {
		It("keeps the wait, with a schedule where days are alike (law 8): "+week.Name, func() {
			setup := usual(func(s *sizing.Setup) { s.To = synthetic.Until(1) })
			goal := 5 * time.Second
			report, err := sizing.Size(week.Trace(1, 1), setup, sizing.Goal{Percentile: 99, Wait: goal, Zone: time.UTC})
			Expect(err).NotTo(HaveOccurred())
			Expect(report.Amount).NotTo(BeNil())
			Expect(report.Amount.P99.Duration()).To(BeNumerically("<=", goal))
			less := outcome(week.Trace(1, 1), setup, sizing.Fixed(report.Amount.Machines-1))
			Expect(less.P99.Duration()).To(BeNumerically(">", goal), "a smaller amount is enough")
			if !week.Rhythm {
				Expect(report.Schedule).To(BeNil())
				return
			}
			Expect(report.Schedule).NotTo(BeNil())
			Expect(report.Schedule.P99.Duration()).To(BeNumerically("<=", goal))
			Expect(report.Schedule.ReserveHours).To(BeNumerically("<=", 0.6*report.Amount.ReserveHours))
		})
	}
})

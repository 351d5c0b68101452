// SPDX-License-Identifier: Apache-2.0

package sizing_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/test/synthetic"
)

// between is a schedule from one hour of each day to another.
func between(start, end v1alpha1.CronText, machines int32) v1alpha1.ReserveSchedule {
	return v1alpha1.ReserveSchedule{Name: "some", Start: start, End: end, Replicas: ptr.To(machines)}
}

// after is a step some hours after the first Monday has begun.
func after(hours, machines int) sizing.Step {
	return sizing.Step{At: synthetic.Monday.Add(time.Duration(hours) * time.Hour), Machines: machines}
}

var _ = DescribeTable("The amount of a day is the largest that is active",
	func(base int, schedules []v1alpha1.ReserveSchedule, want ...sizing.Step) {
		steps, err := sizing.Policy{Machines: base, Schedules: schedules}.Steps(synthetic.Monday, synthetic.Monday.AddDate(0, 0, 1))
		Expect(err).NotTo(HaveOccurred())
		Expect(steps).To(HaveExactElements(want))
	},
	Entry("without schedules", 2, nil, after(0, 2)),
	Entry("of one schedule and the base", 1, []v1alpha1.ReserveSchedule{between("0 8 * * *", "0 18 * * *", 5)}, after(0, 1), after(8, 5), after(18, 1)),
	Entry("of a schedule below the base", 3, []v1alpha1.ReserveSchedule{between("0 8 * * *", "0 18 * * *", 2)}, after(0, 3)),
	Entry("of overlapping schedules, the larger one first", 0, []v1alpha1.ReserveSchedule{between("0 8 * * *", "0 18 * * *", 5), between("0 6 * * *", "0 20 * * *", 2)},
		after(0, 0), after(6, 2), after(8, 5), after(18, 2), after(20, 0)),
	Entry("of overlapping schedules, the larger one last", 0, []v1alpha1.ReserveSchedule{between("0 6 * * *", "0 20 * * *", 2), between("0 8 * * *", "0 18 * * *", 5)},
		after(0, 0), after(6, 2), after(8, 5), after(18, 2), after(20, 0)),
	Entry("of a schedule that is suspended", 1, []v1alpha1.ReserveSchedule{{Name: "off", Start: "0 0 * * *", Duration: "24h", Replicas: ptr.To(int32(9)), Suspend: true}}, after(0, 1)),
)

var _ = It("A schedule that begins on the day before lasts until the last of its hours, also if these are almost the whole day", func() {
	var trace demand.Trace
	for day := range 5 {
		for hour := range 23 {
			trace = append(trace, pods(time.Duration(24*day+hour)*time.Hour+30*time.Minute, 2, 3000, 10*time.Minute))
		}
	}
	setup := usual(func(s *sizing.Setup) {
		s.To, s.Boot, s.BootPatience = synthetic.Until(1), []time.Duration{70 * time.Minute}, 0
	})
	report, err := sizing.Size(trace, setup, sizing.Goal{Percentile: 90, Wait: 5 * time.Second, Zone: time.UTC})
	Expect(err).NotTo(HaveOccurred())
	Expect(report.Schedule).NotTo(BeNil())
	steps, err := report.Schedule.Steps(synthetic.Monday, synthetic.Until(1))
	Expect(err).NotTo(HaveOccurred())
	Expect(steps).To(HaveExactElements(after(0, 4), after(4*24+23, 0),
		sizing.Step{At: synthetic.Until(1).Add(-70 * time.Minute), Machines: 4}), "with as many that boot")
})

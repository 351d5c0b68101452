// SPDX-License-Identifier: Apache-2.0

package sizing_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/test/synthetic"
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

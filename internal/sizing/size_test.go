// SPDX-License-Identifier: Apache-2.0

package sizing_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/demand/synthetic"
	"github.com/evenkeel/evenkeel/internal/sizing"
)

var _ = Describe("The suggestion for a synthetic week", func() {
	for _, week := range synthetic.Weeks {
		It("keeps the wait, with a schedule where days are alike (law 8): "+week.Name, func() {
			setup := usual(func(s *sizing.Setup) { s.To = synthetic.Until(1) })
			goal := 5 * time.Second
			report, err := sizing.Size(week.Trace(1, 1), setup, sizing.Goal{P99: goal, Zone: time.UTC})
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

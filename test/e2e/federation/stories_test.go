// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Use case 1: a workload in three clusters, each scaled by what it measures", func() {
	It("gets maxima where the load is, within a cooldown and two looks of the members' own autoscalers", func(ctx context.Context) {
		s := newShop(ctx, "demand", 3, 30, atLeastOne)
		Eventually(s.bounds(ctx)).Should(Equal("1..10/1..10/1..10"))
		s.load(25, 2, 2)
		begun := time.Now()
		Eventually(s.maxima(ctx), cooldown*time.Second+2*hpaPeriod+slow).Should(Equal("24/3/3"))
		AddReportEntry("from load to maxima", time.Since(begun))
		Eventually(s.replicas(ctx)).Should(Equal("24/2/2"))
		Eventually(s.condition(ctx, "Limited")).Should(Equal("True TooFewReplicas"))
		By("moving the load")
		s.load(2, 2, 20)
		Eventually(s.replicas(ctx)).Should(Equal("2/2/20"))
		Eventually(s.condition(ctx, "Limited")).Should(Equal("False Enough"))
		Eventually(s.condition(ctx, "Balanced")).Should(Equal("True AtAim"))
		s.guard.held()
	})
})

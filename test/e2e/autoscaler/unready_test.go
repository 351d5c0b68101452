// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = real("Nodes that are not ready", func() {
	It("do not stop scaling up to the limits of cluster-autoscaler; beyond them it waits until they are back", func(ctx context.Context) {
		p := newPool(ctx, "cut", "cut", "1:8", 4)
		workload(ctx, "cut", "cut", 4)
		runs(ctx, "cut", 4)
		p.becomes(ctx, "R4 4+0+0")
		list, err := p.machines(ctx)
		Expect(err).NotTo(HaveOccurred())
		// A Node that is younger would count as one that has not started.
		autoscale("--ok-total-unready-count=1", "--max-total-unready-percentage=30", "--max-node-startup-time=1s")
		healthy := func() (string, error) {
			s, err := said(ctx)
			return s.ClusterWide.Health.Status, err
		}

		cutOff(ctx, list[0].Name)
		p.becomes(ctx, "R4 3+0+1")
		demand(ctx, "cut", 5)
		p.becomes(ctx, "R5 4+0+1")
		runs(ctx, "cut", 5)
		Expect(healthy()).To(Equal("Healthy"))

		cutOff(ctx, list[0].Name, list[1].Name, list[2].Name)
		p.becomes(ctx, "R5 2+0+3")
		Eventually(healthy).Should(Equal("Unhealthy"))
		demand(ctx, "cut", 6)
		Consistently(func() string { return p.counts(ctx) }, 10*time.Second).Should(Equal("R5 2+0+3"))

		faults(ctx, "")
		runs(ctx, "cut", 6)
		p.becomes(ctx, "R6 6+0+0")
		Eventually(healthy).Should(Equal("Healthy"))
	})
})

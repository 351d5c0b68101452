// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Both watch the same pods, and each can raise replicas for them. With two machines in reserve, what one pod or two need is released at once; of
// three pods, one is left to cluster-autoscaler, since a machine has been booting for more than it waits.
var _ = real("Instant release and cluster-autoscaler together", func() {
	It("raise replicas once for the same pods, in 20 bursts", func(ctx context.Context) {
		p := pool{name: "once", workers: "once", cpus: 4, boot: "5s"}
		p.create(ctx, "1:60:2", 1)
		p.becomes(ctx, "R1 1+2+0")
		workload(ctx, "once", "once", 1)
		runs(ctx, "once", 1)
		autoscale("--scale-down-enabled=false")
		p.says(ctx, "once Healthy 1 of 1:60")
		before := calls(ctx)
		pods, replicas, again := int32(1), int32(1), int32(0)
		for i := range int32(20) {
			pods += i%3 + 1
			demand(ctx, "once", pods)
			runs(ctx, "once", int(pods))
			highest := p.highest(ctx, 3*time.Second)
			again += highest - max(pods, replicas)
			replicas = highest
			p.becomes(ctx, fmt.Sprintf("R%[1]d %[1]d+2+0", replicas))
		}
		raises := calls(ctx)["NodeGroupIncreaseSize"] - before["NodeGroupIncreaseSize"]
		AddReportEntry("Raised for 20 bursts", fmt.Sprintf("%d pods, %d machines, %d of them for pods that had one; cluster-autoscaler raised %d times",
			pods-1, replicas-1, again, raises), ReportEntryVisibilityAlways)
		Expect(again).To(BeZero())
	})
})

// highest is the largest number of replicas in a time.
func (p pool) highest(ctx context.Context, within time.Duration) int32 {
	GinkgoHelper()
	var highest int32
	for begun := time.Now(); time.Since(begun) < within; time.Sleep(50 * time.Millisecond) {
		replicas, err := p.replicas(ctx)
		Expect(err).NotTo(HaveOccurred())
		highest = max(highest, replicas)
	}
	return highest
}

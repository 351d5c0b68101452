// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// bound changes the bounds of a pool.
func (p pool) bound(ctx context.Context, bounds string) {
	GinkgoHelper()
	p.patch(ctx, `{"metadata":{"annotations":{%q:%q}}}`, machine.BoundsAnnotation, bounds)
}

var _ = real("Bounds that change while cluster-autoscaler runs", func() {
	It("count from then on, each of the three parts, and the status shows them", func(ctx context.Context) {
		p := newPool(ctx, "bound", "bound", "1:3:1", 2)
		workload(ctx, "bound", "bound", 2)
		runs(ctx, "bound", 2)
		p.becomes(ctx, "R2 2+1+0")
		autoscale()
		p.says(ctx, "bound Healthy 2 of 1:3")
		demand(ctx, "bound", 5)
		runs(ctx, "bound", 3)
		p.becomes(ctx, "R3 3+0+0")
		p.bound(ctx, "1:5:1")
		runs(ctx, "bound", 5)
		p.becomes(ctx, "R5 5+0+0")
		p.says(ctx, "bound Healthy 5 of 1:5")
		p.bound(ctx, "1:8:2")
		p.becomes(ctx, "R5 5+2+0")
		p.bound(ctx, "3:8:1")
		demand(ctx, "bound", 1)
		p.becomes(ctx, "R3 3+1+0")
		p.says(ctx, "bound Healthy 3 of 3:8")
		Consistently(func() string { return p.counts(ctx) }, 15*time.Second).Should(Equal("R3 3+1+0"), "the smallest is 3, though two are empty")
		p.bound(ctx, "1:8:0")
		p.becomes(ctx, "R1 1+0+0")
		Expect(run(ctx, "bound")).To(Equal(1))
	})

	It("turn a MachineDeployment into a group and back, without a restart", func(ctx context.Context) {
		p := newPool(ctx, "joined", "joined", "1:4", 1)
		p.patch(ctx, `{"metadata":{"annotations":{%q:null}}}`, machine.BoundsAnnotation)
		p.becomes(ctx, "R1 1+0+0")
		autoscale()
		workload(ctx, "joined", "joined", 2)
		runs(ctx, "joined", 1)
		Consistently(func() string { return p.counts(ctx) }, 5*time.Second).Should(Equal("R1 1+0+0"), "it is in no group")
		p.bound(ctx, "1:4:1")
		runs(ctx, "joined", 2)
		p.becomes(ctx, "R2 2+1+0")
		p.says(ctx, "joined Healthy 2 of 1:4")
		p.patch(ctx, `{"metadata":{"annotations":{%q:null}}}`, machine.BoundsAnnotation)
		p.says(ctx, "")
		demand(ctx, "joined", 0)
		Consistently(func() (int32, error) { return p.replicas(ctx) }, 15*time.Second).Should(BeEquivalentTo(2))
	})
})

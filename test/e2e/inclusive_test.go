// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// counted sets where the reserve of a pool is counted.
func (p pool) counted(ctx context.Context, a machine.Accounting) {
	GinkgoHelper()
	p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, machine.AccountingAnnotation, a))
}

// of waits until so many machines serve, so many are in reserve, and replicas are as many.
func (p pool) of(ctx context.Context, replicas, serving, reserve int, reason string) {
	GinkgoHelper()
	p.rests(ctx, serving, reserve, reason)
	Eventually(func() int { return p.replicas(ctx) }).WithContext(ctx).Should(Equal(replicas))
}

var _ = Describe("A reserve within replicas", Label("ours"), func() {
	It("is counted as its Nodes appear and disappear, shrinks, is released, rolls, and changes its accounting without a machine created or deleted", func(ctx context.Context) {
		p := newPool(ctx, "within", 3, withBounds("1:7:2"), func(md *machine.MachineDeployment) {
			md.Annotations[machine.AccountingAnnotation] = string(machine.AccountingInclusive)
		})
		p.of(ctx, 5, 3, 2, "Complete")
		p.work(ctx, 3)

		By("another accounting and back, which is one write each")
		before := namesOf(p.machines(ctx))
		for range 2 {
			p.counted(ctx, machine.AccountingAdditive)
			p.of(ctx, 3, 3, 2, "Complete")
			p.counted(ctx, machine.AccountingInclusive)
			p.of(ctx, 5, 3, 2, "Complete")
		}
		Expect(namesOf(p.machines(ctx))).To(ConsistOf(before))

		By("a pod that waits, for which replicas stay until the reserve is refilled")
		p.moreWork(ctx, 4)
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(4))
		Expect(before).To(ContainElements(p.busy(ctx)), "no pod waited for a machine to be made")
		p.of(ctx, 6, 4, 2, "Complete")

		By("replicas that are raised, to max")
		p.scale(ctx, 7)
		p.of(ctx, 7, 5, 2, "Complete")

		By("a machine that serves and is named")
		free := ""
		for _, name := range p.serving(ctx) {
			if !slices.Contains(p.busy(ctx), name) {
				free = name
			}
		}
		p.shrinkBy(ctx, 6, free)
		p.of(ctx, 6, 4, 2, "Complete")

		By("a reduction that names no machine: no pod moves")
		busy := p.busy(ctx)
		p.scale(ctx, 4)
		p.of(ctx, 4, 4, 0, "ReplicasLowered")
		Expect(p.busy(ctx)).To(ConsistOf(busy))
		p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:"1:7:1"}}}`, machine.BoundsAnnotation))
		p.of(ctx, 5, 4, 1, "Complete")

		By("a rollout")
		old := namesOf(p.machines(ctx))
		p.newClass(ctx, "within-next")
		p.patch(ctx, `{"spec":{"template":{"spec":{"class":{"name":"within-next"}}}}}`)
		Eventually(func() []string { return namesOf(p.machines(ctx)) }).WithContext(ctx).WithTimeout(4 * time.Minute).
			ShouldNot(ContainElement(BeElementOf(old)))
		p.of(ctx, 5, 4, 1, "Complete")

		By("no reserve")
		busy = p.busy(ctx)
		p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:"1:7:0"}}}`, machine.BoundsAnnotation))
		p.of(ctx, 4, 4, 0, "")
		Expect(p.busy(ctx)).To(ConsistOf(busy))
	})
})

// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

// real are specs with an unmodified cluster-autoscaler.
func real(text string, body func()) bool { return Describe(text, Label(needsBinary), body) }

var _ = real("An unmodified cluster-autoscaler", func() {
	It("raises for pods: the reserve takes them at once and is refilled; at max, the reserve is used up, and max is never exceeded; then it names machines, and the reserve is refilled", func(ctx context.Context) {
		p := newPool(ctx, "grown", "grown", "1:5:2", 1)
		p.becomes(ctx, "R1 1+2+0")
		seen := p.record(ctx)
		autoscale()
		workload(ctx, "grown", "grown", 2)
		runs(ctx, "grown", 2)
		p.becomes(ctx, "R2 2+2+0")
		demand(ctx, "grown", 3)
		runs(ctx, "grown", 3)
		p.becomes(ctx, "R3 3+2+0")
		demand(ctx, "grown", 6)
		runs(ctx, "grown", 5)
		p.becomes(ctx, "R5 5+0+0")
		Consistently(func() string { return p.counts(ctx) }, 5*time.Second).Should(Equal("R5 5+0+0"), "the sixth pod waits")
		demand(ctx, "grown", 2)
		p.becomes(ctx, "R2 2+2+0")
		Expect(run(ctx, "grown")).To(Equal(2))
		Expect(seen.most()).To(BeNumerically("<=", 5))
	})

	It("scales up and down at the cap for 10 cycles, without a needless call", func(ctx context.Context) {
		p := newPool(ctx, "cycled", "cycled", "1:5:2", 3)
		workload(ctx, "cycled", "cycled", 3)
		p.becomes(ctx, "R3 3+2+0")
		runs(ctx, "cycled", 3)
		seen := p.record(ctx)
		autoscale()
		before := calls(ctx)
		for range 10 {
			demand(ctx, "cycled", 5)
			runs(ctx, "cycled", 5)
			p.becomes(ctx, "R5 5+0+0")
			demand(ctx, "cycled", 3)
			p.becomes(ctx, "R3 3+2+0")
			runs(ctx, "cycled", 3)
		}
		Expect(seen.most()).To(BeNumerically("<=", 5))
		after := calls(ctx)
		Expect(after["NodeGroupIncreaseSize"]-before["NodeGroupIncreaseSize"]).To(BeNumerically("<=", 20), "one or two per cycle")
		Expect(after["NodeGroupDeleteNodes"]-before["NodeGroupDeleteNodes"]).To(BeNumerically("<=", 20), "one per machine")
		Expect(after["NodeGroupDecreaseTargetSize"]).To(Equal(before["NodeGroupDecreaseTargetSize"]))
	})

	It("scales from zero and back", func(ctx context.Context) {
		p := newPool(ctx, "zero", "zero", "0:3", 0)
		autoscale()
		workload(ctx, "zero", "zero", 2)
		runs(ctx, "zero", 2)
		p.becomes(ctx, "R2 2+0+0")
		demand(ctx, "zero", 0)
		p.becomes(ctx, "R0 0+0+0")
	})

	It("balances over three zones, one of which has no machine yet", func(ctx context.Context) {
		zones := []pool{newPool(ctx, "even-1", "even", "0:9", 1), newPool(ctx, "even-2", "even", "0:9", 1), newPool(ctx, "even-3", "even", "0:9", 0)}
		workload(ctx, "even", "even", 2)
		runs(ctx, "even", 2)
		settled(ctx, "even")
		autoscale()
		demand(ctx, "even", 9)
		runs(ctx, "even", 9)
		for _, p := range zones {
			p.becomes(ctx, "R3 3+0+0")
		}
	})

	It("skips a zone that has no capacity, and uses another", func(ctx context.Context) {
		zones := []pool{newPool(ctx, "dry-1", "dry", "0:5", 1), newPool(ctx, "dry-2", "dry", "0:5", 1)}
		workload(ctx, "dry", "dry", 2)
		runs(ctx, "dry", 2)
		outage(ctx, "dry-1")
		autoscale("--balance-similar-node-groups=false")
		demand(ctx, "dry", 5)
		runs(ctx, "dry", 5)
		zones[0].becomes(ctx, "R1 1+0+0")
		zones[1].becomes(ctx, "R4 4+0+0")
	})

	It("continues when it or Evenkeel is restarted at any point, and during a rollout", func(ctx context.Context) {
		p := newPool(ctx, "shaken", "shaken", "1:6:1", 1)
		p.becomes(ctx, "R1 1+1+0")
		seen := p.record(ctx)
		ca := autoscale()
		workload(ctx, "shaken", "shaken", 1)
		for i := range 3 {
			demand(ctx, "shaken", 3)
			shake(ca, i)
			runs(ctx, "shaken", 3)
			p.becomes(ctx, "R3 3+1+0")
			demand(ctx, "shaken", 1)
			shake(ca, i)
			p.becomes(ctx, "R1 1+1+0")
		}
		p.newClass(ctx, "shaken-2")
		p.patch(ctx, `{"spec":{"template":{"spec":{"class":{"name":"shaken-2"}}}}}`)
		demand(ctx, "shaken", 4)
		shake(ca, 1)
		Eventually(func(g Gomega) {
			list, err := p.machines(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			for _, m := range list {
				g.Expect(m.Spec.Class.Name).To(Equal("shaken-2"))
			}
		}, 5*time.Minute).Should(Succeed())
		runs(ctx, "shaken", 4)
		p.becomes(ctx, "R4 4+1+0")
		demand(ctx, "shaken", 1)
		p.becomes(ctx, "R1 1+1+0")
		Expect(seen.most()).To(BeNumerically("<=", 7), "max, and one of the rollout's surge")
	})
})

// shake kills Evenkeel and cluster-autoscaler, and restarts both: the larger the number, the later, so that each is killed at a different point.
func shake(ca *localcluster.Process, later int) {
	GinkgoHelper()
	for _, process := range []*localcluster.Process{cluster.Process(manager), ca} {
		time.Sleep(time.Duration(later) * 900 * time.Millisecond)
		Expect(process.Kill()).To(Succeed())
		Expect(process.Start()).To(Succeed())
	}
}

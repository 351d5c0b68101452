// SPDX-License-Identifier: Apache-2.0

package app

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = Describe("Flags of the balance controller", func() {
	It("leave replicas alone by default", func() {
		s, err := parsed().Balance.settings("default")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Mode).To(Equal(v1alpha1.BalanceOff))
		Expect(s.Enabled).To(BeTrue(), "annotations have effect")
		Expect(s.Bounds).To(BeEmpty())
		Expect(s.PoolLabels).To(Equal([]string{"worker.gardener.cloud/pool"}))
	})

	It("take bounds as cluster-autoscaler does, repeated, with commas in an excess", func() {
		o := parsed("--nodes=1:10:2:default.pool-z1", "--nodes=1:10:cpu=16,memory=64Gi:default.pool-z2", "--nodes=0:3:default.pool.z3")
		Expect(o.Validate()).To(Succeed())
		s, err := o.Balance.settings("default")
		Expect(err).NotTo(HaveOccurred())
		var texts []string
		for _, name := range []string{"pool-z1", "pool-z2", "pool.z3"} {
			texts = append(texts, s.Bounds[name].String())
		}
		Expect(texts).To(Equal([]string{"1:10:2", "1:10:cpu=16,memory=64Gi", "0:3:0"}))
	})

	It("decide what is similar", func() {
		s, err := parsed("--similar-pool-label=team", "--memory-difference-ratio=0.5", "--balancing-ignore-label=mine").Balance.settings("default")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Similar.PoolLabels).To(Equal([]string{"team"}))
		Expect(s.Similar.MemoryRatio).To(Equal(0.5))
		Expect(s.Similar.IgnoredLabels).To(ContainElement("mine"))
		Expect(parsed("--balancing-label=team").Balance.Similar.Options().BalancingLabels).To(Equal([]string{"team"}))
	})

	It("limit Nodes that are not ready as cluster-autoscaler does, for the machine-taint controller, too", func() {
		Expect(parsed().Unready.UnreadyLimits).To(Equal(pool.UnreadyLimits{Count: 3, Percentage: 45}))
		p := &process{options: parsed("--max-total-unready-percentage=12.5", "--ok-total-unready-count=7")}
		want := pool.UnreadyLimits{Count: 7, Percentage: 12.5}
		zones, err := p.zoneSettings()
		Expect(err).NotTo(HaveOccurred())
		Expect(zones.Unready).To(Equal(want))
		Expect(p.options.Reserve.options(p, &accounting{}).Settings.Unready).To(Equal(want))
	})

	DescribeTable("are refused where they make no sense",
		func(mention string, arguments ...string) {
			Expect(parsed(arguments...).Validate()).To(MatchError(ContainSubstring(mention)))
		},
		Entry("an unknown mode", "--balance-mode", "--balance-mode=On"),
		Entry("a negative patience", "--balance-boot-patience", "--balance-boot-patience=-1s"),
		Entry("a ratio beyond 1", "--memory-difference-ratio", "--memory-difference-ratio=2"),
		Entry("labels that exclude each other", "--balancing-label", "--balancing-label=a", "--balancing-ignore-label=b"),
		Entry("bounds of another namespace", "namespace", "--nodes=1:2:3:other.pool"),
		Entry("bounds that are no bounds", "min must not be above max", "--nodes=3:2:default.pool"),
		Entry("a percentage beyond 100", "--max-total-unready-percentage", "--max-total-unready-percentage=100.1"),
		Entry("a percentage below 0", "--max-total-unready-percentage", "--max-total-unready-percentage=-1"),
		Entry("a percentage that is no number", "--max-total-unready-percentage", "--max-total-unready-percentage=NaN"),
		Entry("a negative number of Nodes", "--ok-total-unready-count", "--ok-total-unready-count=-1"),
		Entry("bounds twice", "twice", "--nodes=1:2:default.pool", "--nodes=1:3:default.pool"),
	)
})

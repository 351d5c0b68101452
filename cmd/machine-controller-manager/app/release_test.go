// SPDX-License-Identifier: Apache-2.0

package app

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Instant release", func() {
	It("is on, for Kubernetes' scheduler and Gardener's, unless it is switched off", func() {
		o := parsed()
		Expect(o.Release).To(Equal(ReleaseOptions{Enabled: true, Schedulers: []string{"default-scheduler", "bin-packing-scheduler"}, Cutoff: -10, Patience: 30 * time.Second}))
		Expect(parsed("--instant-release=false").Release.Enabled).To(BeFalse())
		Expect(parsed("--release-schedulers=mine").Release.Schedulers).To(Equal([]string{"mine"}))
	})

	It("prefers the smallest of similar MachineDeployments, by the flags of the balance controller", func() {
		o := parsed("--balancing-label=team", "--pool-label=pool")
		s := o.Release.settings(&o.Balance)
		Expect(s.Even).To(BeTrue())
		Expect(s.Similar.BalancingLabels).To(Equal([]string{"team"}))
		Expect(s.PoolLabels).To(Equal([]string{"pool"}))
		o = parsed("--balance-similar-node-groups=false")
		Expect(o.Release.settings(&o.Balance).Even).To(BeFalse())
	})

	It("refuses a patience that is none", func() {
		Expect(parsed("--release-patience=0s").Validate()).To(MatchError(ContainSubstring("--release-patience")))
	})
})

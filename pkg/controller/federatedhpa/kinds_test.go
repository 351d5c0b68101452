// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("A cluster where the hub may not list the workloads", func() {
	It("is not used, also while the hub asks again over a slow link", func() {
		play(func(f *federation) {
			f.clusters[0].Trouble("deployments", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "federatedhpa")
			f.clusters[0].LatencyOf(func(r sim.Request) (before, after time.Duration) { return 0, 100 * time.Millisecond })
			f.start()
			f.create(Federated(1, 10))
			time.Sleep(time.Hour)
			Expect(f.state("shop", "c1")).To(Equal("Refused ListRefused"))
			Expect(f.bounds("shop")).To(Equal("-/1..10"))
			Expect(f.events()).NotTo(ContainElement("Left"))
			f.clusters[0].Trouble("deployments", sim.Trouble{}, "federatedhpa")
			time.Sleep(3 * time.Minute)
			Expect(f.state("shop", "c1")).NotTo(HavePrefix("Refused"))
		}, "c1", "c2")
	})
})

// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("An object that is created again under its name", func() {
	It("waits for no retry of the old one, also where the hub sees no moment without it", func() {
		play(func(f *federation) {
			f.clusters[0].refuseAbove(10)
			f.Lag("federatedhorizontalpodautoscalers", sim.Constantly(time.Second), "federatedhpa")
			f.start()
			f.create(Federated(1, 20))
			time.Sleep(10 * time.Minute)
			Expect(f.state("shop", "c1")).To(Equal("Refused RefusedInvalid"))
			f.remove("shop")
			for f.Get(objectGVR, ns, "shop") != nil {
				time.Sleep(10 * time.Millisecond)
			}
			f.Down(true, "federatedhpa")
			f.create(Federated(1, 10))
			f.Compact()
			f.Down(false, "federatedhpa")
			time.Sleep(time.Minute)
			Expect(f.bounds("shop")).To(Equal("1..10"))
		}, "c1")
	})
})

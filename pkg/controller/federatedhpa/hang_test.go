// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("A cluster that hangs", func() {
	It("delays no other", func() {
		usual, hanging := follow(false), follow(true)
		Expect(hanging).To(BeNumerically("<=", usual+2*time.Second), "the orders to it are under way for 10 seconds")
	})
})

// follow is how long two clusters take to begin to follow their load, beside a third that may hang.
func follow(hangs bool) (took time.Duration) {
	play(func(f *federation) {
		f.start()
		f.create(Federated(3, 30))
		f.loads("shop", 10, 1, 1)
		f.settle()
		if hangs {
			f.clusters[2].LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == "federatedhpa" {
					return 24 * time.Hour, 0
				}
				return 0, 0
			})
		}
		f.loads("shop", 40, 1, 1) // so that both of the others have to give
		for f.clusters[0].hpa("shop").Status.Conditions[1].Reason != "TooManyReplicas" {
			time.Sleep(10 * time.Millisecond)
		}
		begun := time.Now()
		for f.clusters[0].hpa("shop").Spec.MaxReplicas <= 10 {
			time.Sleep(10 * time.Millisecond)
		}
		took = time.Since(begun)
		f.clusters[2].LatencyOf(nil)
	}, "c1", "c2", "c3")
	return took
}

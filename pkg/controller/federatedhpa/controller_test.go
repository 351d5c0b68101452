// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The controller", func() {
	It("makes autoscalers in all clusters, moves maxima to where load is, and then rests", func() {
		play(func(f *federation) {
			f.start()
			f.create(federated(3, 30))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10/1..10/1..10"))
			f.loads("shop", 25, 2, 2)
			f.settle()
			Expect(f.maxima("shop")).To(Equal("24/3/3"))
			Expect(f.condition("shop", "Ready")).To(Equal("True UnderControl"))
			Expect(f.condition("shop", "Limited")).To(Equal("True TooFewReplicas"))
			before := len(f.ours())
			time.Sleep(24 * time.Hour)
			Expect(f.ours()[before:]).To(BeEmpty())
		}, "c1", "c2", "c3")
	})
})

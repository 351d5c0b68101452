// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A reserve", func() {
	It("is born beside the machines that serve, and then nothing is written", func() {
		play(func(c *cluster) {
			c.pool(3, excess(2))
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.written(since)).To(BeEmpty())
		})
	})
})

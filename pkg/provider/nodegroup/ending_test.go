// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"

	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The end", func() {
	It("closes connections, ends calls under way, and writes nothing after (law 11)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			Expect(c.begin()).To(Succeed())
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User == serving && r.Verb == "patch" {
					return time.Second, 0
				}
				return 0, 0
			})
			ended := make(chan error, 1)
			go func() { ended <- c.increaseOnly("pool", 1) }()
			time.Sleep(100 * time.Millisecond)
			begun := time.Now()
			Expect(c.process.Stop()).To(Succeed())
			Expect(<-ended).To(HaveOccurred())
			Expect(time.Since(begun)).To(BeNumerically("<", time.Second))
			Expect(code(c.begin())).To(Equal(codes.Unavailable))
			time.Sleep(time.Minute)
			Expect(c.writes()).To(BeEmpty())
			c.LatencyOf(nil)
		})
	})

	It("happens at once while the caches are not filled", func() {
		play(func(c *cluster) {
			Expect(c.process.Stop()).To(Succeed())
			c.Down(true, serving)
			again := c.Start(serving, server(c.wire))
			time.Sleep(time.Minute)
			Expect(again.Stop()).To(Succeed())
		})
	})
})

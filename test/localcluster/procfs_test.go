// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"net"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A paused process", func() {
	It("has stopped in all its threads", func(ctx SpecContext) {
		c := startCluster(ctx, Options{Components: APIServerOnly})
		process := c.Process(APIServer)
		for range 20 {
			Expect(isPaused(process.PID())).To(BeFalse())
			Expect(process.Pause()).To(Succeed())
			Expect(isPaused(process.PID())).To(BeTrue())
			Expect(process.Resume()).To(Succeed())
			Eventually(func() bool { return isPaused(process.PID()) }).WithContext(ctx).Should(BeFalse())
		}
	})
})

var _ = Describe("A killed process", func() {
	It("counts as running until its last thread has given its ports back", func(ctx SpecContext) {
		c := startCluster(ctx, Options{Components: APIServerOnly})
		address := c.config.Host[len("https://"):]
		for range 5 {
			pid := c.Process(APIServer).PID()
			Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
			for identify(pid) != "" {
			}
			listener, err := net.Listen("tcp", address)
			Expect(err).NotTo(HaveOccurred())
			Expect(listener.Close()).To(Succeed())
			Expect(c.Process(APIServer).Start()).To(Succeed())
			Expect(c.Process(APIServer).WaitReady(ctx)).To(Succeed())
		}
	})
})

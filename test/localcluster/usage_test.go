// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The usage of a process", func() {
	It("has its memory and its CPU time", func() {
		const large = 32 << 20
		before, err := ReadUsage(os.Getpid())
		Expect(err).NotTo(HaveOccurred())
		block := make([]byte, large)
		for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
			for i := range block {
				block[i]++
			}
		}
		after, err := ReadUsage(os.Getpid())
		Expect(err).NotTo(HaveOccurred())
		Expect(block[0]).NotTo(BeZero())
		Expect(after.Private).To(And(BeNumerically(">", before.Private+16), BeNumerically("<=", after.Resident)))
		Expect(after.Peak).To(BeNumerically(">=", after.Resident))
		Expect(after.CPU - before.CPU).To(And(BeNumerically(">", 0), BeNumerically("<", time.Minute)))
	})

	It("cannot be read of one that does not exist", func() {
		_, err := ReadUsage(0)
		Expect(err).To(MatchError(os.ErrNotExist))
	})
})

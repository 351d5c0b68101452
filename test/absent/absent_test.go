// SPDX-License-Identifier: Apache-2.0

package absent_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/absent"
)

func TestAbsent(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Absent")
}

var _ = Describe("A tool", func() {
	It("is noted while it is missing", func() {
		root, tools := GinkgoT().TempDir(), GinkgoT().TempDir()
		GinkgoT().Setenv("PATH", tools)
		Expect(absent.Noted(root)).To(BeEmpty())
		_, found, err := absent.Tool(root, "judge", "judge-2")
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(BeFalse())
		Expect(absent.Noted(root)).To(Equal([]string{"judge"}))

		there := filepath.Join(tools, "judge-2")
		Expect(os.WriteFile(there, []byte("#!/bin/sh\n"), 0o700)).To(Succeed())
		path, found, err := absent.Tool(root, "judge", "judge-2")
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(BeTrue())
		Expect(path).To(Equal(there))
		Expect(absent.Noted(root)).To(BeEmpty())
	})
})

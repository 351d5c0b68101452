// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"os"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = It("has a test for every law that its page names", func() {
	page, err := os.ReadFile("doc.go")
	Expect(err).NotTo(HaveOccurred())
	var tests []byte
	for _, name := range []string{"laws_test.go", "bounds_test.go"} {
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		tests = append(tests, text...)
	}
	laws := regexp.MustCompile(`(?m)^//\t([a-z-]+)  +\S`).FindAllStringSubmatch(string(page), -1)
	Expect(len(laws)).To(BeNumerically(">=", 9))
	for _, law := range laws {
		Expect(string(tests)).To(MatchRegexp(`(law|It)\("[^"]*\b`+law[1]+`\b`), law[1])
	}
})

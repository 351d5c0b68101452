// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"os"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = It("has a page that explains every reason, and no other", func() {
	code, err := os.ReadFile("standing.go")
	Expect(err).NotTo(HaveOccurred())
	page, err := os.ReadFile("../../docs/reserve-rule.md")
	Expect(err).NotTo(HaveOccurred())
	Expect(submatches(regexp.MustCompile("`([A-Z][A-Za-z]+)`"), page)).
		To(ConsistOf(submatches(regexp.MustCompile(`Reason = "([A-Za-z]+)"`), code)))
})

func submatches(pattern *regexp.Regexp, text []byte) []string {
	var found []string
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	return found
}

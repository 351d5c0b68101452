// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The glossary", func() {
	// page has a table of rows, and before it one of two words.
	page := func(rows ...string) string {
		text := "| word | meaning |\n|---|---|\n| first, second | a, b, c |\n\n## More\n\n| word | meaning |\n|---|---|\n"
		return text + strings.Join(rows, "")
	}
	numbered := func(from, to int) (rows []string) {
		for i := from; i <= to; i++ {
			rows = append(rows, fmt.Sprintf("| word %d | meaning |\n", i))
		}
		return rows
	}

	DescribeTable("has few words, each once",
		func(text string, wrong ...string) { Expect(beyondWords(text)).To(ConsistOf(wrong)) },
		Entry("where it has none", ""),
		Entry("where it has as many as may be", page(numbered(3, 30)...)),
		Entry("where it has one more", page(numbered(3, 31)...), "docs/glossary.md: 31 words, and at most 30 can be learned"),
		Entry("where a row has one more", page(append(numbered(3, 29), "| a, b | meaning |\n")...), "docs/glossary.md: 31 words, and at most 30 can be learned"),
		Entry("where one is there twice", page("| second | meaning |\n"), "docs/glossary.md: second is there twice"),
		Entry("where words differ by a capital letter", page("| Second | meaning |\n")),
	)

	It("of this repository does", func() {
		text, err := os.ReadFile("../../docs/glossary.md")
		Expect(err).NotTo(HaveOccurred())
		Expect(rows(string(text))).To(ContainElements("excess", "stock"))
		Expect(beyondWords(string(text))).To(BeEmpty())
	})
})

// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/oracle"
)

// contract describes the controllers.
const contract = "../../docs/controllers.md"

var update = flag.Bool("update", false, "write into docs/controllers.md which rows have a story")

// row is a row of the contract: its id, what is between, and whether a story plays it.
var row = regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \|(.*)\| (yes )?\|$`)

// played are the rows that stories name.
func played() (rows []string) {
	for _, s := range oracle.Stories() {
		rows = append(rows, s.Rows...)
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// marked is the contract with a mark in each row that a story plays.
func marked(text string) string {
	return row.ReplaceAllStringFunc(text, func(line string) string {
		parts := row.FindStringSubmatch(line)
		mark := ""
		if slices.Contains(played(), parts[1]) {
			mark = "yes "
		}
		return "| " + parts[1] + " |" + parts[2] + "| " + mark + "|"
	})
}

var _ = Describe("docs/controllers.md", func() {
	It("has each row that a story names", func() {
		raw, err := os.ReadFile(contract)
		Expect(err).NotTo(HaveOccurred())
		var ids []string
		for _, match := range row.FindAllStringSubmatch(string(raw), -1) {
			ids = append(ids, match[1])
		}
		Expect(ids).To(ContainElements(played()))
		missing := slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(played(), id) })
		AddReportEntry("rows without a story", strings.Join(missing, " "))
	})

	It("says which rows have a story", func() {
		raw, err := os.ReadFile(contract)
		Expect(err).NotTo(HaveOccurred())
		if *update {
			Expect(os.WriteFile(contract, []byte(marked(string(raw))), 0o644)).To(Succeed())
			return
		}
		Expect(string(raw)).To(Equal(marked(string(raw))), "run go test ./test/oracle -update")
	})
})

var _ = Describe("Stories", func() {
	It("have names of their own, and rows", func() {
		names := map[string]bool{}
		for _, s := range oracle.Stories() {
			Expect(names).NotTo(HaveKey(s.Name))
			Expect(s.Rows).NotTo(BeEmpty(), s.Name)
			names[s.Name] = true
		}
	})
})

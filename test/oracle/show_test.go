// SPDX-License-Identifier: Apache-2.0

//go:build !race

package oracle_test

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"github.com/evenkeel/evenkeel/test/oracle"
)

// With SHOW, the stories with such names are printed, and what stock leaves behind.
var _ = Describe("Stories", func() {
	text := os.Getenv("SHOW")
	for _, story := range oracle.Stories() {
		if text == "" || !strings.Contains(story.Name, text) {
			continue
		}
		It("show "+story.Name, func() {
			AddReportEntry(story.String(), oracle.Play(suite, story, oracle.Stock).String(), ReportEntryVisibilityAlways)
		})
	}
})

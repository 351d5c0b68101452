// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// row is what was measured of one story with one binary.
type row struct {
	story, image string
	// nodes and worker are the unhealthy spells, as gardenlet's care and as the extension's health check see it.
	nodes, worker spells
	// most is how many machines there were at most.
	most int
	// notes are further measures.
	notes []string
	// wrong are the expectations that are not met.
	wrong []string
}

// newRow measures a story. The table has what is known when the story has ended.
func newRow(story, image string) *row {
	r := &row{story: story, image: image}
	DeferCleanup(r.report)
	return r
}

// Parts of the table, in the report of a spec.
const (
	lineOfTable = "line of the table"
	belowTable  = "below the table"
)

func (r *row) report() {
	AddReportEntry(lineOfTable, ReportEntryVisibilityNever, fmt.Sprintf("%s\t%s\t%d\t%v\t%v", r.story, binaryName(r.image), r.most, r.nodes, r.worker))
	for _, text := range slices.Concat(r.nodes.messages(), r.worker.messages(), r.notes) {
		AddReportEntry(belowTable, ReportEntryVisibilityNever, fmt.Sprintf("%s, %s: %s", r.story, binaryName(r.image), text))
	}
}

func (r *row) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// expect judges an expectation of a story. A story goes on whatever it is, and fails in the end with all that is wrong.
func (r *row) expect(what string, problem error) {
	if problem != nil {
		r.wrong = append(r.wrong, fmt.Sprintf("%s, %s: %s: %v", binaryName(r.image), r.story, what, problem))
	}
}

// The table of what was measured, whatever failed.
var _ = ReportAfterSuite("table", func(r Report) { fmt.Println(table(r.SpecReports)) })

func table(specs types.SpecReports) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nSTORY\tBINARY\tMACHINES\tEVERYNODEREADY UNHEALTHY\tWORKER UNHEALTHY")
	for _, line := range entries(specs, lineOfTable) {
		fmt.Fprintln(w, line)
	}
	_ = w.Flush()
	for _, line := range entries(specs, belowTable) {
		fmt.Fprintln(&text, line)
	}
	return text.String()
}

// entries are the entries of a name, whichever process made them.
func entries(specs types.SpecReports, name string) []string {
	var found []string
	for _, spec := range specs {
		for _, e := range spec.ReportEntries {
			if e.Name == name {
				found = append(found, e.StringRepresentation())
			}
		}
	}
	return found
}

func binaryName(image string) string {
	if image == stock {
		return "stock"
	}
	return "ours"
}

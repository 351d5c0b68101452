// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	. "github.com/onsi/ginkgo/v2"
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

var rows []*row

func newRow(story, image string) *row {
	r := &row{story: story, image: image}
	rows = append(rows, r)
	return r
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
var _ = ReportAfterSuite("table", func(Report) { fmt.Println(table()) })

func table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nSTORY\tBINARY\tMACHINES\tEVERYNODEREADY UNHEALTHY\tWORKER UNHEALTHY")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%v\t%v\n", r.story, binaryName(r.image), r.most, r.nodes, r.worker)
	}
	_ = w.Flush()
	for _, r := range rows {
		for _, line := range slices.Concat(r.nodes.messages(), r.worker.messages(), r.notes) {
			fmt.Fprintf(&text, "%s, %s: %s\n", r.story, binaryName(r.image), line)
		}
	}
	return text.String()
}

func binaryName(image string) string {
	if image == stock {
		return "stock"
	}
	return "ours"
}

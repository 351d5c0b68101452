// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// table is what was measured.
type table [][2]string

func (t *table) add(what, figure string) { *t = append(*t, [2]string{what, figure}) }

func (t *table) took(what string, d time.Duration) {
	if d < 10*time.Second {
		t.add(what, fmt.Sprintf("%.2f s", d.Seconds()))
		return
	}
	t.add(what, fmt.Sprintf("%.0f s", d.Seconds()))
}

func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	for _, row := range *t {
		fmt.Fprintf(w, "  %s\t%s\n", row[0], row[1])
	}
	return w.Flush()
}

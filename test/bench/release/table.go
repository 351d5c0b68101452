// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one way with one size of burst.
type row struct {
	way      string
	pods     int
	creator  creator
	took     []time.Duration
	machines int
	steps    steps
}

// at is the time that a part of the pods took at most.
func (r row) at(part float64) time.Duration {
	if len(r.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.took))
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

func (r row) String() string {
	return fmt.Sprintf("%s, %d pods: p50 %v, max %v, machines %d", r.way, r.pods, round(r.at(0.5)), round(r.at(1)), r.machines)
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

type table []row

// print shows each way beside the first with such pods, which is the floor.
func (t table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "way\tpods\tp50\tp99\tmax\tp50 / floor\tmachines\t")
	for _, r := range t {
		ratio := ""
		if i := slices.IndexFunc(t, func(f row) bool { return f.pods == r.pods && f.creator == r.creator }); i >= 0 && t[i].at(0.5) > 0 {
			ratio = fmt.Sprintf("%.2f", float64(r.at(0.5))/float64(t[i].at(0.5)))
		}
		fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%v\t%s\t%d\t\n", r.way, r.pods, round(r.at(0.5)), round(r.at(0.99)), round(r.at(1)), ratio, r.machines)
	}
	_ = w.Flush() // to standard output, where nothing can be done about it
}

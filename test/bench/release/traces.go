// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/evenkeel/evenkeel/test/collector"
)

// stepNames are the steps of a release, from the event of a waiting pod on.
var stepNames = []string{
	"gather events", "observe", "plan", "write replicas", "pass on", "decide which machine", "remove the first taint", "first machine, in all", "last machine, in all",
}

// steps are how long each step took, once for each release.
type steps map[string][]time.Duration

// exportDelay is how long it takes at most until the spans of a release have been sent.
const exportDelay = 2 * time.Second

// collect takes the releases apart that happened since the last call.
func (s *steps) collect(ctx context.Context, from *collector.Collector) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(exportDelay):
	}
	spans := from.Spans()
	children := map[string][]collector.Span{}
	for _, span := range spans {
		children[span.Trace+span.Parent] = append(children[span.Trace+span.Parent], span)
	}
	if *s == nil {
		*s = steps{}
	}
	for _, span := range spans {
		if span.Name == "release" {
			s.add(span, func(of collector.Span, name string) []collector.Span {
				return slices.DeleteFunc(slices.Clone(children[of.Trace+of.ID]), func(c collector.Span) bool { return c.Name != name })
			})
		}
	}
	return nil
}

// add takes one release apart, if a machine was released.
func (s steps) add(release collector.Span, children func(of collector.Span, name string) []collector.Span) {
	raises, syncs := children(release, "PATCH machinedeployments"), children(release, "machinetaint")
	if len(raises) == 0 || len(syncs) == 0 {
		return
	}
	for _, sync := range syncs {
		taints := children(sync, "PATCH nodes")
		if len(taints) == 0 {
			continue
		}
		s.note("gather events", release.Started.Sub(release.Begin))
		for _, name := range []string{"observe", "plan"} {
			for _, c := range children(release, name) {
				s.note(name, c.Took())
			}
		}
		s.note("write replicas", raises[0].Took())
		s.note("pass on", sync.Started.Sub(raises[0].End))
		for _, c := range children(sync, "decide") {
			s.note("decide which machine", c.Took())
		}
		s.note("remove the first taint", taints[0].Took())
		s.note("first machine, in all", taints[0].End.Sub(release.Begin))
		s.note("last machine, in all", slices.MaxFunc(taints, func(a, b collector.Span) int { return a.End.Compare(b.End) }).End.Sub(release.Begin))
		return
	}
}

func (s steps) note(name string, took time.Duration) { s[name] = append(s[name], took) }

// print shows the steps of a row.
func (s steps) print(out io.Writer, r row) {
	if len(s) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s, %d pods: %d releases\n", r.way, r.pods, len(s["gather events"]))
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "step\tp50\tmax\t")
	for _, name := range stepNames {
		if took := slices.Sorted(slices.Values(s[name])); len(took) > 0 {
			fmt.Fprintf(w, "%s\t%.1f ms\t%.1f ms\t\n", name, milliseconds(took[len(took)/2]), milliseconds(took[len(took)-1]))
		}
	}
	_ = w.Flush() // to standard output, where nothing can be done about it
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

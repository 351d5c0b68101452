// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"

	"github.com/evenkeel/evenkeel/test/sim"
)

// struckByStorm contains the faults that every run of storms must include, over all its seeds.
var struckByStorm = func() []string {
	kinds := []string{
		"clock jump", "compaction", "late bookmark", "late event", "outage", "process killed", "process stood still", "silence", "stale cache on list", "watch broken", "watch held",
	}
	for _, answer := range []sim.Answer{sim.Throttled, sim.Unauthorized, sim.Forbidden} {
		kinds = append(kinds, fmt.Sprintf("%s on read", answer), fmt.Sprintf("%s on write", answer))
	}
	for _, answer := range []sim.Answer{sim.Failed, sim.BadGateway, sim.Unavailable, sim.TimedOut, sim.Severed} {
		kinds = append(kinds, fmt.Sprintf("%s on read", answer), fmt.Sprintf("%s before write", answer), fmt.Sprintf("%s after write", answer))
	}
	return kinds
}()

// tally counts the faults that occurred in the worlds of one run of seeds.
type tally struct {
	mu     sync.Mutex
	storms int
	// required are kinds that must occur in addition to those of all storms.
	required []string
	// times is how often each kind occurred, and in how many worlds.
	times, in map[string]int
}

// counted is the present run of seeds, if any. Worlds report to it when they end.
var counted *tally

func newTally() *tally { return &tally{times: map[string]int{}, in: map[string]int{}} }

// Require makes a run of seeds fail if some kinds of faults never occur, in addition to those of a
// Storm: "lease lost" of Twins, "restore" of a backup, and what Strike counts.
func (w *World) Require(kinds ...string) { w.required = append(w.required, kinds...) }

// Strike counts something that the story itself makes happen, under the name that reports and
// Require use.
func (w *World) Strike(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.strikes == nil {
		w.strikes = map[string]int{}
	}
	w.strikes[kind]++
}

// addWorld counts the faults of a world that ends.
func (t *tally) addWorld(w *World) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.stormed {
		t.storms++
	}
	t.required = append(t.required, w.required...)
	struck := map[string]int{"process stood still": w.stills, "process killed": w.kills, "lease lost": int(w.turns.Load())}
	w.mu.Lock()
	maps.Copy(struck, w.strikes)
	w.mu.Unlock()
	for _, s := range append(w.servers(), w.Others...) {
		for kind, n := range s.Struck() {
			struck[kind] += n
		}
	}
	for kind, n := range struck {
		if n > 0 {
			t.times[kind] += n
			t.in[kind]++
		}
	}
}

// enoughRuns is how many runs are enough for each fault to occur in one of them.
const enoughRuns = 4

// report prints how often each fault occurred. If enough worlds had storms, it fails for each kind
// that never did.
func (t *tally) report(seeds []uint64) {
	var lines, never []string
	for _, kind := range slices.Sorted(maps.Keys(t.times)) {
		lines = append(lines, fmt.Sprintf("%s %d in %d", kind, t.times[kind], t.in[kind]))
	}
	if len(lines) > 0 {
		ginkgo.AddReportEntry(fmt.Sprintf("faults struck, in how many of %d runs", len(seeds)), strings.Join(lines, ", "), ginkgo.ReportEntryVisibilityAlways)
	}
	required := t.required
	if t.storms > 0 {
		required = append(required, struckByStorm...)
	}
	slices.Sort(required)
	for _, kind := range slices.Compact(required) {
		if t.times[kind] == 0 {
			never = append(never, kind)
		}
	}
	if len(never) > 0 && len(seeds) >= enoughRuns && !Repeating() {
		ginkgo.Fail("storms that are no storms: in none of them struck " + strings.Join(never, ", "))
	}
}

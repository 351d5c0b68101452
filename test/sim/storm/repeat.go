// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"

	"github.com/evenkeel/evenkeel/test/sim"
)

// These environment variables reproduce a failed run.
const (
	seedVariable  = "SEED"
	crashVariable = "CRASH"
	// stormsVariable is the number of seeds.
	stormsVariable = "STORMS"
)

// firstDrawn is the first of the random seeds; fixed seeds are below it.
const firstDrawn = 1_000_000

// Repeating reports whether one run is reproduced; its logs are then kept.
func Repeating() bool {
	return os.Getenv(seedVariable) != "" || os.Getenv(crashVariable) != ""
}

// point is where a process is killed: before or after its nth write.
type point struct {
	write  int
	moment sim.Moment
}

func (p point) String() string {
	if p.moment == sim.After {
		return fmt.Sprintf("%d:after", p.write)
	}
	return fmt.Sprintf("%d:before", p.write)
}

func parsePoint(text string) (point, error) {
	number, moment, _ := strings.Cut(text, ":")
	write, err := strconv.Atoi(number)
	if err != nil || moment != "before" && moment != "after" {
		return point{}, fmt.Errorf("%s=%q: want a number and before or after, as in 3:after", crashVariable, text)
	}
	p := point{write: write}
	if moment == "after" {
		p.moment = sim.After
	}
	return p, nil
}

// command returns the command line that reproduces a run of the current spec.
func command(t *testing.T, seed uint64, at *point) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s=%d ", seedVariable, seed)
	if at != nil {
		fmt.Fprintf(&b, "%s=%v ", crashVariable, *at)
	}
	focus := regexp.QuoteMeta(ginkgo.CurrentSpecReport().FullText())
	fmt.Fprintf(&b, "go test ./%s -count=1 -run '^%s$' -ginkgo.focus '%s'", folder(), t.Name(), strings.ReplaceAll(focus, "'", "."))
	return b.String()
}

// folder returns the package under test, from the root of its module.
func folder() string {
	here, err := os.Getwd()
	if err != nil {
		return "..."
	}
	for root := here; root != filepath.Dir(root); root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			relative, _ := filepath.Rel(root, here)
			return filepath.ToSlash(relative)
		}
	}
	return "..."
}

// Seeds runs body with the seeds 1 to n, each in a bubble of its own. With STORMS set, it uses that
// many seeds and half as many random ones; with SEED set, only that seed. It reports which faults
// occurred, and how to reproduce a failure.
func Seeds(t *testing.T, n int, body func(seed uint64)) {
	t.Helper()
	all := seedsToRun(n)
	counted = newTally()
	defer func() { counted = nil }()
	for _, seed := range all {
		bubble(t, command(t, seed, nil), func() { body(seed) })
	}
	counted.report(all)
}

func seedsToRun(n int) []uint64 {
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			ginkgo.Fail(fmt.Sprintf("%s=%q: want a number", seedVariable, text))
		}
		return []uint64{seed}
	}
	drawn := 0
	if text := os.Getenv(stormsVariable); text != "" {
		storms, err := strconv.Atoi(text)
		if err != nil || storms < 1 {
			ginkgo.Fail(fmt.Sprintf("%s=%q: want a number", stormsVariable, text))
		}
		n, drawn = storms, storms/2
	}
	var all []uint64
	for seed := range n {
		all = append(all, uint64(seed)+1)
	}
	for range drawn {
		all = append(all, firstDrawn+rand.Uint64N(firstDrawn))
	}
	if drawn > 0 {
		ginkgo.AddReportEntry("seeds drawn", fmt.Sprint(all[n:]))
	}
	return all
}

// bubble is a Bubble whose failures include the command that reproduces them.
func bubble(t *testing.T, command string, body func()) {
	t.Helper()
	Bubble(t, func() {
		passed := false
		defer func() {
			if !passed {
				ginkgo.AddReportEntry("repeat with", command, ginkgo.ReportEntryVisibilityFailureOrVerbose)
			}
		}()
		body()
		passed = true
	})
}

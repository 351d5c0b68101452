// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// closingLines are repeated of each part at the end of all.
const closingLines = 6

// part is what has run, and ended.
type part struct {
	name   string
	err    error
	output []byte
	took   time.Duration
	// worked is the time of processors, of all processes that were waited for.
	worked time.Duration
}

// runCommand runs a command to its end.
func runCommand(name string, cmd *exec.Cmd) part {
	begin := time.Now()
	output, err := cmd.CombinedOutput()
	p := part{name: name, err: err, output: output, took: time.Since(begin)}
	if state := cmd.ProcessState; state != nil {
		p.worked = state.UserTime() + state.SystemTime()
	}
	return p
}

func (p part) String() string {
	verdict := "ok"
	if p.err != nil {
		verdict = "FAILED: " + p.err.Error()
	}
	return fmt.Sprintf("%-16s %4.0f s, %4.0f s of processors: %s", p.name, p.took.Seconds(), p.worked.Seconds(), verdict)
}

// closing are the last lines of what a part printed.
func (p part) closing() []byte {
	lines := bytes.Split(bytes.TrimSpace(p.output), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-closingLines):], []byte("\n"))
}

// report prints how each part closed, those that failed last and in full, and which tools were
// missing.
func report(out io.Writer, all []part, took time.Duration, missing []string) error {
	var failed []part
	var worked time.Duration
	for _, p := range all {
		worked += p.worked
		if p.err != nil {
			failed = append(failed, p)
			continue
		}
		fmt.Fprintf(out, "\n== %s\n%s\n", p, p.closing())
	}
	for _, p := range failed {
		fmt.Fprintf(out, "\n== %s\n%s== %s\n", p, p.output, p)
	}
	without := ""
	if len(missing) > 0 {
		without = "; not installed, so that specs passed without them: " + strings.Join(missing, ", ")
	}
	fmt.Fprintf(out, "\n%d parts in %.0f s, %.0f s of processors%s\n", len(all), took.Seconds(), worked.Seconds(), without)
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d failed, the last of them %s: %w", len(failed), len(all), failed[len(failed)-1].name, failed[len(failed)-1].err)
	}
	return nil
}

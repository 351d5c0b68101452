// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Verdict is what became of a mutant.
type Verdict string

const (
	Killed     Verdict = "killed"
	Lived      Verdict = "lived"
	NotReached Verdict = "not reached"
	Equivalent Verdict = "equivalent"
	// NotTried is a mutant for which there was no time.
	NotTried Verdict = "not tried"
)

// Runner runs the tests of one package for mutants.
type Runner struct {
	p       *Package
	binary  Binary
	reached map[int]bool
	// efforts are tried one after the other until one kills the mutant: first the fast specs, which kill
	// most, and then all.
	efforts []effort
}

// effort is one way to run the tests.
type effort struct {
	// skip is a pattern of the specs that are left out.
	skip string
	// cpu and patience are how much processor time and how long a run may take before the mutant counts
	// as killed: it never ends. A busy machine makes a run longer, and takes no more processor time.
	cpu, patience time.Duration
}

// NewRunner runs the tests without any mutant, which must pass, and notes which mutants they reach.
func NewRunner(ctx context.Context, p *Package, b Binary) (*Runner, error) {
	r := &Runner{p: p, binary: b, reached: map[int]bool{}}
	notes, report := b.Path+".reached", b.Path+".json"
	all, out, err := r.measure(ctx, effort{}, report, reachedVariable+"="+notes)
	if err != nil {
		return nil, fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", p.Path, err, out)
	}
	r.efforts = []effort{all}
	if skip := slowSpecs(report); skip != "" {
		// Specs that count what others did fail here; then all are run at once.
		if fast, _, err := r.measure(ctx, effort{skip: skip}, "", ""); err == nil {
			r.efforts = []effort{fast, all}
		}
	}
	return r, r.readReached(notes)
}

func (r *Runner) readReached(notes string) error {
	text, err := os.ReadFile(notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if id, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			r.reached[id] = true
		}
	}
	return nil
}

// measure runs the tests without a mutant, and allows a run with one a multiple of what that took.
func (r *Runner) measure(ctx context.Context, e effort, report, environment string) (effort, string, error) {
	e.cpu, e.patience = time.Hour, time.Hour
	cmd, cancel := r.command(ctx, e, environment)
	defer cancel()
	if report != "" && r.p.Ginkgo {
		cmd.Args = append(cmd.Args, "-ginkgo.json-report="+report)
	}
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil {
		e.cpu = 2*(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) + 3*time.Second
	}
	e.patience = 5*time.Since(start) + time.Minute
	return e, string(out), err
}

func (r *Runner) command(ctx context.Context, e effort, environment string) (*exec.Cmd, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, e.patience)
	limit := fmt.Sprintf(`ulimit -t %d; exec "$0" "$@"`, int(e.cpu.Seconds()))
	arguments := []string{"-c", limit, r.binary.Path, "-test.failfast"}
	if r.p.Ginkgo {
		arguments = append(arguments, "-ginkgo.fail-fast", "-ginkgo.no-color")
	}
	if r.p.Rapid {
		arguments = append(arguments, "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	}
	if e.skip != "" {
		arguments = append(arguments, "-ginkgo.skip="+e.skip)
	}
	cmd := exec.CommandContext(ctx, "sh", arguments...)
	cmd.Dir, cmd.Env = r.p.Dir, append(os.Environ(), environment)
	cmd.WaitDelay = 5 * time.Second
	return cmd, cancel
}

// attempt runs the tests for one mutant.
func (r *Runner) attempt(ctx context.Context, id int) Verdict {
	for _, e := range r.efforts {
		cmd, cancel := r.command(ctx, e, numberVariable+"="+strconv.Itoa(id))
		_, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			return Killed
		}
	}
	return Lived
}

// Run tries mutants in random order until the budget is spent, workers at a time.
func (r *Runner) Run(ctx context.Context, mutants []Mutant, known map[int]bool, seed uint64, budget time.Duration, workers int) map[int]Verdict {
	verdicts := map[int]Verdict{}
	var queue []int
	for _, m := range mutants {
		switch {
		case r.binary.Refused[m.ID]:
		case known[m.ID]:
			verdicts[m.ID] = Equivalent
		case !r.reached[m.ID]:
			verdicts[m.ID] = NotReached
		default:
			verdicts[m.ID] = NotTried
			queue = append(queue, m.ID)
		}
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	r.try(ctx, queue, verdicts, time.Now().Add(budget), workers)
	return verdicts
}

func (r *Runner) try(ctx context.Context, queue []int, verdicts map[int]Verdict, deadline time.Time, workers int) {
	var mu sync.Mutex
	var running sync.WaitGroup
	next := make(chan int)
	for range workers {
		running.Go(func() {
			for id := range next {
				verdict := r.attempt(ctx, id)
				mu.Lock()
				verdicts[id] = verdict
				mu.Unlock()
			}
		})
	}
	for _, id := range queue {
		if ctx.Err() != nil || time.Now().After(deadline) {
			break
		}
		next <- id
	}
	close(next)
	running.Wait()
}

// scratch is a folder for what is compiled.
func scratch(root, path string) (string, error) {
	dir := filepath.Join(root, strings.ReplaceAll(path, "/", "_"))
	return dir, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
}

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
	p      *Package
	binary Binary
	notes  notes
	// limit is how long the specs that one mutant meets may take together.
	limit time.Duration
	// all is how all tests are run: what a mutant meets if the tests are not Ginkgo's.
	all effort
	// startup is the processor time of a run that skips all specs.
	startup time.Duration
}

// effort is one way to run the tests.
type effort struct {
	// specs is the file that chooses the specs; without one all are run.
	specs string
	// cpu and patience are how much processor time and how long a run may take before the mutant
	// counts as killed: it never ends. A busy machine makes a run longer, and takes no more
	// processor time.
	cpu, patience time.Duration
}

// limited allows a multiple of the time that a run takes without a mutant.
func (e effort) limited(cpu, wall time.Duration) effort {
	e.cpu, e.patience = 2*cpu+3*time.Second, 5*wall+time.Minute
	return e
}

// NewRunner runs the tests without any mutant, which must pass, and notes which mutants they reach.
func NewRunner(ctx context.Context, p *Package, b Binary, limit time.Duration) (*Runner, error) {
	r := &Runner{p: p, binary: b, limit: limit}
	path := b.Path + ".reached"
	start := time.Now()
	cpu, err := r.pass(ctx, effort{}, reachedVariable+"="+path)
	if err != nil {
		return nil, err
	}
	r.all = effort{}.limited(cpu, time.Since(start))
	if r.notes, err = readNotes(path); err != nil || !p.Ginkgo {
		return r, err
	}
	return r, r.checkSelections(ctx)
}

// checkSelections makes sure that specs do not depend on each other: half of them pass, too, and
// none.
func (r *Runner) checkSelections(ctx context.Context) error {
	halves := r.notes.halves()
	for _, specs := range [][]spec{halves[0], halves[1], nil} {
		e := effort{specs: r.binary.Path + ".specs"}
		if err := writeSpecs(e.specs, specs); err != nil {
			return err
		}
		var err error
		if r.startup, err = r.pass(ctx, e, ""); err != nil {
			return fmt.Errorf("specs that depend on others: %w", err)
		}
	}
	return nil
}

// pass runs the tests without a mutant, and returns the processor time that they take.
func (r *Runner) pass(ctx context.Context, e effort, environment string) (time.Duration, error) {
	e.cpu, e.patience = time.Hour, time.Hour
	cmd, cancel := r.command(ctx, e, environment)
	defer cancel()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", r.p.Path, err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
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
	cmd := exec.CommandContext(ctx, "sh", arguments...)
	// Several runs share the processors, and each makes much garbage.
	cmd.Env = append([]string{"GOGC=400", "GOMAXPROCS=1"}, os.Environ()...)
	cmd.Env = append(cmd.Env, environment, specsVariable+"="+e.specs)
	cmd.Dir, cmd.WaitDelay = r.p.Dir, 5*time.Second
	return cmd, cancel
}

// efforts are tried one after the other until one kills the mutant.
func (r *Runner) efforts(id int) ([]effort, error) {
	if !r.p.Ginkgo {
		return []effort{r.all}, nil
	}
	var efforts []effort
	for i, specs := range r.notes.groups(id, r.limit) {
		e := effort{specs: fmt.Sprintf("%s.%d.%d", r.binary.Path, id, i)}
		if err := writeSpecs(e.specs, specs); err != nil {
			return nil, err
		}
		took := r.startup + timeOf(specs)
		efforts = append(efforts, e.limited(took, took))
	}
	return efforts, nil
}

// attempt runs the tests for one mutant.
func (r *Runner) attempt(ctx context.Context, id int) Verdict {
	efforts, err := r.efforts(id)
	if err != nil {
		return NotTried
	}
	for _, e := range efforts {
		cmd, cancel := r.command(ctx, e, numberVariable+"="+strconv.Itoa(id))
		_, err := cmd.CombinedOutput()
		cancel()
		if ctx.Err() != nil {
			return NotTried
		}
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
		case r.notes.reached[m.ID] == nil:
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

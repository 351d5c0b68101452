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
	// patience is how long a run may take before the mutant counts as killed: it never ends.
	patience time.Duration
}

// NewRunner runs the tests without any mutant, which must pass, and notes which mutants they reach.
func NewRunner(ctx context.Context, p *Package, b Binary) (*Runner, error) {
	r := &Runner{p: p, binary: b, reached: map[int]bool{}, patience: time.Hour}
	notes := b.Path + ".reached"
	start := time.Now()
	if out, err := r.test(ctx, reachedVariable+"="+notes); err != nil {
		return nil, fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", p.Path, err, out)
	}
	r.patience = 3*time.Since(start) + 10*time.Second
	text, err := os.ReadFile(notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if id, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			r.reached[id] = true
		}
	}
	return r, nil
}

func (r *Runner) test(ctx context.Context, environment string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	arguments := []string{"-test.failfast"}
	if r.p.Ginkgo {
		arguments = append(arguments, "-ginkgo.fail-fast", "-ginkgo.no-color")
	}
	cmd := exec.CommandContext(ctx, r.binary.Path, arguments...)
	cmd.Dir, cmd.Env = r.p.Dir, append(os.Environ(), environment)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
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
				verdict := Lived
				if _, err := r.test(ctx, numberVariable+"="+strconv.Itoa(id)); err != nil {
					verdict = Killed
				}
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

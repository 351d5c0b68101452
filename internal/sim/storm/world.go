// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// lastBreath is how long what survived its process may take to end: an event
// recorder tries each of its events for two minutes before it gives up.
const lastBreath = 48 * time.Hour

// Program is what a process runs: until ctx ends, with a client of its own.
type Program func(ctx context.Context, config *rest.Config) error

// World is a simulated server and the processes that run on it. It lives in a
// bubble and ends before it.
type World struct {
	*sim.Server
	Seed uint64

	mu        sync.Mutex
	processes []*Process
	crash     *crash
}

// NewWorld returns a world without processes. The caller ends it.
func NewWorld(o sim.Options) *World {
	return &World{Server: sim.New(o), Seed: o.Seed}
}

// Start runs a program as a process. The name is the identity of its client.
func (w *World) Start(name string, program Program) *Process {
	p := &Process{world: w, name: name, program: program}
	w.mu.Lock()
	w.processes = append(w.processes, p)
	crash := w.crash
	w.mu.Unlock()
	if crash != nil && crash.process == name {
		crash.arm(w, p)
	}
	p.Restart()
	return p
}

// Settle waits until nothing has been written for as long as quiet, Leases and
// Events apart. It is an error if that takes longer than limit, or if a process
// has ended by itself meanwhile.
func (w *World) Settle(quiet, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; {
		since := len(w.Writes())
		time.Sleep(quiet)
		synctest.Wait()
		if err := w.gone(); err != nil {
			return err
		}
		loud := Loud(w.Writes()[since:])
		if len(loud) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no rest after %v: %d writes in the last %v, the last one %+v", limit, len(loud), quiet, loud[len(loud)-1])
		}
	}
}

// gone names the processes that have ended though nobody stopped or killed them.
func (w *World) gone() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, p := range w.processes {
		errs = append(errs, p.gone())
	}
	return errors.Join(errs...)
}

// Loud are those of some writes that tell that something goes on: all but
// those of Leases and Events, and those that changed nothing.
func Loud(writes []sim.Write) []sim.Write {
	var loud []sim.Write
	for _, write := range writes {
		if write.Resource != "leases" && write.Resource != "events" && !write.NoOp() {
			loud = append(loud, write)
		}
	}
	return loud
}

// End stops every process in an orderly way, the youngest first, and closes the
// server.
func (w *World) End() {
	w.mu.Lock()
	processes := w.processes
	w.mu.Unlock()
	for _, p := range slices.Backward(processes) {
		_ = p.Stop() // what a program says when it is stopped is asked of Stop itself
	}
	w.Close()
	time.Sleep(lastBreath)
}

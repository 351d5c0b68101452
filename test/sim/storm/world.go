// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim"
)

// lastBreath is how long the goroutines of a killed process may take to end: an event recorder
// tries each of its events for two minutes before it gives up.
const lastBreath = 48 * time.Hour

// Program is what a process runs until ctx ends, with a client of its own.
type Program func(ctx context.Context, config *rest.Config) error

// World is one or two simulated servers and the processes that use them. It lives in a bubble and
// ends before it.
//
// Methods that it shares with sim.Server apply to both servers, or to the one that stores the kind.
// Control and Target are the single servers, each with its own lag, failures and outages.
type World struct {
	*sim.Server // the control cluster
	Control     *sim.Server
	// Target is the target cluster; if there is only one cluster, that one.
	Target *sim.Server
	// Others are additional servers that a Storm affects. Their creator closes them.
	Others []*sim.Server
	Seed   uint64

	journal *sim.Journal
	hooks   sync.Mutex // hooks of both servers run one at a time
	draws   sync.Mutex // random numbers for both servers are drawn one at a time

	storm   *weather // under way
	stormed bool
	stills  int // how often a process was stopped, and killed
	kills   int
	turns   atomic.Int64 // how often a lease was lost
	// required are kinds of faults that must occur in addition to those of a Storm.
	required []string

	mu        sync.Mutex
	processes []*Process
	crash     *crash
	// strikes are what Strike counted.
	strikes map[string]int
}

// NewWorld returns a world of one cluster without processes. The caller must end it.
func NewWorld(o sim.Options) *World {
	o.Journal, o.Endless = &sim.Journal{}, endless(o)
	s := sim.New(o)
	w := &World{Server: s, Control: s, Target: s, Seed: o.Seed, journal: o.Journal}
	return w
}

// farApart is where the target cluster's resourceVersions begin.
const farApart = 1_000_000

// NewApart returns a world of two clusters: the target cluster stores Nodes, pods and related
// kinds, the control cluster everything else; both store events, Leases and configuration.
func NewApart(o sim.Options) *World {
	if len(o.Resources) == 0 {
		o.Resources = slices.Concat(sim.Core, sim.Machine)
	}
	o.Journal, o.Endless = &sim.Journal{}, endless(o)
	control, target := o, o
	control.Resources, target.Resources = splitKinds(o.Resources)
	control.Name, target.Name = "control", "target"
	target.First, target.Seed = farApart, o.Seed+farApart
	w := &World{Control: sim.New(control), Target: sim.New(target), Seed: o.Seed, journal: o.Journal}
	w.Server = w.Control
	return w
}

// Start runs a program as a process. The name is the identity of its client.
func (w *World) Start(name string, program Program) *Process {
	p := &Process{world: w, name: name, program: program}
	w.mu.Lock()
	w.processes = append(w.processes, p)
	crash := w.crash
	w.mu.Unlock()
	if crash != nil && crash.process == name {
		crash.install(w, p)
	}
	p.Restart()
	return p
}

// Settle waits until nothing has been written for this time, except Leases and Events. It returns
// an error if that takes longer than limit, or if a process has ended by itself.
func (w *World) Settle(quiet, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; {
		since := len(w.Writes())
		time.Sleep(quiet)
		synctest.Wait()
		if err := w.unexpectedEnds(); err != nil {
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

// unexpectedEnds names the processes that ended although they were not stopped or killed.
func (w *World) unexpectedEnds() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, p := range w.processes {
		errs = append(errs, p.unexpectedEnd())
	}
	return errors.Join(errs...)
}

// Sent returns the writes except those of Leases and Events, also those that changed nothing.
func Sent(writes []sim.Write) (sent []sim.Write) {
	for _, write := range writes {
		if write.Resource != "leases" && write.Resource != "events" {
			sent = append(sent, write)
		}
	}
	return sent
}

// Loud returns the writes that show activity: those of Sent that changed something.
func Loud(writes []sim.Write) []sim.Write {
	return slices.DeleteFunc(Sent(writes), sim.Write.NoOp)
}

// End stops every process gracefully, the youngest first, and closes the server.
func (w *World) End() {
	w.Calm()
	counted.addWorld(w)
	w.mu.Lock()
	processes := w.processes
	w.mu.Unlock()
	for _, p := range slices.Backward(processes) {
		_ = p.Stop() // errors of a stopped program are reported by Stop itself
	}
	for _, s := range w.servers() {
		s.Close()
	}
	time.Sleep(lastBreath)
}

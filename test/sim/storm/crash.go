// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/test/sim"
)

// pause is how long a killed process stays down.
const pause = 10 * time.Second

// Scenario is a story whose end must not depend on what happens to a process.
type Scenario struct {
	Options sim.Options
	// Apart makes it a world of two clusters.
	Apart bool
	// Story starts processes and makes things happen until they have settled.
	Story func(*World)
	// End returns what must be the same however often the process was killed. It is compared with
	// reflect.DeepEqual.
	End func(*World) any
}

// CrashPoints runs a scenario undisturbed, and then once for each write of the named process and
// each moment, before and after: there, the process is killed, and restarted a little later. It
// returns an error for each run that ended differently. With CRASH set, it kills only at that
// point.
func CrashPoints(t *testing.T, s Scenario, process string) error {
	t.Helper()
	usual, writes := s.playOnce(t, process, nil)
	if writes == 0 {
		return fmt.Errorf("process %q has written nothing", process)
	}
	points, err := points(writes)
	if err != nil {
		return err
	}
	var errs []error
	for _, at := range points {
		if end, _ := s.playOnce(t, process, &at); !reflect.DeepEqual(end, usual) {
			errs = append(errs, fmt.Errorf("killed at write %v of %d, it ended as\n  %v\ninstead of\n  %v\nrepeat with\n  %s",
				at, writes, end, usual, command(t, s.Options.Seed, &at)))
		}
	}
	return errors.Join(errs...)
}

func points(writes int) ([]point, error) {
	if text := os.Getenv(crashVariable); text != "" {
		at, err := parsePoint(text)
		return []point{at}, err
	}
	var all []point
	for n := 1; n <= writes; n++ {
		all = append(all, point{n, sim.Before}, point{n, sim.After})
	}
	return all, nil
}

func (s Scenario) newWorld() *World {
	if s.Apart {
		return NewApart(s.Options)
	}
	return NewWorld(s.Options)
}

// playOnce plays the scenario once, and returns its end and how many effective writes the process
// made.
func (s Scenario) playOnce(t *testing.T, process string, at *point) (end any, writes int) {
	t.Helper()
	bubble(t, command(t, s.Options.Seed, at), func() {
		w := s.newWorld()
		defer w.End()
		if at != nil {
			w.crash = &crash{process: process, point: *at}
		}
		s.Story(w)
		end = s.End(w)
		for _, write := range w.Writes() {
			if write.User == process && !write.NoOp() {
				writes++
			}
		}
	})
	return end, writes
}

// crash kills a process once, at a point of its writes.
type crash struct {
	process string
	point
	seen int
	done bool
}

// install makes the process die at its point. The hooks run one at a time.
func (c *crash) install(w *World, p *Process) {
	w.OnWrite(func(write sim.Write) error {
		if write.User == c.process && c.moment == sim.Before && c.seen == c.write-1 {
			c.strike(p)
		}
		return nil
	})
	w.AfterWrite(func(write sim.Write) error {
		if write.User != c.process || write.NoOp() {
			return nil
		}
		if c.seen++; c.moment == sim.After && c.seen == c.write {
			c.strike(p)
		}
		return nil
	})
}

func (c *crash) strike(p *Process) {
	if !c.done {
		c.done = true
		p.CrashFor(pause)
	}
}

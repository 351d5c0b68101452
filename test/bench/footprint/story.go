// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"context"
	"errors"
	"time"

	"github.com/evenkeel/evenkeel/test/bench/internal/sleep"
)

// figures are what one contestant took in one turn.
type figures struct {
	// start: the fleet has come up. scale: half as many machines more, and back. rollout: all
	// machines are replaced.
	start, rest, scale, rollout phase
}

// phase is what a part of the story took.
type phase struct {
	took, cpu time.Duration
	// In MiB. The first two are the most that was seen, the others are at the end of the phase.
	peakPrivate, peakResident, private, resident, heap, stacks float64
	goroutines                                                 float64
	requests
}

// live takes a contestant through the story. Its profiles and its audit log go into a folder; none if
// it has no name.
func (l *lab) live(ctx context.Context, s size, folder string) (f figures, err error) {
	m, err := l.newMeter()
	if err != nil {
		return f, err
	}
	defer m.close()
	if f.start, err = m.measure(ctx, func() error { return l.begin(ctx, s) }); err != nil {
		return f, err
	}
	if f.rest, err = m.measure(ctx, func() error { return sleep.WithContext(ctx, s.rest) }); err != nil {
		return f, err
	}
	if err := m.keep(ctx, profiles, folder); err != nil {
		return f, err
	}
	f.scale, err = m.profile(ctx, "scale", folder, func() error {
		if err := l.become(ctx, l.fleet(s, s.machines*3/2, 0)); err != nil {
			return err
		}
		return l.become(ctx, l.fleet(s, s.machines, 0))
	})
	if err == nil {
		f.rollout, err = m.profile(ctx, "rollout", folder, func() error { return l.become(ctx, l.fleet(s, s.machines, 1)) })
	}
	return f, errors.Join(err, m.keepRequests(folder))
}

// profile measures a part of the story, and writes a profile of its CPU into a folder; none if it has
// no name.
func (m *meter) profile(ctx context.Context, part, folder string, do func() error) (phase, error) {
	profiled := make(chan error, 1)
	go func() { profiled <- m.keep(ctx, map[string]string{part + ".cpu.pb.gz": cpuProfile}, folder) }()
	p, err := m.measure(ctx, do)
	return p, errors.Join(err, <-profiled)
}

// begin makes the fleet with its pods, and lets what follows happen.
func (l *lab) begin(ctx context.Context, s size) error {
	if err := l.become(ctx, l.fleet(s, s.machines, 0)); err != nil {
		return err
	}
	if err := l.populate(ctx, s.pods); err != nil {
		return err
	}
	return sleep.WithContext(ctx, settle)
}

// settle is how long what follows a change may take until a rest begins.
const settle = 15 * time.Second

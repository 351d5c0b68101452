// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// figures are what one contestant took in one turn.
type figures struct {
	// start: the fleet has come up. scale: half as many machines more, and back. rollout: all machines are replaced.
	start, rest, scale, rollout phase
}

// phase is what a part of the story took.
type phase struct {
	took, cpu time.Duration
	// In MiB. The first two are the most that was seen, the others are at the end of the phase.
	peakPrivate, peakResident, private, resident, heap float64
	goroutines                                         float64
	requests
}

// live takes a contestant through the story.
func (l *lab) live(ctx context.Context, s size, profiles string) (f figures, err error) {
	m, err := l.newMeter()
	if err != nil {
		return f, err
	}
	defer m.close()
	steps := []struct {
		into *phase
		do   func() error
	}{
		{&f.start, func() error {
			if err := l.become(ctx, l.fleet(s, s.machines, 0)); err != nil {
				return err
			}
			if err := l.populate(ctx, s.pods); err != nil {
				return err
			}
			return pause(ctx, settle)
		}},
		{&f.rest, func() error { return pause(ctx, s.rest) }},
		{&f.scale, func() error {
			if err := l.become(ctx, l.fleet(s, s.machines*3/2, 0)); err != nil {
				return err
			}
			return l.become(ctx, l.fleet(s, s.machines, 0))
		}},
		{&f.rollout, func() error { return l.become(ctx, l.fleet(s, s.machines, 1)) }},
	}
	for _, step := range steps {
		if *step.into, err = m.measure(ctx, step.do); err != nil {
			return f, err
		}
		if step.into == &f.rest && profiles != "" {
			if err := m.keepProfiles(ctx, profiles, l.name); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

// settle is how long what follows a change may take until a rest begins.
const settle = 15 * time.Second

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

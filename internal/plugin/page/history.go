// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/overview"
)

const (
	// How far back the timeline goes.
	span = time.Hour
	// The duration of one step of the timeline.
	step = 10 * time.Second
	// The number of steps of the timeline.
	steps = int(span / step)
)

// sample is what one step of the timeline shows.
type sample struct {
	// at is when the step begins.
	at               time.Time
	replicas, excess int
	// ready is the lowest, waiting the highest number that was seen during the step, so that short
	// events are visible. Waiting is -1 if pods could not be read.
	ready, waiting int
}

// history contains the last hour in steps, the oldest first. Steps in which nothing was read are
// left out.
type history struct {
	// since is when the first overview was read.
	since time.Time
	past  []sample
	// now is the newest overview itself, not the extreme values of its step.
	now sample
}

// record returns the history with one more sample, and without those that are too old. Histories
// that were returned earlier do not change.
func (h history) record(o overview.Overview) history {
	next := history{since: h.since}
	if next.since.IsZero() {
		next.since = o.At
	}
	now := newSample(o)
	next.now = now
	oldest := now.at.Add(step - span)
	next.past = make([]sample, 0, len(h.past)+1)
	for _, s := range h.past {
		switch {
		case s.at.Equal(now.at):
			now.ready, now.waiting = min(now.ready, s.ready), max(now.waiting, s.waiting)
		case !s.at.Before(oldest) && s.at.Before(now.at):
			next.past = append(next.past, s)
		}
	}
	next.past = append(next.past, now)
	return next
}

// sampleAt returns the sample of the step that contains t, if there is one.
func (h history) sampleAt(t time.Time) (sample, bool) {
	i, found := slices.BinarySearchFunc(h.past, t.Truncate(step), func(s sample, t time.Time) int { return s.at.Compare(t) })
	if !found {
		return sample{}, false
	}
	return h.past[i], true
}

func newSample(o overview.Overview) sample {
	s := sample{at: o.At.Truncate(step), waiting: o.PodsWaiting}
	for _, pool := range o.Pools {
		for _, zone := range pool.Zones {
			s.replicas += zone.Replicas
			s.excess += zone.Excess
			s.ready += zone.Count[overview.ReserveReady]
		}
	}
	return s
}

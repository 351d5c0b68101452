// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"iter"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// How often the timeline advances if nothing changes: twice per step, so that no step is left out.
const beat = step / 2

// sceneFeed contains the newest scene and wakes its readers when there is a newer one.
type sceneFeed struct {
	source Source
	clock  clock.WithTicker
	// pace is the minimum time between two scenes.
	pace time.Duration

	mu sync.Mutex
	// now is the newest scene; nil until the first has been read.
	now *scene
	// newer is closed when now is replaced.
	newer chan struct{}
}

func newBoard(source Source, clock clock.WithTicker, pace time.Duration) *sceneFeed {
	return &sceneFeed{source: source, clock: clock, pace: pace, newer: make(chan struct{})}
}

// run reads scenes until ctx ends.
func (b *sceneFeed) run(ctx context.Context) {
	ticker := b.clock.NewTicker(beat)
	defer ticker.Stop()
	var past history
	for {
		seen := b.source.Read()
		past = past.record(seen)
		b.publish(newScene(seen, past))
		if !b.waitPace(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-b.source.Changed:
		case <-ticker.C():
		}
	}
}

// waitPace waits for the pace, or until ctx ends; then it returns false.
func (b *sceneFeed) waitPace(ctx context.Context) bool {
	timer := b.clock.NewTimer(b.pace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

func (b *sceneFeed) publish(s *scene) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = s
	close(b.newer)
	b.newer = make(chan struct{})
}

func (b *sceneFeed) newest() (*scene, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, b.newer
}

// scenes yields the newest scene, then again the newest one each time the caller is ready, until
// ctx ends.
func (b *sceneFeed) scenes(ctx context.Context) iter.Seq[*scene] {
	return func(yield func(*scene) bool) {
		var last *scene
		for {
			now, newer := b.newest()
			if now != last && !yield(now) {
				return
			}
			last = now
			select {
			case <-ctx.Done():
				return
			case <-newer:
			}
		}
	}
}

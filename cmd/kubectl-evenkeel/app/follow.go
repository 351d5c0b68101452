// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// settingsEvery is how often a command that runs for long reads the settings again: a manager may have
// started anew with other flags.
const settingsEvery = time.Minute

// followedSettings are the settings that were read last.
type followedSettings struct {
	latest  atomic.Pointer[shownSettings]
	running sync.WaitGroup
}

// followSettings reads the settings now, and again and again until ctx ends. While they cannot be
// read, the last ones count.
func (o *options) followSettings(ctx context.Context) *followedSettings {
	f := &followedSettings{}
	first, _ := o.shownSettings(ctx) // the defaults where they cannot be read
	f.latest.Store(&first)
	f.running.Go(func() {
		ticker := time.NewTicker(settingsEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if next, err := o.shownSettings(ctx); err == nil {
				f.latest.Store(&next)
			}
		}
	})
	return f
}

// apply has an overview of objects show the settings.
func (f *followedSettings) apply(o overview.Objects) overview.Objects {
	return f.latest.Load().apply(o)
}

// wait returns when everything that followSettings started has ended.
func (f *followedSettings) wait() { f.running.Wait() }

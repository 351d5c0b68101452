// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"sync"
)

// turn is one process's time with the lease. client-go starts it on a goroutine of its own and does
// not track it, so this type records who waits for whom.
type turn struct {
	work context.Context
	lead func(context.Context) error
	stop context.CancelFunc // ends the election

	mu      sync.Mutex
	started bool
	over    bool          // no turn may start any more
	done    chan struct{} // closed when lead has returned
	err     error
}

// onStarted is called by the elector when this process gets the lease; held ends when it loses the
// lease.
func (t *turn) onStarted(held context.Context) {
	t.mu.Lock()
	t.started = !t.over
	started := t.started
	t.mu.Unlock()
	if !started {
		return
	}
	defer t.stop()
	defer close(t.done)
	ctx, cancel := context.WithCancel(t.work)
	defer cancel()
	defer context.AfterFunc(held, cancel)()
	t.err = t.lead(ctx)
	if held.Err() != nil { // the election is stopped only after this
		t.err = errors.Join(ErrLost, t.err)
	}
}

// giveUp ends an election that has not led yet. A lead in progress ends with its own context and
// then stops the election itself.
func (t *turn) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.started {
		t.over = true
		t.stop()
	}
}

// awaitEnd waits for lead, if it was started, and returns why the turn ended.
func (t *turn) awaitEnd() error {
	t.mu.Lock()
	t.over = true
	started := t.started
	t.mu.Unlock()
	if !started {
		return nil
	}
	<-t.done
	return t.err
}

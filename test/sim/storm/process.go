// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Process is a program that runs, was killed, or runs again.
type Process struct {
	world   *World
	name    string
	program Program

	mu      sync.Mutex
	life    *life
	lives   sync.WaitGroup
	stopped bool
}

// life is one run of the program.
type life struct {
	client *connection
	cancel context.CancelFunc
	done   chan struct{}
	killed bool
	err    error // once done is closed
}

// Restart starts the program with a new client. If it still runs, it is killed first.
func (p *Process) Restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.killLife()
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{client: p.world.connect(p.name), cancel: cancel, done: make(chan struct{})}
	p.life = l
	p.lives.Go(func() {
		defer close(l.done)
		defer cancel()
		l.err = p.program(ctx, l.client.Config())
	})
}

// Crash kills the process: none of its requests takes effect any more. It does not wait for its
// goroutines, and may be called from a hook of the server.
func (p *Process) Crash() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killLife()
}

func (p *Process) killLife() {
	if p.life != nil {
		p.life.killed = true
		p.life.client.Cut()
		p.life.cancel()
	}
}

// CrashFor kills the process and restarts it after a while. It may be called from a hook of the
// server.
func (p *Process) CrashFor(pause time.Duration) {
	p.Crash()
	p.lives.Go(func() {
		time.Sleep(pause)
		p.Restart()
	})
}

// Freeze stops the process until Thaw, as kill -STOP does: what it was about to send is sent
// afterwards, and takes effect although its time to lead is over.
func (p *Process) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != nil {
		p.life.client.freeze(true)
	}
}

// Thaw ends a Freeze.
func (p *Process) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != nil {
		p.life.client.freeze(false)
	}
}

// Stop ends the program gracefully, waits for all its goroutines, including those of killed runs,
// and returns its error. It does not start again. A frozen process is thawed first: it could not
// end.
func (p *Process) Stop() error {
	p.Thaw()
	p.mu.Lock()
	l := p.life
	p.stopped = true
	p.mu.Unlock()
	l.cancel()
	<-l.done
	p.lives.Wait()
	return l.err
}

// unexpectedEnd returns an error if the program has ended by itself.
func (p *Process) unexpectedEnd() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.life.killed {
		return nil
	}
	select {
	case <-p.life.done:
		return fmt.Errorf("process %s ended by itself: %w", p.name, cmp.Or(p.life.err, errNone))
	default:
		return nil
	}
}

var errNone = errors.New("no error")

// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

// retryPause is the least pause before an actor tries again what failed.
const retryPause = time.Second

// Pulse wakes actors when something is written. Leases, which are renewed for ever, and writes that
// change nothing wake nobody.
type Pulse struct {
	mu    sync.Mutex
	beat  chan struct{}
	beats int
}

// NewPulse returns the pulse of a world.
func NewPulse(w *storm.World) *Pulse {
	p := &Pulse{beat: make(chan struct{})}
	w.AfterWrite(func(w sim.Write) error {
		if w.Resource != "leases" && !w.NoOp() {
			p.Set(func() {})
		}
		return nil
	})
	return p
}

// Do does something under the lock. It must not ask the server, whose hooks take the lock, too.
func (p *Pulse) Do(something func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	something()
}

// Set changes what actors read, under the lock, and wakes them.
func (p *Pulse) Set(change func()) {
	p.Do(func() {
		change()
		p.beats++
		close(p.beat)
		p.beat = make(chan struct{})
	})
}

// Beats is how often actors were woken.
func (p *Pulse) Beats() (n int) {
	p.Do(func() { n = p.beats })
	return n
}

// wait returns when there were more beats than seen, or after a time; zero is never.
func (p *Pulse) wait(ctx context.Context, seen int, again time.Duration) {
	var beat chan struct{}
	beats := 0
	p.Do(func() { beat, beats = p.beat, p.beats })
	if beats != seen {
		return
	}
	var due <-chan time.Time
	if again > 0 {
		timer := time.NewTimer(again)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-due:
	case <-beat:
	}
}

// Look looks at everything that is stored and takes the next steps. It returns when to look again
// although nothing is written; zero is never.
type Look func(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (again time.Duration, err error)

// Actor is a double of a component.
type Actor struct {
	Pulse *Pulse
	// Every is how long it waits after something was written, before it looks.
	Every time.Duration
	Look  Look
}

// Run is its program.
func (a Actor) Run(ctx context.Context, config *rest.Config) error {
	core, ours := Clients(config)
	for ctx.Err() == nil {
		seen := a.Pulse.Beats()
		again, err := a.Look(ctx, core, ours)
		if err != nil && (again == 0 || again > retryPause) {
			again = retryPause
		}
		a.Pulse.wait(ctx, seen, again)
		select {
		case <-ctx.Done():
		case <-time.After(a.Every):
		}
	}
	return nil
}

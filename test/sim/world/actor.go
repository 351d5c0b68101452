// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// retryPause is the least pause before an actor tries again what failed.
const retryPause = time.Second

// Waker wakes actors when something is written, except for leases, which are renewed for ever, and
// for writes that change nothing.
type Waker struct {
	mu    sync.Mutex
	next  chan struct{} // closed by the next wakeup
	count int
}

// NewWaker returns the waker of a world.
func NewWaker(w *storm.World) *Waker {
	waker := &Waker{next: make(chan struct{})}
	w.AfterWrite(func(write sim.Write) error {
		if write.Resource != "leases" && !write.NoOp() {
			waker.Set(func() {})
		}
		return nil
	})
	return waker
}

// Do does something under the lock. It must not ask the server, whose hooks take the lock, too.
func (w *Waker) Do(something func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	something()
}

// Set changes what actors read, under the lock, and wakes them.
func (w *Waker) Set(change func()) {
	w.Do(func() {
		change()
		w.count++
		close(w.next)
		w.next = make(chan struct{})
	})
}

// Wakeups returns how often actors were woken.
func (w *Waker) Wakeups() (n int) {
	w.Do(func() { n = w.count })
	return n
}

// wait returns when there were more wakeups than seen, or after a time; zero is never.
func (w *Waker) wait(ctx context.Context, seen int, again time.Duration) {
	var next chan struct{}
	count := 0
	w.Do(func() { next, count = w.next, w.count })
	if count != seen {
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
	case <-next:
	}
}

// Reconcile reads everything that is stored and takes the next steps. It returns the delay until the
// next call if nothing is written; zero is never.
type Reconcile func(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (again time.Duration, err error)

// Actor is a double of a component.
type Actor struct {
	Waker *Waker
	// Delay is how long it waits after something was written, before it reconciles.
	Delay     time.Duration
	Reconcile Reconcile
}

// Run is its program.
func (a Actor) Run(ctx context.Context, config *rest.Config) error {
	core, ours := Clients(config)
	for ctx.Err() == nil {
		seen := a.Waker.Wakeups()
		again, err := a.Reconcile(ctx, core, ours)
		if err != nil && (again == 0 || again > retryPause) {
			again = retryPause
		}
		a.Waker.wait(ctx, seen, again)
		select {
		case <-ctx.Done():
		case <-time.After(a.Delay):
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

// Package loop owns a controller's queue and its life.
//
// Laws:
//
//  1. Run returns only after the queue is shut down and every worker has ended, even if the caches
//     never filled.
//  2. After its context has ended, no key is synced.
//  3. Two workers never sync the same key at once.
//  4. A key whose sync fails is retried with increasing delays. A conflict is not logged as an
//     error.
//  5. A panic affects one key: it is logged with its stack, and the key is parked, whatever adds it
//     meanwhile.
//  6. Namespaces take turns: a key waits for at most one key of each other namespace, and for
//     earlier keys of its own.
package loop

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/tracing"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
	// gathering is the longest delay in which events are gathered, and not something to do later.
	gathering = time.Second
	// parked is how long a key is not synced after its sync panicked.
	parked = time.Minute
)

// Sync reconciles the object of a key. It returns when to sync again without an event; 0 means
// never.
type Sync func(ctx context.Context, key string) (again time.Duration, err error)

// Options of a Loop.
type Options struct {
	// Workers sync at the same time; 1 unless set.
	Workers int
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Panicked is called with a key whose sync has panicked; optional.
	Panicked func(key string, value any)
}

// Loop syncs keys that are added to it.
type Loop struct {
	name    string
	sync    Sync
	options Options
	queue   workqueue.TypedRateLimitingInterface[string]
	causes  tracing.Causes

	mu sync.Mutex
	// parkedUntil contains the keys whose last sync has panicked.
	parkedUntil map[string]time.Time
}

// New returns a loop that accepts keys. The caller must call Run or Discard, so that the queue ends.
func New(name string, sync Sync, o Options) *Loop {
	o.Workers = max(o.Workers, 1)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Loop{name: name, sync: sync, options: o, queue: newQueue(name, o.Clock), parkedUntil: map[string]time.Time{}}
}

func newQueue(name string, c clock.WithTicker) workqueue.TypedRateLimitingInterface[string] {
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: name, Clock: c, Queue: newFair()})
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name, Clock: c,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: name, Clock: c, Queue: ready})},
	)
}

// Add queues a key.
func (l *Loop) Add(key string) { l.AddFor(context.Background(), key) }

// AddFor queues a key because of what ctx traces.
func (l *Loop) AddFor(ctx context.Context, key string) {
	l.causes.Note(ctx, key, l.options.Clock.Now())
	l.queue.Add(key)
}

// AddAfter queues a key after a delay. If several delays are set for a key, the shortest counts.
func (l *Loop) AddAfter(key string, after time.Duration) {
	if after <= gathering {
		l.causes.Note(context.Background(), key, l.options.Clock.Now())
	}
	l.queue.AddAfter(key, after)
}

// Discard ends a loop that will not run.
func (l *Loop) Discard() { l.queue.ShutDown() }

// Run works until ctx ends, beginning when the caches are filled.
func (l *Loop) Run(ctx context.Context, caches ...cache.DoneChecker) {
	var workers sync.WaitGroup
	defer workers.Wait()
	defer l.queue.ShutDown()
	if !cache.WaitFor(ctx, "", caches...) {
		return
	}
	for range l.options.Workers {
		workers.Go(func() {
			for l.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
}

func (l *Loop) processNext(ctx context.Context) bool {
	key, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	defer l.queue.Done(key)
	if ctx.Err() != nil {
		return true // what is left only has to be removed
	}
	if left := l.parkedFor(key); left > 0 {
		l.queue.AddAfter(key, left)
		return true
	}
	again, err := l.guarded(ctx, key)
	if err != nil && ctx.Err() == nil {
		l.complain(ctx, key, err)
		l.queue.AddRateLimited(key)
		return true
	}
	l.queue.Forget(key)
	if again > 0 {
		l.queue.AddAfter(key, again)
	}
	return true
}

// guarded wraps a sync so that its panic affects nothing else.
func (l *Loop) guarded(ctx context.Context, key string) (again time.Duration, err error) {
	log := klog.FromContext(ctx).WithValues("controller", l.name, "key", key)
	ctx, span := l.causes.Begin(ctx, l.name, key)
	defer func() { tracing.Finish(span, err) }()
	defer func() {
		if value := recover(); value != nil {
			log.Error(fmt.Errorf("panic: %v", value), "Parking this key", "for", parked, "stack", string(debug.Stack()))
			if l.options.Panicked != nil {
				l.options.Panicked(key, value)
			}
			l.park(key)
			again, err = parked, nil
		}
	}()
	return l.sync(klog.NewContext(ctx, log), key)
}

// park keeps a key from being synced for a while.
func (l *Loop) park(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parkedUntil[key] = l.options.Clock.Now().Add(parked)
}

// parkedFor returns how long a key stays parked. If that is over, it is forgotten.
func (l *Loop) parkedFor(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.parkedUntil[key].Sub(l.options.Clock.Now())
	if left <= 0 {
		delete(l.parkedUntil, key)
	}
	return left
}

func (l *Loop) complain(ctx context.Context, key string, err error) {
	log := klog.FromContext(ctx).WithValues("controller", l.name, "key", key)
	if apierrors.IsConflict(err) {
		log.V(4).Info("Trying again", "because", err)
		return
	}
	log.Error(err, "Trying again")
}

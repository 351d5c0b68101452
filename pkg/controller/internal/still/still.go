// SPDX-License-Identifier: Apache-2.0

// Package still lets a controller look at objects that are given, at a time that is given: for previews of what it would
// do. Nothing is watched, and nothing moves.
package still

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Clock stands where it was set. Its timers are real, and nobody who only looks starts one. Queues that are ending may
// still ask it for the time.
type Clock struct {
	clock.RealClock
	mu sync.Mutex
	at time.Time
}

// Set moves the clock.
func (c *Clock) Set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// Now returns the time that the clock was set to.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Since returns the time since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// EndedContext returns a context that has ended: a function that is run with it releases everything
// that it holds, and returns.
func EndedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// Informer shows what it was made of, and is complete from the beginning. It cannot be run. The zero value never fills.
type Informer struct {
	cache.SharedIndexInformer
	store cache.Indexer
}

// NewInformer shows objects by namespace and name, and by the indices given.
func NewInformer[T any](objects []T, by cache.Indexers) (Informer, error) {
	i := Informer{store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, by)}
	return i, Replace(i.store, objects)
}

// HasSynced reports whether it was made of anything.
func (i Informer) HasSynced() bool { return i.store != nil }

// GetStore holds the objects.
func (i Informer) GetStore() cache.Store { return i.store }

// GetIndexer holds the objects.
func (i Informer) GetIndexer() cache.Indexer { return i.store }

// LastSyncResourceVersion is unknown.
func (i Informer) LastSyncResourceVersion() string { return "" }

// Replace makes a store contain these objects and no others.
func Replace[T any](store cache.Store, objects []T) error {
	items := make([]any, 0, len(objects))
	for _, o := range objects {
		items = append(items, o)
	}
	if err := store.Replace(items, ""); err != nil {
		return fmt.Errorf("fill store: %w", err)
	}
	return nil
}

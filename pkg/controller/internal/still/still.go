// SPDX-License-Identifier: Apache-2.0

// Package still feeds a controller with given objects and a given time, for previews of what it
// would do. It watches nothing, and nothing changes by itself.
package still

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Clock shows the time that was set. Its timers are real, but a preview starts none. Queues that
// are shutting down may still read the time.
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

// EndedContext returns a context that has ended. A function that runs with it releases what it
// holds, and returns.
func EndedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// Informer shows the objects it was created with, and has synced from the beginning. It cannot be
// run. The zero value never syncs.
type Informer struct {
	cache.SharedIndexInformer
	store cache.Indexer
}

// NewInformer returns an informer with these objects, indexed by namespace and name and by the
// given indexers.
func NewInformer[T any](objects []T, by cache.Indexers) (Informer, error) {
	i := Informer{store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, by)}
	return i, Replace(i.store, objects)
}

// HasSynced reports whether it was created with objects.
func (i Informer) HasSynced() bool { return i.store != nil }

// GetStore returns the store of the objects.
func (i Informer) GetStore() cache.Store { return i.store }

// GetIndexer returns the indexer of the objects.
func (i Informer) GetIndexer() cache.Indexer { return i.store }

// LastSyncResourceVersion is unknown here.
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

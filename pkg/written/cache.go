// SPDX-License-Identifier: Apache-2.0

package written

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Store is what a [Cache] needs of an informer's store.
type Store interface {
	GetByKey(key string) (item any, exists bool, err error)
	LastStoreSyncResourceVersion() string
}

// Cache remembers the last answers of the API server about objects of one kind, until the store of
// their informer shows as much. A controller that uses it never decides on objects that are older
// than its own writes. Such decisions write things twice, or undo the controller's own work.
//
// It forgets by itself. An answer is out of date once the store shows the object at that version or
// later; once the store has passed that version without the object, so that it was deleted; or once
// the store has gone back, because the cluster was restored from a backup.
type Cache[T metav1.Object] struct {
	store Store
	clock clock.PassiveClock

	mu      sync.Mutex
	answers map[string]answer[T]
	// limit is the number of answers at which those that are out of date are removed.
	limit int
}

type answer[T metav1.Object] struct {
	object T
	at     time.Time
	// synced is how far the store was when the answer arrived.
	synced string
}

// NewCache returns a cache for the store of an informer. If the clock is nil, it is the real one.
func NewCache[T metav1.Object](store Store, c clock.PassiveClock) *Cache[T] {
	if c == nil {
		c = clock.RealClock{}
	}
	return &Cache[T]{store: store, clock: c, answers: map[string]answer[T]{}, limit: 16}
}

// Record keeps an object that the API server returned, unless a later version is known.
func (c *Cache[T]) Record(object T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := storeKey(object)
	before, known := c.answers[key]
	if known && !c.outdated(key, before) && !isAsNew(object, before.object) {
		return
	}
	c.answers[key] = answer[T]{object, c.clock.Now(), c.store.LastStoreSyncResourceVersion()}
	if len(c.answers) > c.limit {
		c.removeOutdated()
		c.limit = 16 + 2*len(c.answers)
	}
}

// Newest returns the newest of three versions: what the caller has read from the store or as
// [Cache.Unseen], what the store contains now, and what the API server answered.
func (c *Cache[T]) Newest(read T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := storeKey(read)
	a, known := c.answers[key]
	current := known && !c.outdated(key, a) // before the store is read, so that what is read then is at least as new
	if shown, there := c.storedObject(key); there && isAsNew(shown, read) {
		read = shown
	}
	switch {
	case current && !isAsNew(read, a.object):
		return a.object
	case known && !current:
		delete(c.answers, key)
	}
	return read
}

// Unseen returns the objects that the API server has returned and that the store does not contain yet,
// in any order: those that have just been created. What the store has passed without them is not among
// them.
func (c *Cache[T]) Unseen() (objects []T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeOutdated()
	for key, a := range c.answers {
		if _, there := c.storedObject(key); !there {
			objects = append(objects, a.object)
		}
	}
	return objects
}

// UpToDate reports whether what the caller has read from the store shows the last known version.
func (c *Cache[T]) UpToDate(read T) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := storeKey(read)
	a, known := c.answers[key]
	if !known {
		return true
	}
	outdated := c.outdated(key, a)
	if outdated {
		delete(c.answers, key)
	}
	if shown, there := c.storedObject(key); outdated && there {
		return isAsNew(read, shown)
	}
	return outdated || isAsNew(read, a.object)
}

// Behind returns the key of an object whose last version the store has not shown for longer than
// that; empty if there is none.
func (c *Cache[T]) Behind(than time.Duration) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeOutdated()
	for key, a := range c.answers {
		if c.clock.Since(a.at) > than {
			return key
		}
	}
	return ""
}

// Len returns how many entries the store does not show yet.
func (c *Cache[T]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeOutdated()
	return len(c.answers)
}

func (c *Cache[T]) removeOutdated() { maps.DeleteFunc(c.answers, c.outdated) }

// outdated reports whether the store shows as much as an answer.
func (c *Cache[T]) outdated(key string, a answer[T]) bool {
	synced := c.store.LastStoreSyncResourceVersion()
	if synced != "" && (Reached(synced, a.object.GetResourceVersion()) || !Reached(synced, a.synced)) {
		return true
	}
	shown, there := c.storedObject(key)
	return there && isAsNew(shown, a.object)
}

func (c *Cache[T]) storedObject(key string) (object T, there bool) {
	item, _, _ := c.store.GetByKey(key) // fails only without a key
	object, there = item.(T)
	return object, there
}

// isAsNew reports whether an object is as new as another of the same name. An object that was
// created again is newer.
func isAsNew(a, b metav1.Object) bool { return Reached(a.GetResourceVersion(), b.GetResourceVersion()) }

// storeKey returns the key of an object in an informer's store.
func storeKey(o metav1.Object) string {
	return cache.NewObjectName(o.GetNamespace(), o.GetName()).String()
}

// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// errLate is returned when patience has ended. It does not leave the package.
var errLate = errors.New("store is late")

// writeTracker records, for one kind, what has been written and how much of that the informer's
// store shows.
//
// Versions of one kind are ordered, and a watch delivers them in order. So a store that has reached
// a version shows everything written up to it, including what has been deleted since. Only a Delete
// returns no version: the store shows it when the object is gone, replaced, or has a deletion
// timestamp.
type writeTracker struct {
	resource string
	stop     context.Context
	patience time.Duration
	clock    clock.Clock
	metrics  *metrics

	mu      sync.Mutex
	store   cache.Indexer // nil until bound: then nothing is waited for
	written string        // the highest version written
	reached string        // the highest version the store was seen at
	dying   map[string]types.UID
	late    bool // a wait has timed out, and the store has not caught up since
	awaited bool // somebody waits for moved
	moved   chan struct{}
}

// goal is what a wait is for. The zero goal is reached.
type goal struct {
	key     string // of the one object written; empty for everything
	version string
	dying   map[string]types.UID
}

func newWriteTracker(stop context.Context, resource string, patience time.Duration, c clock.Clock, m *metrics) *writeTracker {
	m.initSeries(resource)
	return &writeTracker{
		resource: resource, stop: stop, patience: patience, clock: c, metrics: m,
		dying: map[string]types.UID{}, moved: make(chan struct{}),
	}
}

func (h *writeTracker) groupResource() schema.GroupResource {
	return machinev1alpha1.Resource(h.resource)
}

// follow attaches to an informer. Handlers are called only after the store has changed, so a
// waiting call that they wake finds the change there.
func (h *writeTracker) follow(informer cache.SharedIndexInformer) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { h.wakeWaiting() },
		UpdateFunc: func(any, any) { h.wakeWaiting() },
		DeleteFunc: func(any) { h.wakeWaiting() },
	})
	if err != nil {
		return fmt.Errorf("follow %s: %w", h.resource, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store = informer.GetIndexer()
	return nil
}

func (h *writeTracker) wakeWaiting() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.awaited {
		h.awaited = false
		close(h.moved)
		h.moved = make(chan struct{})
	}
}

// lookup returns the object that the store shows under a key.
func (h *writeTracker) lookup(key string) (metav1.Object, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.storedObject(key)
}

// recordWrite records a version that was written. It does not wait for versions that are not
// numbers, since these cannot be compared.
func (h *writeTracker) recordWrite(key, version string) goal {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.store == nil || !atLeast(version, version) {
		return goal{}
	}
	if !atLeast(h.written, version) {
		h.written = version
	}
	return goal{key: key, version: version}
}

// recordDeletion records the deletion of an object that the store showed.
func (h *writeTracker) recordDeletion(key string, uid types.UID) goal {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dying[key] = uid
	return goal{dying: map[string]types.UID{key: uid}}
}

// awaitWrite waits after a write, for as long as patience lasts. It does not wait while the store
// is known to be late.
func (h *writeTracker) awaitWrite(ctx context.Context, g goal) {
	if h.nextChange(g) == nil || h.isLate() {
		return
	}
	begun := h.clock.Now()
	patience := h.clock.NewTimer(h.patience)
	defer patience.Stop()
	err := h.awaitGoal(ctx, g, patience.C())
	h.metrics.waits.WithLabelValues(h.resource).Observe(h.clock.Since(begun).Seconds())
	if errors.Is(err, errLate) {
		h.metrics.timeouts.WithLabelValues(h.resource).Inc()
		h.fallLate()
	}
}

// awaitAll waits before a list, until the store shows everything that was written before the call.
func (h *writeTracker) awaitAll() error {
	g := h.allWrites()
	if h.nextChange(g) == nil {
		return nil
	}
	begun := h.clock.Now()
	defer func() { h.metrics.held.WithLabelValues(h.resource).Observe(h.clock.Since(begun).Seconds()) }()
	for {
		// The store can catch up without calling a handler, by a bookmark or by a list without
		// differences, so check again now and then.
		patience := h.clock.NewTimer(h.patience)
		err := h.awaitGoal(h.stop, g, patience.C())
		patience.Stop()
		if !errors.Is(err, errLate) {
			h.isLate() // says so when the watch has caught up
			return err
		}
		h.fallLate()
	}
}

// awaitGoal returns nil when the store has reached the goal, otherwise an error with the reason.
func (h *writeTracker) awaitGoal(ctx context.Context, g goal, patience <-chan time.Time) error {
	for {
		moved := h.nextChange(g)
		if moved == nil {
			return nil
		}
		select {
		case <-moved:
		case <-patience:
			return errLate
		case <-ctx.Done():
			return fmt.Errorf("await %s: %w", h.resource, ErrStopped)
		case <-h.stop.Done():
			return fmt.Errorf("await %s: %w", h.resource, ErrStopped)
		}
	}
}

// nextChange returns nil if the store shows the goal, otherwise a channel that is closed when the
// store may have changed.
func (h *writeTracker) nextChange(g goal) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hasReached(g) {
		return nil
	}
	h.awaited = true
	return h.moved
}

// allWrites returns the goal of all writes until now.
func (h *writeTracker) allWrites() goal {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.allWritesLocked()
}

func (h *writeTracker) fallLate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.late {
		h.late = true
		klog.FromContext(h.stop).Info("The watch is late: decisions wait for it", "resource", h.resource,
			"written", h.written, "shown", h.reached)
	}
}

func (h *writeTracker) isLate() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late && h.hasReached(h.allWritesLocked()) {
		h.late = false
		klog.FromContext(h.stop).Info("The watch has caught up", "resource", h.resource, "shown", h.reached)
	}
	return h.late
}

// The caller of the functions below holds the lock.

func (h *writeTracker) allWritesLocked() goal {
	maps.DeleteFunc(h.dying, func(key string, uid types.UID) bool { return h.isDeleted(key, uid) })
	return goal{version: h.written, dying: maps.Clone(h.dying)}
}

func (h *writeTracker) hasReached(g goal) bool {
	for key, uid := range g.dying {
		if !h.isDeleted(key, uid) {
			return false
		}
	}
	return g.version == "" || h.passed(g.version) || h.showsVersion(g.key, g.version)
}

// passed reports whether the store has reached a version. It also records how far the store was:
// with some client-go feature gates off, a resync makes the store claim the version of an old
// object again.
func (h *writeTracker) passed(version string) bool {
	if now := h.store.LastStoreSyncResourceVersion(); atLeast(now, now) && !atLeast(h.reached, now) {
		h.reached = now
	}
	return atLeast(h.reached, version)
}

func (h *writeTracker) showsVersion(key, version string) bool {
	object, found := h.storedObject(key)
	return found && atLeast(object.GetResourceVersion(), version)
}

func (h *writeTracker) isDeleted(key string, uid types.UID) bool {
	object, found := h.storedObject(key)
	return !found || object.GetUID() != uid || object.GetDeletionTimestamp() != nil
}

func (h *writeTracker) storedObject(key string) (metav1.Object, bool) {
	if h.store == nil {
		return nil, false
	}
	item, _, _ := h.store.GetByKey(key) // nil if there is none; an informer's store does not fail
	object, err := meta.Accessor(item)
	return object, err == nil
}

// atLeast reports whether version a is b or later. Text that is not a version is earlier than all
// versions.
func atLeast(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order >= 0
}

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

// errLate: patience has run out. It never leaves the package.
var errLate = errors.New("store is late")

// horizon knows, for one kind, what has been written and how much of that the informer's store shows.
//
// Versions of one kind are ordered, and a watch delivers them in order, so a store that has reached a version shows
// everything written up to it, also what has vanished since. Only a Delete answers without a version: it shows
// when the object is gone, replaced, or has a deletion timestamp.
type horizon struct {
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

// goal is what a wait is for: the zero goal is reached.
type goal struct {
	key     string // of the one object written; empty for everything
	version string
	dying   map[string]types.UID
}

func newHorizon(stop context.Context, resource string, patience time.Duration, c clock.Clock, m *metrics) *horizon {
	m.begin(resource)
	return &horizon{
		resource: resource, stop: stop, patience: patience, clock: c, metrics: m,
		dying: map[string]types.UID{}, moved: make(chan struct{}),
	}
}

func (h *horizon) group() schema.GroupResource {
	return machinev1alpha1.Resource(h.resource)
}

// bind begins to follow an informer. A handler is called only after the store has changed, so whoever it wakes finds
// the change there.
func (h *horizon) bind(informer cache.SharedIndexInformer) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { h.wake() },
		UpdateFunc: func(any, any) { h.wake() },
		DeleteFunc: func(any) { h.wake() },
	})
	if err != nil {
		return fmt.Errorf("follow %s: %w", h.resource, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store = informer.GetIndexer()
	return nil
}

func (h *horizon) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.awaited {
		h.awaited = false
		close(h.moved)
		h.moved = make(chan struct{})
	}
}

// lookup returns the object that the store shows under a key.
func (h *horizon) lookup(key string) (metav1.Object, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.find(key)
}

// wrote notes a version that was written. Versions that are not numbers cannot be compared, hence not awaited.
func (h *horizon) wrote(key, version string) goal {
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

// deleted notes a Delete of an object that the store showed.
func (h *horizon) deleted(key string, uid types.UID) goal {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dying[key] = uid
	return goal{dying: map[string]types.UID{key: uid}}
}

// await is the wait after a write: as long as patience lasts, and not at all while the store is known to be late.
func (h *horizon) await(ctx context.Context, g goal) {
	if h.next(g) == nil || h.isLate() {
		return
	}
	begun := h.clock.Now()
	patience := h.clock.NewTimer(h.patience)
	defer patience.Stop()
	err := h.until(ctx, g, patience.C())
	h.metrics.waits.WithLabelValues(h.resource).Observe(h.clock.Since(begun).Seconds())
	if errors.Is(err, errLate) {
		h.metrics.timeouts.WithLabelValues(h.resource).Inc()
		h.fallLate()
	}
}

// hold is the wait before a list: until the store shows everything written before it was called.
func (h *horizon) hold() error {
	g := h.everything()
	if h.next(g) == nil {
		return nil
	}
	begun := h.clock.Now()
	defer func() { h.metrics.held.WithLabelValues(h.resource).Observe(h.clock.Since(begun).Seconds()) }()
	for {
		// The store can catch up without calling a handler, by a bookmark or by a list that differs in nothing:
		// so look again now and then.
		patience := h.clock.NewTimer(h.patience)
		err := h.until(h.stop, g, patience.C())
		patience.Stop()
		if !errors.Is(err, errLate) {
			h.isLate() // says so when the watch has caught up
			return err
		}
		h.fallLate()
	}
}

// until returns when the store has reached the goal, or says why it did not.
func (h *horizon) until(ctx context.Context, g goal, patience <-chan time.Time) error {
	for {
		moved := h.next(g)
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

// next returns nil when the store shows the goal, otherwise what will be closed when it is worth looking again.
func (h *horizon) next(g goal) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shows(g) {
		return nil
	}
	h.awaited = true
	return h.moved
}

// everything is all that has been written until now.
func (h *horizon) everything() goal {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all()
}

func (h *horizon) fallLate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.late {
		h.late = true
		klog.FromContext(h.stop).Info("The watch is late: decisions wait for it", "resource", h.resource,
			"written", h.written, "shown", h.reached)
	}
}

func (h *horizon) isLate() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late && h.shows(h.all()) {
		h.late = false
		klog.FromContext(h.stop).Info("The watch has caught up", "resource", h.resource, "shown", h.reached)
	}
	return h.late
}

// The functions below are called with the lock held.

func (h *horizon) all() goal {
	maps.DeleteFunc(h.dying, func(key string, uid types.UID) bool { return h.gone(key, uid) })
	return goal{version: h.written, dying: maps.Clone(h.dying)}
}

func (h *horizon) shows(g goal) bool {
	for key, uid := range g.dying {
		if !h.gone(key, uid) {
			return false
		}
	}
	return g.version == "" || h.past(g.version) || h.holds(g.key, g.version)
}

// past also remembers how far the store was: with some client-go feature gates off, a resync makes the store claim the
// version of an old object again.
func (h *horizon) past(version string) bool {
	if now := h.store.LastStoreSyncResourceVersion(); atLeast(now, now) && !atLeast(h.reached, now) {
		h.reached = now
	}
	return atLeast(h.reached, version)
}

func (h *horizon) holds(key, version string) bool {
	object, found := h.find(key)
	return found && atLeast(object.GetResourceVersion(), version)
}

func (h *horizon) gone(key string, uid types.UID) bool {
	object, found := h.find(key)
	return !found || object.GetUID() != uid || object.GetDeletionTimestamp() != nil
}

func (h *horizon) find(key string) (metav1.Object, bool) {
	if h.store == nil {
		return nil, false
	}
	item, found, err := h.store.GetByKey(key)
	if err != nil || !found {
		return nil, false
	}
	object, err := meta.Accessor(item)
	return object, err == nil
}

// atLeast tells whether version a is b or later; what is no version at all is earlier than everything.
func atLeast(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order >= 0
}

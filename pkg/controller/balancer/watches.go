// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// fillTime is how long a sync waits for a cache to fill. After that, its objects count as
// unreachable.
const fillTime = 10 * time.Second

// watches contains the caches of the kinds that Balancers need. There are at most as many as there
// are kinds that may be scaled.
type watches struct {
	client    dynamic.Interface
	namespace string
	clock     clock.PassiveClock
	// changed is called with each object that is added, changed or deleted, with both versions if
	// there are two; filled is called with each cache that is complete.
	changed func(resource schema.GroupVersionResource, objects ...*unstructured.Unstructured)
	gone    func(resource schema.GroupVersionResource, object *unstructured.Unstructured)
	filled  func()

	mu      sync.Mutex
	caches  map[schema.GroupVersionResource]*kindCache
	running sync.WaitGroup
}

type kindCache struct {
	informer cache.SharedIndexInformer
	since    time.Time
	// written remembers the scales that we wrote to its objects.
	written *written.Cache[*unstructured.Unstructured]
}

func newKindCache(informer cache.SharedIndexInformer, c clock.PassiveClock) *kindCache {
	return &kindCache{informer: informer, since: c.Now(), written: written.NewCache[*unstructured.Unstructured](informer.GetIndexer(), c)}
}

// isReady reports whether the cache is complete. If it is not, late reports whether to give up
// waiting for now.
func (k *kindCache) isReady(now time.Time) (ready, late bool) {
	return k.informer.HasSynced(), now.Sub(k.since) >= fillTime
}

// cacheFor returns the cache of a resource. It starts one if there is none; the cache lasts until
// ctx ends.
func (w *watches) cacheFor(ctx context.Context, resource schema.GroupVersionResource) *kindCache {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k, ok := w.caches[resource]; ok {
		return k
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, resource, w.namespace, 0,
		cache.Indexers{byLabel: indexByLabel}, written.ListStored).Informer()
	_ = informer.SetTransform(stripObject) // fails only for a running informer
	_, _ = informer.AddEventHandler(w.handler(resource))
	k := newKindCache(informer, w.clock)
	w.caches[resource] = k
	w.running.Go(func() { informer.RunWithContext(ctx) })
	w.running.Go(func() {
		if cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
			w.filled()
		}
	})
	return k
}

// stores returns the stores of all caches.
func (w *watches) stores() []reachability.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []reachability.Store
	for _, k := range w.caches {
		all = append(all, k.informer.GetIndexer())
	}
	return all
}

// wait returns after all caches have ended together with their context.
func (w *watches) wait() { w.running.Wait() }

func (w *watches) handler(resource schema.GroupVersionResource) cache.ResourceEventHandler {
	tell := func(items ...any) {
		var objects []*unstructured.Unstructured
		for _, item := range items {
			if object, ok := item.(*unstructured.Unstructured); ok {
				objects = append(objects, object)
			}
		}
		w.changed(resource, objects...)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(item any) { tell(item) },
		UpdateFunc: func(was, is any) { tell(was, is) },
		DeleteFunc: func(item any) {
			item = handlers.LastState(item)
			if object, ok := item.(*unstructured.Unstructured); ok {
				w.gone(resource, object)
			}
			tell(item)
		},
	}
}

// interests records which Balancers select which replicas.
type interests struct {
	mu        sync.RWMutex
	selectors map[string]map[string][]labels.Selector // by namespace and name
}

// setSelectors sets the selectors of a Balancer; nothing removes them.
func (i *interests) setSelectors(namespace, name string, selectors []labels.Selector) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(selectors) == 0 {
		if delete(i.selectors[namespace], name); len(i.selectors[namespace]) == 0 {
			delete(i.selectors, namespace)
		}
		return
	}
	if i.selectors == nil {
		i.selectors = map[string]map[string][]labels.Selector{}
	}
	if i.selectors[namespace] == nil {
		i.selectors[namespace] = map[string][]labels.Selector{}
	}
	i.selectors[namespace][name] = selectors
}

// interested returns the keys of the Balancers of a namespace whose selectors match any of these
// sets of labels.
func (i *interests) interested(namespace string, sets ...labels.Set) []string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	var keys []string
	for name, selectors := range i.selectors[namespace] {
		if matchesAny(selectors, sets) {
			keys = append(keys, namespace+"/"+name)
		}
	}
	return keys
}

func matchesAny(selectors []labels.Selector, sets []labels.Set) bool {
	for _, selector := range selectors {
		for _, set := range sets {
			if selector.Matches(set) {
				return true
			}
		}
	}
	return false
}

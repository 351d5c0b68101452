// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Sharing lets the handlers that are added to an informer before it starts share one listener. A
// listener takes two goroutines and a buffer for 1024 events, which is much of the memory of a
// process that manages few objects. Handlers that are added later have a listener of their own,
// since they must be told of the objects that are there already.
//
// Handlers of one informer are called one after the other, so none may block.
type Sharing struct {
	mu  sync.Mutex
	all map[cache.SharedIndexInformer]*sharedInformer
}

// Of returns an informer with which handlers share a listener.
func (s *Sharing) Of(informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[cache.SharedIndexInformer]*sharedInformer{}
	}
	if s.all[informer] == nil {
		s.all[informer] = &sharedInformer{SharedIndexInformer: informer}
	}
	return s.all[informer]
}

// Starting is called before informers start: from now on, handlers of those that [Sharing.Of] has
// returned get listeners of their own.
func (s *Sharing) Starting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, informer := range s.all {
		informer.starting()
	}
}

// sharedInformer is an informer and the handlers that share its listener.
type sharedInformer struct {
	cache.SharedIndexInformer

	mu       sync.Mutex
	started  bool
	listener cache.ResourceEventHandlerRegistration // nil until there is a handler
	// handlers is replaced, never changed.
	handlers []*sharedHandler
}

// sharedHandler is a handler, and its registration.
type sharedHandler struct {
	cache.ResourceEventHandler
	cache.ResourceEventHandlerRegistration
}

func (i *sharedInformer) starting() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.started = true
}

// AddEventHandler adds a handler.
func (i *sharedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return i.SharedIndexInformer.AddEventHandler(handler)
	}
	if i.listener == nil {
		listener, err := i.SharedIndexInformer.AddEventHandler(i)
		if err != nil {
			return nil, err
		}
		i.listener = listener
	}
	added := &sharedHandler{handler, i.listener}
	i.handlers = append(slices.Clone(i.handlers), added)
	return added, nil
}

// RemoveEventHandler removes a handler. The listener stays.
func (i *sharedInformer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	handler, shared := handle.(*sharedHandler)
	if !shared {
		return i.SharedIndexInformer.RemoveEventHandler(handle)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = slices.DeleteFunc(slices.Clone(i.handlers), func(h *sharedHandler) bool { return h == handler })
	return nil
}

func (i *sharedInformer) present() []*sharedHandler {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.handlers
}

// OnAdd tells all handlers of a new object.
func (i *sharedInformer) OnAdd(item any, initial bool) {
	for _, h := range i.present() {
		h.OnAdd(item, initial)
	}
}

// OnUpdate tells all handlers of a change.
func (i *sharedInformer) OnUpdate(before, after any) {
	for _, h := range i.present() {
		h.OnUpdate(before, after)
	}
}

// OnDelete tells all handlers that an object is gone.
func (i *sharedInformer) OnDelete(item any) {
	for _, h := range i.present() {
		h.OnDelete(item)
	}
}

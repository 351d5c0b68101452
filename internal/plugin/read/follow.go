// SPDX-License-Identifier: Apache-2.0

package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// Follower keeps objects up to date by watching.
type Follower struct {
	clusters Clusters
	// kinds are all kinds, and errs is why some could not be read at the start.
	kinds   []kind
	errs    []error
	stores  map[string]cache.SharedIndexInformer
	changed chan struct{}
	running sync.WaitGroup

	mu sync.Mutex
	// lost contains the kinds that are not up to date, since when and why.
	lost map[string]loss
	// left contains the kinds that are left out because there are too many objects.
	left map[string]bool
}

// loss is what keeps a kind from being up to date.
type loss struct {
	since time.Time
	why   error
}

// Follow reads everything and then watches until ctx ends. [Follower.Wait] waits until all of it
// has ended. It does not wait for a target cluster that does not answer at the start. What is not
// installed then, or must not be read, is not requested again. Devices are counted if an excess names some
// at the start.
func (c Clusters) Follow(ctx context.Context) (*Follower, error) {
	f := &Follower{clusters: c, changed: make(chan struct{}, 1), stores: map[string]cache.SharedIndexInformer{}, lost: map[string]loss{}, left: map[string]bool{}}
	f.kinds = c.kinds()
	if c.Target != nil {
		var o overview.Objects
		c.listKinds(ctx, slices.DeleteFunc(c.kinds(), func(k kind) bool { return k.name != deployments && k.name != reserves }), &o)
		if namesDevices(o) {
			f.kinds = append(f.kinds, c.deviceKinds()...)
		}
	}
	f.errs = probeKinds(ctx, f.kinds)
	if err := c.absent(&overview.Objects{}, f.kinds, f.errs); err != nil {
		return nil, err
	}
	var synced []cache.DoneChecker
	for i, k := range f.kinds {
		if f.errs[i] != nil && reason(k, f.errs[i]) != "" {
			continue
		}
		done, err := f.follow(ctx, k)
		if err != nil {
			return nil, err
		}
		if f.errs[i] == nil {
			synced = append(synced, done)
		}
	}
	if !cache.WaitFor(ctx, "", synced...) {
		f.Wait()
		return nil, fmt.Errorf("read the clusters: %w", context.Cause(ctx))
	}
	return f, nil
}

// probeKinds returns why each kind cannot be read, nil if it can.
func probeKinds(ctx context.Context, kinds []kind) []error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	errs := make([]error, len(kinds))
	var probing sync.WaitGroup
	for i, k := range kinds {
		probing.Go(func() { _, errs[i] = k.list(ctx, metav1.ListOptions{Limit: 1}) })
	}
	probing.Wait()
	return errs
}

// follow watches a kind. The result is done when all objects were read or left out.
func (f *Follower) follow(ctx context.Context, k kind) (cache.DoneChecker, error) {
	ctx, stop := context.WithCancel(ctx)
	l := &limited{kind: k, most: cmp.Or(f.clusters.most, MaxObjects), exceeded: func() { f.leaveOut(k.name); stop() }}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := l.listPage(ctx, o)
			f.recordState(k.name, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := l.follow(ctx, o)
			f.recordState(k.name, err)
			return w, err
		},
	}, k.example, 0, cache.Indexers{})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.signal() }, UpdateFunc: func(any, any) { f.signal() }, DeleteFunc: func(any) { f.signal() },
	})
	err = errors.Join(
		err,
		// Errors are shown with the rest, and not logged over it.
		informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}),
		informer.SetTransform(func(item any) (any, error) {
			if o, ok := item.(runtime.Object); ok {
				return slimObject(o), nil
			}
			return item, nil
		}),
	)
	if err != nil {
		stop()
		return nil, fmt.Errorf("follow %s: %w", k.name, err)
	}
	f.stores[k.name] = informer
	f.running.Go(func() {
		defer stop()
		informer.RunWithContext(ctx)
	})
	return either{informer.HasSyncedChecker(), ctx}, nil
}

// either is done when a store is full, or its kind is no longer followed.
type either struct {
	cache.DoneChecker
	ctx context.Context
}

func (e either) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-e.DoneChecker.Done():
		case <-e.ctx.Done():
		}
	}()
	return done
}

// leaveOut shows nothing of a kind any more.
func (f *Follower) leaveOut(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left[kind] = true
	f.signal()
}

// recordState records whether a kind is up to date.
func (f *Follower) recordState(kind string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, lost := f.lost[kind]
	switch {
	case err == nil && lost:
		delete(f.lost, kind)
	case err != nil && !lost:
		f.lost[kind] = loss{f.clusters.Clock.Now(), err}
	case err != nil:
		f.lost[kind] = loss{was.since, err}
		return
	default:
		return
	}
	f.signal()
}

// missing describes what has not been read so far.
func (f *Follower) missing() (o overview.Objects) {
	errs := slices.Clone(f.errs)
	for i, k := range f.kinds {
		switch why := f.lossOf(k.name); {
		case f.hasRead(k.name) || f.leaves(k.name):
			errs[i] = nil
		case why != nil && reason(k, why) != "": // the cluster answers by now
			errs[i] = why
		}
	}
	_ = f.clusters.absent(&o, f.kinds, errs) // all of the control cluster was read
	return o
}

// hasRead reports whether all objects of a kind were read at least once.
func (f *Follower) hasRead(kind string) bool {
	informer := f.stores[kind]
	return informer != nil && informer.HasSynced()
}

// lossOf returns why a kind is not up to date; nil if it is.
func (f *Follower) lossOf(kind string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost[kind].why
}

// behind describes what is not up to date, one per line.
func (f *Follower) behind() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(f.lost)) {
		l := f.lost[kind]
		if f.left[kind] || !f.hasRead(kind) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: not up to date since %s: %v", kind, l.since.UTC().Format("15:04:05 UTC"), withoutAddress(l.why)))
	}
	for _, kind := range slices.Sorted(maps.Keys(f.left)) {
		lines = append(lines, fmt.Sprintf("%s: more than %d exist, too many to follow; all are omitted", kind, cmp.Or(f.clusters.most, MaxObjects)))
	}
	return lines
}

// leaves reports whether a kind is left out.
func (f *Follower) leaves(kind string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left[kind]
}

// signal reports a change. It never blocks: one signal stands for many changes.
func (f *Follower) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Changed has a value when objects have changed since the last receive.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// Objects returns the present objects.
func (f *Follower) Objects() overview.Objects {
	o := f.missing()
	o.At, o.Missing = f.clusters.Clock.Now(), append(f.behind(), o.Missing...)
	for name, informer := range f.stores {
		if f.leaves(name) {
			markUnknown(&o, name)
			continue
		}
		for _, item := range informer.GetStore().List() {
			collect(&o, item)
		}
	}
	if f.stores[deviceSlices] != nil || f.stores[deviceClasses] != nil {
		countDevices(&o, f.whyUnread)
	}
	return o
}

// whyUnread returns why a kind is not shown; empty if it is.
func (f *Follower) whyUnread(kind string) string {
	switch {
	case f.leaves(kind):
		return ErrTooMany.Error()
	case !f.hasRead(kind):
		return "the cluster has not answered"
	}
	return ""
}

// Wait returns when everything that Follow started has ended.
func (f *Follower) Wait() { f.running.Wait() }

// limited reads a kind in pages, trims each page, and stops if there are more objects than most.
type limited struct {
	kind
	most int
	// exceeded is called if there are more.
	exceeded func()

	mu    sync.Mutex
	count int
	// expired reports whether the last page could not be read because the list had expired.
	expired bool
}

// listPage lists one page. A page at resourceVersion 0 would be the whole list. After a page of a
// list that has expired, the caller requests the whole list, and no further page.
func (l *limited) listPage(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion = ""
	}
	if !l.expired {
		o.Limit = pageSize
	}
	list, err := l.kind.list(ctx, o)
	l.expired = o.Continue != "" && apierrors.IsResourceExpired(err)
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		items[i] = slimObject(item)
	}
	if !l.countObjects(len(items), o.Continue == "") {
		return nil, ErrTooMany
	}
	return list, meta.SetList(list, items)
}

// follow watches, and passes on no object beyond the limit.
func (l *limited) follow(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := l.kind.watch(ctx, o)
	if err != nil {
		return nil, err
	}
	l.countObjects(0, o.SendInitialEvents != nil && *o.SendInitialEvents)
	c := &counting{Interface: w, result: make(chan watch.Event), stopped: make(chan struct{})}
	go c.filter(l.allows)
	return c, nil
}

// allows counts objects as they are added and deleted, and reports whether to pass on an event.
func (l *limited) allows(e watch.Event) bool {
	switch e.Type {
	case watch.Added:
		return l.countObjects(1, false)
	case watch.Deleted:
		l.countObjects(-1, false)
	}
	return true
}

// counting is a watch without the events that are not allowed. Unlike watch.Filter's, its goroutine
// ends with it.
type counting struct {
	watch.Interface
	result  chan watch.Event
	stop    sync.Once
	stopped chan struct{}
}

func (c *counting) ResultChan() <-chan watch.Event { return c.result }

func (c *counting) Stop() {
	c.stop.Do(func() { close(c.stopped) })
	c.Interface.Stop()
}

func (c *counting) filter(allows func(watch.Event) bool) {
	defer close(c.result)
	for e := range c.Interface.ResultChan() {
		if !allows(e) {
			continue
		}
		select {
		case c.result <- e:
		case <-c.stopped:
			return
		}
	}
}

// countObjects adds to the number of objects, or restarts it if anew is set, and reports whether
// the limit allows it.
func (l *limited) countObjects(n int, anew bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if anew {
		l.count = 0
	}
	l.count += n
	if l.count > l.most {
		l.exceeded()
	}
	return l.count <= l.most
}

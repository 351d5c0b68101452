// SPDX-License-Identifier: Apache-2.0

package read

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// Follower keeps what it has read up to date by watching.
type Follower struct {
	clusters Clusters
	// missing is what could not be read when it began.
	missing overview.Objects
	stores  []cache.SharedIndexInformer
	changed chan struct{}
	running sync.WaitGroup

	mu sync.Mutex
	// lost are the kinds that are not up to date, since when and why.
	lost map[string]loss
}

// loss is what keeps a kind from being up to date.
type loss struct {
	since time.Time
	why   error
}

// Follow reads everything and then watches until ctx ends; [Follower.Wait] says when all of it has ended. What cannot be
// read when it begins is not asked for again.
func (c Clusters) Follow(ctx context.Context) (*Follower, error) {
	f := &Follower{clusters: c, changed: make(chan struct{}, 1), lost: map[string]loss{}}
	kinds := c.kinds()
	errs := make([]error, len(kinds))
	var probing sync.WaitGroup
	for i, k := range kinds {
		probing.Go(func() { _, errs[i] = k.list(ctx, metav1.ListOptions{Limit: 1}) })
	}
	probing.Wait()
	if err := c.absent(&f.missing, kinds, errs); err != nil {
		return nil, err
	}
	var synced []cache.DoneChecker
	for i, k := range kinds {
		if errs[i] != nil {
			continue
		}
		informer, err := f.start(ctx, k)
		if err != nil {
			return nil, err
		}
		synced = append(synced, informer.HasSyncedChecker())
	}
	if !cache.WaitFor(ctx, "", synced...) {
		f.Wait()
		return nil, fmt.Errorf("read the clusters: %w", context.Cause(ctx))
	}
	return f, nil
}

func (f *Follower) start(ctx context.Context, k kind) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := k.list(ctx, o)
			f.note(k.name, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := k.watch(ctx, o)
			f.note(k.name, err)
			return w, err
		},
	}, k.example, 0, cache.Indexers{})
	// What goes wrong is shown with the rest, and not logged over it.
	if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
		return nil, fmt.Errorf("follow %s: %w", k.name, err)
	}
	err := informer.SetTransform(func(item any) (any, error) {
		if o, ok := item.(runtime.Object); ok {
			return slim(o), nil
		}
		return item, nil
	})
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", k.name, err)
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.tell() }, UpdateFunc: func(any, any) { f.tell() }, DeleteFunc: func(any) { f.tell() },
	})
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", k.name, err)
	}
	f.stores = append(f.stores, informer)
	f.running.Go(func() { informer.RunWithContext(ctx) })
	return informer, nil
}

// note remembers whether a kind is up to date.
func (f *Follower) note(kind string, err error) {
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
	f.tell()
}

// behind says what is not up to date, in a line each.
func (f *Follower) behind() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(f.lost)) {
		l := f.lost[kind]
		lines = append(lines, fmt.Sprintf("%s: not up to date since %s: %v", kind, l.since.UTC().Format("15:04:05 UTC"), cause(l.why)))
	}
	return lines
}

// tell never waits: one word is enough for many changes.
func (f *Follower) tell() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Changed has something when objects have changed since the last receive.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// Objects are those of this moment.
func (f *Follower) Objects() overview.Objects {
	o := overview.Objects{At: f.clusters.Clock.Now(), PodsUnknown: f.missing.PodsUnknown, Missing: append(f.behind(), f.missing.Missing...)}
	for _, informer := range f.stores {
		for _, item := range informer.GetStore().List() {
			collect(&o, item)
		}
	}
	return o
}

// Wait returns when nothing that Follow began is running any more.
func (f *Follower) Wait() { f.running.Wait() }

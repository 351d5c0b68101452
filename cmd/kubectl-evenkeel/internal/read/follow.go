// SPDX-License-Identifier: Apache-2.0

package read

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/overview"
)

// Follower keeps what it has read up to date by watching.
type Follower struct {
	clusters Clusters
	// missing is what could not be read when it began.
	missing overview.Objects
	stores  []cache.SharedIndexInformer
	changed chan struct{}
	running sync.WaitGroup
}

// Follow reads everything and then watches until ctx ends; [Follower.Wait] says when all of it has ended. What cannot be
// read when it begins is not asked for again.
func (c Clusters) Follow(ctx context.Context) (*Follower, error) {
	f := &Follower{clusters: c, changed: make(chan struct{}, 1)}
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
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: k.list, WatchFuncWithContext: k.watch}, k.example, 0, cache.Indexers{})
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
	o := overview.Objects{At: f.clusters.Clock.Now(), PodsUnknown: f.missing.PodsUnknown, Missing: f.missing.Missing}
	for _, informer := range f.stores {
		for _, item := range informer.GetStore().List() {
			collect(&o, item)
		}
	}
	return o
}

// Wait returns when nothing that Follow began is running any more.
func (f *Follower) Wait() { f.running.Wait() }

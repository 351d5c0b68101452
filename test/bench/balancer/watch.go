// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
)

// limit bounds one wait.
const limit = 2 * time.Minute

// watcher sees what everybody else sees: Deployments and Balancers as they change.
type watcher struct {
	stop func()

	mu          sync.Mutex
	changed     chan struct{} // closed at each change, and replaced
	deployments map[string]*appsv1.Deployment
	balancers   map[string]*v1alpha1.Balancer
	seen        int
}

func watchFleet(ctx context.Context, f *fleet) (*watcher, error) {
	ctx, cancel := context.WithCancel(ctx)
	core, ours := informers.NewSharedInformerFactory(f.kube, 0), externalversions.NewSharedInformerFactory(f.ours, 0)
	w := &watcher{changed: make(chan struct{}), deployments: map[string]*appsv1.Deployment{}, balancers: map[string]*v1alpha1.Balancer{}}
	w.stop = func() {
		cancel()
		core.Shutdown()
		ours.Shutdown()
	}
	var filled []cache.DoneChecker
	for _, i := range []cache.SharedIndexInformer{core.Apps().V1().Deployments().Informer(), ours.Balancer().V1alpha1().Balancers().Informer()} {
		filled = append(filled, i.HasSyncedChecker())
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: w.note, UpdateFunc: func(_, is any) { w.note(is) }}); err != nil {
			return nil, err
		}
	}
	core.StartWithContext(ctx)
	ours.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "", filled...) {
		w.stop()
		return nil, errors.New("the watches ended")
	}
	return w, nil
}

func (w *watcher) note(item any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch object := item.(type) {
	case *appsv1.Deployment:
		w.deployments[object.Name] = object
	case *v1alpha1.Balancer:
		w.balancers[object.Name] = object
	}
	w.seen++
	close(w.changed)
	w.changed = make(chan struct{})
}

// until waits until a look at what is there, done under lock, says that it is so. It returns when
// that was.
func (w *watcher) until(ctx context.Context, what string, so func() bool) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		w.mu.Lock()
		done, changed := so(), w.changed
		w.mu.Unlock()
		if done {
			return time.Now(), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait until %s: %w", what, ctx.Err())
		}
	}
}

// asked waits until all of these Deployments are asked for so many replicas.
func (w *watcher) asked(ctx context.Context, names []string, replicas int32) (time.Time, error) {
	return w.until(ctx, fmt.Sprintf("%s and the others have %d replicas", names[0], replicas), func() bool {
		for _, name := range names {
			if d := w.deployments[name]; d == nil || *d.Spec.Replicas != replicas {
				return false
			}
		}
		return true
	})
}

// balanced waits until all Balancers are, and have counted every pod.
func (w *watcher) balanced(ctx context.Context) error {
	_, err := w.until(ctx, "all Balancers are balanced", func() bool {
		for _, b := range w.balancers {
			if !meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionBalanced) || b.Status.ReadyReplicas != *b.Spec.Replicas {
				return false
			}
		}
		return len(w.balancers) > 0
	})
	return err
}

func (w *watcher) deployment(name string) *appsv1.Deployment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deployments[name]
}

// changes is how many objects have come or changed.
func (w *watcher) changes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// SPDX-License-Identifier: Apache-2.0

package read

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

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

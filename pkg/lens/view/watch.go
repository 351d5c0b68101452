// SPDX-License-Identifier: Apache-2.0

package view

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// viewWatch is a watch whose events contain views. Its goroutine ends with the watch, or when it is
// stopped, even if nothing reads its events.
type viewWatch struct {
	inner  watch.Interface
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

func viewsOf[T runtime.Object](inner watch.Interface, show func(T) T) watch.Interface {
	w := &viewWatch{inner: inner, events: make(chan watch.Event), done: make(chan struct{})}
	go w.forward(func(e watch.Event) watch.Event {
		if object, ok := e.Object.(T); ok { // else the event is an error
			e.Object = show(object)
		}
		return e
	})
	return w
}

func (w *viewWatch) forward(see func(watch.Event) watch.Event) {
	defer close(w.events)
	for {
		select {
		case e, open := <-w.inner.ResultChan():
			if !open {
				return
			}
			select {
			case w.events <- see(e):
			case <-w.done:
				return
			}
		case <-w.done:
			return
		}
	}
}

func (w *viewWatch) Stop() {
	w.once.Do(func() { close(w.done) })
	w.inner.Stop()
}

func (w *viewWatch) ResultChan() <-chan watch.Event { return w.events }

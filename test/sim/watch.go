// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// bookmarkEvery is how often a quiet watch that asks for bookmarks gets one.
const bookmarkEvery = time.Minute

// bookmarkEvery is how long it takes until the next bookmark. The lock is held.
func (s *Server) bookmarkEvery(user string) time.Duration {
	if every, _ := mostSpecific(s.faults.bookmarks, user, ""); every > 0 {
		s.struck["late bookmark"]++
		return every
	}
	return bookmarkEvery
}

// watch is the body of a watch's response. The goroutine that reads it does all the work.
type watch struct {
	server  *Server
	client  *Client
	table   *table
	ctx     context.Context
	chosen  selection
	only    string // empty for all namespaces
	epoch   int
	broken  bool
	restore int
	from    uint64    // events up to this version are not delivered
	ends    time.Time // zero for never
	remarks time.Time // of the next bookmark; zero for never
	wake    chan struct{}
	closed  chan struct{}
	closing sync.Once

	// Only the reader uses these.
	first  []byte // what the watch begins with
	next   int    // number of the next event
	seen   uint64 // the resourceVersion up to which the reader knows
	drawn  bool   // whether due belongs to the next event
	due    time.Time
	gaveUp time.Time // when a silent connection is given up; zero if it is not silent
	last   bool      // nothing follows what is in buffer
	rest   []byte
}

func (s *Server) startWatch(r *request) (answer, error) {
	chosen, err := r.selection()
	if err != nil {
		return answer{}, err
	}
	if r.Name != "" {
		return answer{}, r.notServed()
	}
	w := &watch{
		server: s, client: r.client, table: r.table, ctx: r.ctx, chosen: chosen, only: r.Namespace, epoch: s.epoch, restore: s.restores,
		wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	if seconds, err := strconv.Atoi(r.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		w.ends = time.Now().Add(time.Duration(seconds) * time.Second)
	}
	if r.query.Get("allowWatchBookmarks") == "true" {
		w.remarks = time.Now().Add(s.bookmarkEvery(r.User))
	}
	if err := w.setStart(r); err != nil {
		return answer{}, err
	}
	r.table.watches[w] = struct{}{}
	return answer{code: http.StatusOK, stream: w}, nil
}

// setStart decides what the watch starts from: the present state, or a point in history.
func (w *watch) setStart(r *request) error {
	from, whole := r.query.Get("resourceVersion"), r.query.Get("sendInitialEvents") == "true"
	if refused, _ := mostSpecific(w.server.faults.noInitial, r.User, r.Resource); whole && refused {
		return r.invalid(field.Forbidden(field.NewPath("sendInitialEvents"), "the WatchList feature is off"))
	}
	if whole || from == "" || from == "0" {
		w.next, w.seen = w.table.base+len(w.table.log), w.server.version
		for _, v := range w.table.sorted(w.only) {
			if w.chosen.matches(v) {
				w.first = appendFrame(w.first, Added, v)
			}
		}
		if whole {
			w.first = append(w.first, w.bookmark(metav1.InitialEventsAnnotationKey)...)
		}
		return nil
	}
	rv, err := parseVersion(from)
	if err != nil {
		return err
	}
	next, ok := w.table.firstAfter(rv)
	if !ok {
		w.rest, w.last = expired(), true
	}
	w.next, w.seen, w.from = next, rv, rv
	return nil
}

// Read waits for the next events that are due.
func (w *watch) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		w.client.stands()
		if w.last {
			w.unregister()
			return 0, io.EOF
		}
		wait, err := w.deliverDue()
		if err != nil {
			w.unregister()
			return 0, err
		}
		if len(w.rest) > 0 || w.last {
			continue
		}
		if err := w.waitForEvent(wait); err != nil {
			w.unregister()
			return 0, err
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// Close ends the watch, and a Read in progress.
func (w *watch) Close() error {
	w.closing.Do(func() { close(w.closed) })
	w.unregister()
	return nil
}

func (w *watch) unregister() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	delete(w.table.watches, w)
}

// waitForEvent waits for this time, without limit if it is zero, or until something happens.
func (w *watch) waitForEvent(d time.Duration) error {
	var alarm <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-alarm:
		return nil
	case <-w.wake:
		return nil
	case <-w.client.done:
		return io.ErrUnexpectedEOF
	case <-w.ctx.Done():
		return w.ctx.Err()
	case <-w.closed:
		return io.ErrClosedPipe
	}
}

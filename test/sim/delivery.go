// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deliverDue moves due events into rest, or returns when to look again.
func (w *watch) deliverDue() (time.Duration, error) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	now := time.Now()
	if err := w.server.reachable(w.client); err != nil || w.restore != w.server.restores || w.broken {
		return 0, io.ErrUnexpectedEOF
	}
	if !w.ends.IsZero() && !now.Before(w.ends) {
		w.last = true
		return 0, nil
	}
	silent, _ := mostSpecific(w.server.faults.silent, w.client.user, "")
	if !silent {
		w.gaveUp = time.Time{}
	} else if w.gaveUp.IsZero() {
		w.gaveUp = now.Add(lost)
	} else if !now.Before(w.gaveUp) {
		return 0, io.ErrUnexpectedEOF
	}
	if held, _ := mostSpecific(w.server.faults.held, w.client.user, w.table.Name); held || silent {
		if held {
			w.server.struck["watch held"]++
		}
		return untilFirst(now, w.ends, w.gaveUp), nil
	}
	if len(w.first) > 0 {
		w.rest, w.first = w.first, nil
		return 0, nil
	}
	if w.epoch != w.server.epoch || w.next < w.table.base {
		w.rest, w.last = expired(), true
		return 0, nil
	}
	return w.deliver(now), nil
}

// deliver delivers the events that are due, or a bookmark if all have been seen.
func (w *watch) deliver(now time.Time) time.Duration {
	for ; w.next < w.table.base+len(w.table.log); w.next++ {
		e := w.table.log[w.next-w.table.base]
		effect, shown := w.visibleEvent(e)
		if shown == nil || e.rv <= w.from {
			continue
		}
		if due := w.dueTime(e); now.Before(due) {
			return untilFirst(now, w.ends, due)
		}
		w.rest = appendFrame(w.rest, effect, shown)
		w.seen, w.drawn = e.rv, false
	}
	if len(w.rest) > 0 || w.remarks.IsZero() {
		return untilFirst(now, w.ends)
	}
	if !now.Before(w.remarks) {
		w.remarks = now.Add(w.server.bookmarkEvery(w.client.user))
		if w.seen < w.server.version { // otherwise, the bookmark is no news for the client
			w.seen = w.server.version
			w.rest = w.bookmark("")
		}
	}
	return untilFirst(now, w.ends, w.remarks)
}

// dueTime returns when an event may be delivered. The time is drawn once. If the previous event is
// late, this one is later still, because it is not requested earlier.
func (w *watch) dueTime(e *event) time.Time {
	if !w.drawn {
		w.drawn, w.due = true, e.at
		if lag, ok := mostSpecific(w.server.faults.lag, w.client.user, w.table.Name); ok {
			w.due = e.at.Add(lag())
			w.server.struck["late event"]++
		}
	}
	return w.due
}

// visibleEvent returns an event as the watch's selector shows it, nil if the selector matches
// neither state.
func (w *watch) visibleEvent(e *event) (Effect, *version) {
	if w.only != "" && w.only != e.key.namespace {
		return "", nil
	}
	before, after := w.chosen.matches(e.was), w.chosen.matches(e.is)
	switch {
	case before && after:
		return Modified, e.is
	case after:
		return Added, e.is
	case before:
		return Deleted, e.gone()
	}
	return "", nil
}

// untilFirst returns the time until the earliest of some times; it ignores zero times.
func untilFirst(now time.Time, moments ...time.Time) time.Duration {
	var least time.Duration
	for _, m := range moments {
		if left := m.Sub(now); !m.IsZero() && (least == 0 || left < least) {
			least = max(left, 1)
		}
	}
	return least
}

func appendFrame(b []byte, effect Effect, v *version) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, effect...)
	b = append(b, `","object":`...)
	b = append(b, v.encoded()...)
	return append(b, "}\n"...)
}

// bookmark returns an event that shows how far the watch is, with an annotation if given.
func (w *watch) bookmark(annotation string) []byte {
	apiVersion, kind := w.table.gvk.ToAPIVersionAndKind()
	extra := ""
	if annotation != "" {
		extra = fmt.Sprintf(`,"annotations":{%q:"true"}`, annotation)
	}
	return fmt.Appendf(nil, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}}`+"\n",
		kind, apiVersion, w.seen, extra)
}

// expired returns the event that ends a watch whose history is forgotten.
func expired() []byte {
	raw, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
	})
	if err != nil {
		panic(err) // a constant
	}
	return fmt.Appendf(nil, `{"type":"ERROR","object":%s}`+"\n", raw)
}

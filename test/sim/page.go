// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// past is a kind as it was at a resourceVersion.
type past struct {
	objects map[key]*version
	rv      uint64
	older   bool // than the present state
}

// before returns the objects without the latest events for which undone returns true.
func (t *table) before(latest uint64, undone func(*event) bool) past {
	p := past{objects: maps.Clone(t.objects), rv: latest}
	for _, e := range slices.Backward(t.log) {
		if !undone(e) {
			break
		}
		p.rv, p.older = e.rv-1, true
		if e.was == nil {
			delete(p.objects, e.key)
		} else {
			p.objects[e.key] = e.was
		}
	}
	return p
}

// stateAt returns the objects as they were at a time, as far as history reaches.
func (t *table) stateAt(when time.Time, latest uint64) past {
	return t.before(latest, func(e *event) bool { return e.at.After(when) })
}

// paging is the state that one request of a list shows.
type paging struct {
	all    []*version
	rv     uint64
	limit  int
	listed int
	more   string // fields of the list's metadata about the next page
}

// token is where a list continues: in the state of a version, or in the present one if that is 0.
type token struct {
	Version         uint64
	Namespace, Name string
}

func (t token) String() string {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // it is text
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// pageFor finds the state that a list shows, and where the page begins in it.
func (s *Server) pageFor(r *request) (*paging, error) {
	p := &paging{}
	p.limit, _ = strconv.Atoi(r.query.Get("limit"))
	if text := r.query.Get("continue"); text != "" {
		return p, s.resume(r, p, text)
	}
	from, match := r.query.Get("resourceVersion"), metav1.ResourceVersionMatch(r.query.Get("resourceVersionMatch"))
	state := past{objects: r.table.objects, rv: s.version}
	switch from {
	case "0":
		p.limit = 0 // as the watch cache answers it
		state = s.cached(r)
	case "":
		s.cached(r) // to be counted
	default:
		rv, err := parseVersion(from)
		switch {
		case err != nil:
			return nil, err
		case rv > s.version:
			return nil, tooLarge(rv, s.version)
		case match == metav1.ResourceVersionMatchExact && rv < r.table.forgotten:
			return nil, apierrors.NewResourceExpired("The provided resource version is too old.")
		case match == metav1.ResourceVersionMatchExact:
			state = r.table.before(rv, func(e *event) bool { return e.rv > rv })
			state.rv = rv
		}
	}
	p.rv, p.all = state.rv, sortedIn(state.objects, r.Namespace)
	return p, nil
}

// cached returns the state that the watch cache shows. It counts lists while the cache is stale,
// whether or not these may be answered from it.
func (s *Server) cached(r *request) past {
	when := s.staleness(r)
	if !when.Before(s.clock()) {
		return past{objects: r.table.objects, rv: s.version}
	}
	state := r.table.stateAt(when, s.version)
	if state.older {
		s.struck["stale cache on list"]++
	}
	return state
}

// staleness returns the time whose state a read from the cache may show.
func (s *Server) staleness(r *request) time.Time {
	behind, _ := mostSpecific(s.faults.stale, r.User, r.Resource)
	return s.clock().Add(-behind)
}

// resume continues a list in the state in which it began.
func (s *Server) resume(r *request, p *paging, text string) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	from := token{}
	if err == nil {
		err = json.Unmarshal(raw, &from)
	}
	switch {
	case err != nil:
		return apierrors.NewBadRequest("continue key is not valid: " + err.Error())
	case from.Version == 0:
		from.Version = s.version
	case from.Version < r.table.forgotten || from.Version > s.version:
		s.struck["expired token"]++
		from.Version = 0
		expired := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
		expired.ErrStatus.Continue = from.String()
		return expired
	}
	p.rv = from.Version
	all := sortedIn(r.table.before(p.rv, func(e *event) bool { return e.rv > from.Version }).objects, r.Namespace)
	n, _ := slices.BinarySearchFunc(all, key{from.Namespace, from.Name}, func(v *version, k key) int { return v.key.compare(k) })
	p.all = all[n:]
	return nil
}

// continueAt adds the token with which the list continues at the nth object.
func (p *paging) continueAt(n int, chosen selection) {
	p.more = fmt.Sprintf(`,"continue":%q`, token{p.rv, p.all[n].key.namespace, p.all[n].key.name})
	if chosen.labels.Empty() && chosen.fields.Empty() {
		p.more += fmt.Sprintf(`,"remainingItemCount":%d`, len(p.all)-n)
	}
}

func tooLarge(wanted, is uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, is), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// Stale makes lists and reads at resourceVersion 0 show a state of this age, as far as history
// reaches. Zero ends it.
func (s *Server) Stale(resource string, behind time.Duration, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes(resource, users) {
			f.stale[at] = behind
		}
	})
}

// WatchLists sets whether a watch may begin with everything that is stored. If not, as on an API
// server without that feature, informers begin with a list at resourceVersion 0.
func (s *Server) WatchLists(allowed bool, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes("", users) {
			f.noInitial[at] = !allowed
		}
	})
}

// Bookmarks sets how often quiet watches get a bookmark, instead of every minute. Zero ends it.
func (s *Server) Bookmarks(every time.Duration, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes("", users) {
			f.bookmarks[at] = every
		}
	})
}

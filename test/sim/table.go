// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

type key struct{ namespace, name string }

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// version is an object as it was stored once. It is never changed.
type version struct {
	key    key
	rv     uint64
	object map[string]any

	encode sync.Once
	raw    []byte
}

// encoded returns the object as JSON. It is encoded at most once.
func (v *version) encoded() []byte {
	v.encode.Do(func() {
		raw, err := json.Marshal(v.object)
		if err != nil {
			panic(fmt.Sprintf("encode %v: %v", v.key, err)) // it was decoded from JSON
		}
		v.raw = raw
	})
	return v.raw
}

// stamped is the version as it is shown in the event that removed it.
func (v *version) stamped(rv uint64) *version {
	object := maps.Clone(v.object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["resourceVersion"] = strconv.FormatUint(rv, 10)
	object["metadata"] = metadata
	return &version{key: v.key, rv: rv, object: object}
}

// event is one change: was is nil for a new object, is for a removed one.
type event struct {
	key  key
	rv   uint64
	at   time.Time
	was  *version
	is   *version
	gone func() *version
}

// table contains the objects of one kind, and their recent changes.
type table struct {
	Resource
	gvr     schema.GroupVersionResource
	gvk     schema.GroupVersionKind
	objects map[key]*version

	// log contains the events from number base on; those of resourceVersions up to forgotten are
	// gone.
	log       []*event
	base      int
	forgotten uint64
	watches   map[*watch]struct{}

	// managers maintain the managed fields, by subresource.
	managers map[string]*managedfields.FieldManager
}

func newTable(r Resource) *table {
	gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
	return &table{
		Resource: r,
		gvr:      gv.WithResource(r.Name),
		gvk:      gv.WithKind(r.Kind),
		objects:  map[key]*version{},
		watches:  map[*watch]struct{}{},
		managers: map[string]*managedfields.FieldManager{},
	}
}

// sorted returns the objects of a namespace, or of all, sorted by key.
func (t *table) sorted(namespace string) []*version {
	return sortedIn(t.objects, namespace)
}

func sortedIn(objects map[key]*version, namespace string) []*version {
	found := make([]*version, 0, len(objects))
	for k, v := range objects {
		if namespace == "" || k.namespace == namespace {
			found = append(found, v)
		}
	}
	slices.SortFunc(found, func(a, b *version) int { return a.key.compare(b.key) })
	return found
}

// storeObject puts object in the place of was, or removes was if object is nil, and notifies the
// watches. The caller holds the lock.
func (s *Server) storeObject(t *table, k key, was *version, object map[string]any) *version {
	s.version++
	e := &event{key: k, rv: s.version, at: s.clock(), was: was}
	if was != nil {
		e.gone = sync.OnceValue(func() *version { return was.stamped(e.rv) })
		s.forgetUID(was)
	}
	if object == nil {
		delete(t.objects, k)
	} else {
		metadataOf(object)["resourceVersion"] = strconv.FormatUint(s.version, 10)
		e.is = &version{key: k, rv: s.version, object: object}
		t.objects[k] = e.is
		s.uids[uidOf(e.is)]++
	}
	t.log = append(t.log, e)
	if over := len(t.log) - s.history; over > 0 {
		t.forgotten = t.log[over-1].rv
		t.log = slices.Delete(t.log, 0, over)
		t.base += over
	}
	t.wakeWatches()
	close(s.changed)
	s.changed = make(chan struct{})
	return e.is
}

func (s *Server) forgetUID(v *version) {
	uid := uidOf(v)
	if s.uids[uid]--; s.uids[uid] <= 0 {
		delete(s.uids, uid)
	}
}

func (t *table) wakeWatches() {
	for w := range t.watches {
		select {
		case w.wake <- struct{}{}:
		default: // it has been woken already
		}
	}
}

// firstAfter returns the number of the first event after a resourceVersion; false if that part of
// history is forgotten.
func (t *table) firstAfter(rv uint64) (int, bool) {
	if rv < t.forgotten {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(t.log, rv+1, func(e *event, rv uint64) int { return cmp.Compare(e.rv, rv) })
	return t.base + i, true
}

func metadataOf(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	return metadata
}

func uidOf(v *version) string {
	uid, _ := metadataOf(v.object)["uid"].(string)
	return uid
}

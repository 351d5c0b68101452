// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Options configure a Server.
type Options struct {
	// Seed decides uids, generated names and which writes fail.
	Seed uint64
	// Resources are the kinds served; none means Core and Machine.
	Resources []Resource
	// Now is the server's clock, time.Now unless set.
	Now func() time.Time
	// History is how many events of one kind are kept for watches to start
	// from, 10,000 unless set. A watch that falls behind it gets 410 Gone.
	History int
}

// Server is the API server. Its methods may be called at any time, but not
// from its own hooks.
type Server struct {
	now     func() time.Time
	history int
	closed  chan struct{}

	// mu guards all that follows. It is held for the time of one effect and
	// never while anything waits.
	mu      sync.Mutex
	random  *rand.Rand
	version uint64
	epoch   int
	ended   bool
	tables  map[schema.GroupVersionResource]*table
	order   []*table
	writes  []Write
	uids    map[string]int
	changed chan struct{}
	faults  faults
}

// New returns a running server without objects.
func New(o Options) *Server {
	if len(o.Resources) == 0 {
		o.Resources = slices.Concat(Core, Machine)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.History == 0 {
		o.History = 10_000
	}
	s := &Server{
		now:     o.Now,
		history: o.History,
		closed:  make(chan struct{}),
		random:  rand.New(rand.NewPCG(o.Seed, 0)),
		tables:  map[schema.GroupVersionResource]*table{},
		uids:    map[string]int{},
		changed: make(chan struct{}),
		faults:  newFaults(),
	}
	for _, r := range o.Resources {
		t := newTable(r)
		s.tables[t.gvr] = t
		s.order = append(s.order, t)
	}
	return s
}

// Config is the configuration of an anonymous client.
func (s *Server) Config() *rest.Config { return s.ConfigFor("") }

// ConfigFor is the configuration of a client with that identity. Writes are
// logged with it, and faults can be limited to it.
func (s *Server) ConfigFor(user string) *rest.Config { return s.Client(user).Config() }

// Close ends every watch and refuses every request from now on.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	close(s.closed)
	s.wakeAll()
}

// Version is the resourceVersion of the latest effective write.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.FormatUint(s.version, 10)
}

// Objects are the stored objects of one kind, by namespace and name.
func (s *Server) Objects(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[gvr]
	if t == nil {
		return nil
	}
	var found []*unstructured.Unstructured
	for _, v := range t.sorted("") {
		found = append(found, v.copy())
	}
	return found
}

// Get is one stored object, nil where there is none.
func (s *Server) Get(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[gvr]
	if t == nil || t.objects[key{namespace, name}] == nil {
		return nil
	}
	return t.objects[key{namespace, name}].copy()
}

// Compact forgets all history: watches end with 410 Gone, and clients must
// list again.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	for _, t := range s.order {
		t.base += len(t.log)
		t.log = nil
		t.forgotten = s.version
	}
	s.wakeAll()
}

// wakeAll makes every watch look at the state again. The lock is held.
func (s *Server) wakeAll() {
	for _, t := range s.order {
		t.wake()
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (v *version) copy() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(v.object)}
}

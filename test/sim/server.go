// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Options configure a Server.
type Options struct {
	// Seed decides UIDs, generated names and which writes fail.
	Seed uint64
	// Resources are the kinds served; none means Core and Machine.
	Resources []Resource
	// Now is the server's clock, time.Now unless set.
	Now func() time.Time
	// History is how many events of one kind are kept for watches to start from, 10,000 unless set.
	// A watch that falls behind it gets 410 Gone.
	History int
	// First is the resourceVersion of the empty server, 1 unless set: at 0, a client would ask for
	// any version. If several servers count from numbers far apart, code that mixes them up becomes
	// visible.
	First uint64
	// ManagedFields reports whether managed fields are kept from creation on, as on a real server.
	// Otherwise, they are kept from the first apply on, which names earlier fields
	// before-first-apply; that makes storms without an apply cheaper.
	ManagedFields bool
	// Name is the server's name in Write.Server.
	Name string
	// Journal gets the writes of several servers in one order, if set.
	Journal *Journal
	// Endless is called with a description if writes go on and on while no time passes. Unless it
	// is set, that ends the process, because nothing in virtual time can. If it returns, the write
	// has no effect. It must not call the Server.
	Endless func(what string)
}

// Server is the API server. Its methods may be called at any time, but not from its own hooks.
type Server struct {
	seed    uint64
	clock   func() time.Time
	history int
	closed  chan struct{}
	name    string
	journal *Journal
	managed bool
	endless func(what string)

	// mu guards all fields below. It is held for one effect and never while anything waits.
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
	altered chan struct{} // closed with the next change of faults
	faults  faults
	// restores counts them: a watch ends with a restore.
	restores int
	struck   map[string]int
	// checks are called before an object is stored.
	checks []func(Admission) error
	// skew is how far the server's clock is ahead.
	skew     time.Duration
	livelock livelock
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
	if o.Endless == nil {
		o.Endless = EndProcess
	}
	s := &Server{
		seed:    o.Seed,
		clock:   o.Now,
		history: o.History,
		closed:  make(chan struct{}),
		random:  rand.New(rand.NewPCG(o.Seed, 0)),
		tables:  map[schema.GroupVersionResource]*table{},
		uids:    map[string]int{},
		changed: make(chan struct{}),
		altered: make(chan struct{}),
		faults:  newFaults(o.Seed),
		struck:  map[string]int{},
		version: max(1, o.First),
		name:    o.Name,
		journal: o.Journal,
		managed: o.ManagedFields,
		endless: o.Endless,
	}
	for _, r := range o.Resources {
		t := newTable(r)
		t.forgotten = s.version
		s.tables[t.gvr] = t
		s.order = append(s.order, t)
	}
	return s
}

// Config returns the configuration of an anonymous client.
func (s *Server) Config() *rest.Config { return s.ConfigFor("") }

// ConfigFor returns the configuration of a client with this identity. Writes are logged with it,
// and faults can be limited to it.
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

// Objects returns the stored objects of one kind, by namespace and name.
func (s *Server) Objects(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[gvr]
	if t == nil {
		return nil
	}
	var found []*unstructured.Unstructured
	for _, v := range t.sorted("") {
		found = append(found, v.unstructured())
	}
	return found
}

// Get returns one stored object, nil if there is none.
func (s *Server) Get(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[gvr]
	if t == nil || t.objects[key{namespace, name}] == nil {
		return nil
	}
	return t.objects[key{namespace, name}].unstructured()
}

// Stores reports whether the server serves a kind.
func (s *Server) Stores(gvr schema.GroupVersionResource) bool { return s.tables[gvr] != nil }

// Serves reports whether there is anything at a path.
func (s *Server) Serves(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if gvr, _, rest := located(parts); rest != nil {
		return s.Stores(gvr)
	}
	if len(parts) < 2 || parts[0] != "api" && parts[0] != "apis" {
		return true
	}
	return slices.ContainsFunc(s.order, func(t *table) bool {
		gv := t.gvr.GroupVersion()
		return slices.Equal(parts, []string{"api", gv.Version}) && gv.Group == "" ||
			parts[0] == "apis" && parts[1] == gv.Group && (len(parts) == 2 || parts[2] == gv.Version)
	})
}

// Compact forgets all history: watches end with 410 Gone, and clients must list again.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	s.struck["compaction"]++
	for _, t := range s.order {
		t.base += len(t.log)
		t.log = nil
		t.forgotten = s.version
	}
	s.wakeAll()
}

// serverTime returns what the server's clock shows. The caller holds the lock.
func (s *Server) serverTime() time.Time { return s.clock().Add(s.skew) }

// wakeAll makes every watch check the state again. The caller holds the lock.
func (s *Server) wakeAll() {
	for _, t := range s.order {
		t.wakeWatches()
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (v *version) unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(v.object)}
}

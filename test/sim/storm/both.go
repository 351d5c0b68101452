// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim"
)

// servers returns the servers of the world, each once.
func (w *World) servers() []*sim.Server {
	if w.Control == w.Target {
		return []*sim.Server{w.Control}
	}
	return []*sim.Server{w.Control, w.Target}
}

func (w *World) eachServer(do func(*sim.Server)) {
	for _, s := range w.servers() {
		do(s)
	}
}

func (w *World) connect(user string) *connection {
	return &connection{control: w.Control.Client(user), target: w.Target.Client(user), servers: [2]*sim.Server{w.Control, w.Target}}
}

// Config returns the configuration of an anonymous client of both clusters.
func (w *World) Config() *rest.Config { return w.ConfigFor("") }

// ConfigFor returns the configuration of a client of both clusters with this identity.
func (w *World) ConfigFor(user string) *rest.Config { return w.connect(user).Config() }

// Version changes with each effective write.
func (w *World) Version() string {
	var all []string
	w.eachServer(func(s *sim.Server) { all = append(all, s.Version()) })
	return strings.Join(all, "/")
}

// Writes returns all accepted writes so far, in the order in which they took effect.
func (w *World) Writes() []sim.Write { return w.journal.Writes() }

// storing returns the server that stores a kind.
func (w *World) storing(gvr schema.GroupVersionResource) *sim.Server {
	if !w.Control.Stores(gvr) {
		return w.Target
	}
	return w.Control
}

// Objects returns the stored objects of one kind, by namespace and name.
func (w *World) Objects(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	return w.storing(gvr).Objects(gvr)
}

// Get returns one stored object, nil if there is none.
func (w *World) Get(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	return w.storing(gvr).Get(gvr, namespace, name)
}

// OnWrite adds a hook that is called before each write.
func (w *World) OnWrite(hook func(sim.Write) error) {
	w.eachServer(func(s *sim.Server) { s.OnWrite(w.serialized(hook)) })
}

// AfterWrite adds a hook that is called after each accepted write.
func (w *World) AfterWrite(hook func(sim.Write) error) {
	w.eachServer(func(s *sim.Server) { s.AfterWrite(w.serialized(hook)) })
}

func (w *World) serialized(hook func(sim.Write) error) func(sim.Write) error {
	return func(write sim.Write) error {
		w.hooks.Lock()
		defer w.hooks.Unlock()
		return hook(write)
	}
}

// Lag makes watches late, as Server.Lag does.
func (w *World) Lag(resource string, lag func() time.Duration, users ...string) {
	drawn := lag
	if lag != nil {
		drawn = func() time.Duration {
			w.draws.Lock()
			defer w.draws.Unlock()
			return lag()
		}
	}
	w.eachServer(func(s *sim.Server) { s.Lag(resource, drawn, users...) })
}

// Hold makes watches deliver nothing until Release.
func (w *World) Hold(resource string, users ...string) {
	w.eachServer(func(s *sim.Server) { s.Hold(resource, users...) })
}

// Release ends a Hold that was called with the same arguments.
func (w *World) Release(resource string, users ...string) {
	w.eachServer(func(s *sim.Server) { s.Release(resource, users...) })
}

// Latency makes every request wait for this time before it takes effect, and again before it is
// answered.
func (w *World) Latency(d time.Duration) { w.eachServer(func(s *sim.Server) { s.Latency(d) }) }

// LatencyOf makes requests wait before they take effect and before they are answered.
func (w *World) LatencyOf(slow func(sim.Request) (before, after time.Duration)) {
	drawn := slow
	if slow != nil {
		drawn = func(r sim.Request) (before, after time.Duration) {
			w.draws.Lock()
			defer w.draws.Unlock()
			return slow(r)
		}
	}
	w.eachServer(func(s *sim.Server) { s.LatencyOf(drawn) })
}

// FailWrites makes writes fail with this probability.
func (w *World) FailWrites(chance float64, moment sim.Moment, users ...string) {
	w.eachServer(func(s *sim.Server) { s.FailWrites(chance, moment, users...) })
}

// Trouble makes requests get answers that do not come from the server.
func (w *World) Trouble(resource string, t sim.Trouble, users ...string) {
	w.eachServer(func(s *sim.Server) { s.Trouble(resource, t, users...) })
}

// Down makes both servers unreachable, or reachable again.
func (w *World) Down(down bool, users ...string) {
	w.eachServer(func(s *sim.Server) { s.Down(down, users...) })
}

// Silence makes both servers silent, or ends that.
func (w *World) Silence(silent bool, users ...string) {
	w.eachServer(func(s *sim.Server) { s.Silence(silent, users...) })
}

// WatchLists sets whether a watch may begin with everything that is stored, as Server.WatchLists
// does.
func (w *World) WatchLists(allowed bool, users ...string) {
	w.eachServer(func(s *sim.Server) { s.WatchLists(allowed, users...) })
}

// LostAnswers is how many writes took effect whose answers did not arrive.
func (w *World) LostAnswers() int {
	lost := 0
	w.eachServer(func(s *sim.Server) {
		for kind, n := range s.Struck() {
			if strings.HasSuffix(kind, "after write") {
				lost += n
			}
		}
	})
	return lost
}

// Compact makes both servers forget all history.
func (w *World) Compact() { w.eachServer(func(s *sim.Server) { s.Compact() }) }

// ForgetWrites drops the record of writes so far, for stories in which memory is measured.
func (w *World) ForgetWrites() {
	w.eachServer(func(s *sim.Server) { s.ForgetWrites() })
	w.journal.Forget()
}

// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim/mcm"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// Fault is a mistake of one line that an implementation could make.
type Fault struct {
	Name string
	// Story is the name of a story that shows it.
	Story string
	plant func(*write)
}

// Faulty is stock with a fault, which is planted between its client and the server.
func Faulty(f Fault) Implementation {
	return Implementation{Name: "stock with a fault: " + f.Name, Restarts: true, Program: func(ctx context.Context, config *rest.Config) error {
		return mcm.RunControllers(ctx, f.between(storm.Control(config)), f.between(storm.Target(config)))
	}}
}

func (f Fault) between(config *rest.Config) *rest.Config {
	config.Transport = &saboteur{inner: config.Transport, fault: f}
	return config
}

// saboteur is a client's transport that changes writes.
type saboteur struct {
	inner http.RoundTripper
	fault Fault
	// once means that a fault that strikes once has struck.
	once bool
	// since is when a fault that ends by itself began.
	since time.Time
}

// write is a write that a fault can change.
type write struct {
	s       *saboteur
	request *http.Request
	// Verb, Resource, Name and Subresource are those of the request.
	Verb, Resource, Name, Subresource string
	// Body is nil for a deletion.
	Body map[string]any
	// Lost means that it has no effect, and the answer is what is there.
	Lost bool
}

// RoundTrip changes a write as the fault says.
func (s *saboteur) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return s.inner.RoundTrip(r)
	}
	w, err := s.read(r)
	if err != nil {
		return nil, err
	}
	s.fault.plant(w)
	if w.Lost {
		return s.get(r, strings.TrimSuffix(r.URL.Path, "/"+w.Subresource))
	}
	r = r.Clone(r.Context())
	if w.Body != nil {
		raw, err := json.Marshal(w.Body)
		if err != nil {
			return nil, err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	}
	if w.Name != "" && w.Subresource == "" {
		r.URL.Path = r.URL.Path[:strings.LastIndex(r.URL.Path, "/")+1] + w.Name
	}
	return s.inner.RoundTrip(r)
}

// read reads a request.
func (s *saboteur) read(r *http.Request) (*write, error) {
	w := &write{s: s, request: r, Verb: r.Method}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	for i, part := range parts {
		if part == "nodes" || strings.HasPrefix(part, "machine") && i > 2 && w.Resource == "" {
			w.Resource, w.Name = part, at(parts, i+1)
			w.Subresource = at(parts, i+2)
			break
		}
	}
	if r.Body == nil {
		return w, nil
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	if r.Method != http.MethodDelete {
		_ = json.Unmarshal(raw, &w.Body) // what is no object stays as it is
	}
	return w, nil
}

func at(parts []string, i int) string {
	if i < len(parts) {
		return parts[i]
	}
	return ""
}

func (s *saboteur) get(r *http.Request, path string) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Method, r.URL.Path, r.Body, r.ContentLength = http.MethodGet, path, nil, 0
	return s.inner.RoundTrip(r)
}

// is reports whether the write is one of a resource, as in "PUT machinesets status".
func (w *write) is(what string) bool {
	return strings.TrimSpace(w.Verb+" "+w.Resource+" "+w.Subresource) == what
}

// object returns a part of the body that is an object.
func (w *write) object(path ...string) map[string]any {
	at := w.Body
	for _, field := range path {
		at, _ = at[field].(map[string]any)
	}
	if at == nil {
		return map[string]any{}
	}
	return at
}

// conditions calls back for each condition in the body.
func (w *write) conditions(do func(condition map[string]any)) {
	all, _ := w.object("status")["conditions"].([]any)
	for _, one := range all {
		if condition, ok := one.(map[string]any); ok {
			do(condition)
		}
	}
}

// siblings returns the machines with the controller of the one that is written.
func (w *write) siblings() (all []map[string]any) {
	path := w.request.URL.Path
	response, err := w.s.get(w.request, path[:strings.LastIndex(path, "/")])
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	var list struct{ Items []map[string]any }
	if json.NewDecoder(response.Body).Decode(&list) != nil {
		return nil
	}
	for _, m := range list.Items {
		if meta, _ := m["metadata"].(map[string]any); meta["deletionTimestamp"] == nil {
			all = append(all, m)
		}
	}
	return all
}

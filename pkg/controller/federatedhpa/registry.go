// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The registries, by the names that flags have for them.
const (
	SecretRegistry  = "secrets"
	ProfileRegistry = "clusterprofiles"
)

// Registry knows the clusters there are.
type Registry interface {
	// Members are all clusters by name.
	Members() []Registration
	// Notify has a function called after every change. It is called before Run.
	Notify(changed func())
	// Run watches until ctx ends, and returns when all that it started has ended.
	Run(ctx context.Context)
	// Filled are done when Members is complete.
	Filled() []cache.DoneChecker
}

// Registration is how one cluster can be reached.
type Registration struct {
	Name   string
	Labels map[string]string
	// Config reaches it; nil with a Fault.
	Config *rest.Config
	// Print changes whenever Config does.
	Print string
	// Fault is why it cannot be reached.
	Fault Hold
}

// source is what one registration is made from.
type source struct {
	// name of the cluster, and the version of all that is read.
	name, version string
	read          func() Registration
}

// readings keeps registrations as long as their sources stay as they are, since to read a kubeconfig takes time.
type readings struct {
	mu  sync.Mutex
	all map[string]reading
}

type reading struct {
	version string
	Registration
}

// registrations returns the registrations by name.
func (r *readings) registrations(sources []source) []Registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.all
	r.all = make(map[string]reading, len(sources))
	registrations := make([]Registration, 0, len(sources))
	for _, s := range sources {
		known, ok := before[s.name]
		if !ok || known.version != s.version {
			known = reading{s.version, s.read()}
		}
		r.all[s.name] = known
		registrations = append(registrations, known.Registration)
	}
	slices.SortFunc(registrations, func(a, b Registration) int { return cmp.Compare(a.Name, b.Name) })
	return registrations
}

// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

// The names of the registries, as flags use them.
const (
	SecretRegistry  = "secrets"
	ProfileRegistry = "clusterprofiles"
)

// Registry knows which clusters exist.
type Registry interface {
	// Members returns all clusters by name.
	Members() []Registration
	// Notify sets a function that is called after every change. Call it before Run.
	Notify(changed func())
	// Run watches until ctx ends, and returns after everything that it started has ended.
	Run(ctx context.Context)
	// Filled returns the checks that Members is complete.
	Filled() []cache.DoneChecker
}

// Registration describes how to reach one cluster.
type Registration struct {
	Name   string
	Labels map[string]string
	// Config connects to it; nil if there is a Fault.
	Config *rest.Config
	// Print changes whenever Config changes.
	Print string
	// Fault is why it cannot be reached.
	Fault plan.Hold
}

// source is what one registration is made from.
type source struct {
	// name is the name of the cluster, version identifies everything that is read for it.
	name, version string
	read          func() Registration
}

// readings caches registrations while their sources are unchanged, because parsing a kubeconfig
// takes time.
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

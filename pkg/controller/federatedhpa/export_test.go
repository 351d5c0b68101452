// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"net/http"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

// What tests of this package call by itself.
var (
	Kubeconfig      = func(text []byte, allowed ...string) (*rest.Config, error) { return kubeconfig(text, false, allowed) }
	Connected       = func(a Access, u *unstructured.Unstructured) Registration { return a.registration(u, nil) }
	RefuseAliases   = refuseAliases
	DoubtNames      = doubtNames
	Unclaimed       = unclaimed
	StripAutoscaler = stripAutoscaler
	SendOrder       = sendOrder
	ErrUnclaimed    = errUnclaimed
)

// ClientFor reaches a cluster.
func ClientFor(r Registration) (*http.Client, error) { return clientFor(r.Config) }

// Rendered is what an order makes.
func Rendered(o *v1alpha1.FederatedHorizontalPodAutoscaler, order plan.Order) (*unstructured.Unstructured, error) {
	b, err := blueprintOf(o)
	if err != nil {
		return nil, err
	}
	return b.autoscaler(o, order), nil
}

// Drifted reports whether an autoscaler is not what an object says.
func Drifted(o *v1alpha1.FederatedHorizontalPodAutoscaler, h *autoscalingv2.HorizontalPodAutoscaler) bool {
	b, err := blueprintOf(o)
	return err != nil || b.drifted(h)
}

// Punctual is a transport whose credentials a program makes.
func Punctual(next http.RoundTripper) http.RoundTripper { return newPunctual(next) }

// Kept is how much a controller knows of objects: outbox entries and kinds, in all clusters.
func Kept(c *Controller) int {
	n := 0
	for _, m := range c.fleet.allMembers() {
		m.outbox.mu.Lock()
		n += len(m.outbox.entries)
		m.outbox.mu.Unlock()
		m.kinds.mu.Lock()
		n += len(m.kinds.known)
		m.kinds.mu.Unlock()
	}
	return n
}

// Reads is how many reads of versions a controller remembers, of all clusters.
func Reads(c *Controller) (n int) {
	for _, m := range c.fleet.allMembers() {
		m.reads.mu.Lock()
		n += len(m.reads.all)
		m.reads.mu.Unlock()
	}
	return n
}

// Bounded is a transport that reads no more than there can sensibly be.
func Bounded(next http.RoundTripper) http.RoundTripper { return bounded{next} }

// Cached are options with another bound of what is cached of a cluster.
func Cached(o Options, bytes int) Options {
	o.maxCached = bytes
	return o
}

// Caches are the clusters that a controller has caches of.
func Caches(c *Controller) (names []string) {
	for _, m := range c.fleet.allMembers() {
		names = append(names, m.registration.Name)
	}
	return names
}

// Objects are those that a controller has cached.
func Objects(c *Controller) (all []*v1alpha1.FederatedHorizontalPodAutoscaler) {
	for _, item := range c.objects.List() {
		all = append(all, item.(*v1alpha1.FederatedHorizontalPodAutoscaler))
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/controller/balancer"
)

// Clients read both clusters, and cannot write.
type Clients struct {
	Control   dynamic.Interface
	Discovery discovery.DiscoveryInterface
	// Target is nil if there is no target cluster. Same reports whether it is the control cluster.
	Target dynamic.Interface
	Same   bool
	// target is its configuration.
	target *rest.Config
}

// NewClients returns clients that send only reads. Target is nil if there is no target cluster, and
// the same as control if that cluster also has the Nodes.
func NewClients(control, target *rest.Config) (Clients, error) {
	c := Clients{Same: target == control && target != nil}
	if target != nil {
		c.target = readOnly(target)
	}
	var err error
	if c.Control, err = dynamic.NewForConfig(readOnly(control)); err != nil {
		return Clients{}, fmt.Errorf("connect to the control cluster: %w", err)
	}
	if c.Discovery, err = discovery.NewDiscoveryClientForConfig(readOnly(control)); err != nil {
		return Clients{}, fmt.Errorf("connect to the control cluster: %w", err)
	}
	switch {
	case c.Same:
		c.Target = c.Control
	case target != nil:
		if c.Target, err = dynamic.NewForConfig(c.target); err != nil {
			return Clients{}, fmt.Errorf("connect to the target cluster: %w", err)
		}
	}
	return c, nil
}

// BalancerClients returns the clients that a Balancer's preview needs.
func (c Clients) BalancerClients() balancer.Clients {
	return balancer.Clients{Dynamic: c.Control, Discovery: c.Discovery}
}

// readOnly returns a configuration whose clients refuse to send anything except reads.
func readOnly(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1 // all kinds are read concurrently, and the server has limits of its own
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return reader{inner} })
	return config
}

// reader lets only reads pass.
type reader struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r reader) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return nil, fmt.Errorf("%s %s: a forecast writes nothing", request.Method, request.URL.Path)
	}
	return r.inner.RoundTrip(request)
}

// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim"
)

// ofTarget contains the kinds that only a target cluster stores: workload and what it runs on.
var ofTarget = []string{
	"nodes", "pods", "persistentvolumes", "persistentvolumeclaims", "poddisruptionbudgets", "volumeattachments", "storageclasses",
	"csidrivers", "deployments", "replicasets", "statefulsets", "daemonsets", "horizontalpodautoscalers",
	"replicationcontrollers", "jobs", "podtemplates", "podgroups", "resourcequotas", "capacitybuffers", "provisioningrequests", "rollouts",
	"resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates",
}

// ofBoth contains the kinds that every cluster stores.
var ofBoth = []string{"namespaces", "configmaps", "secrets", "serviceaccounts", "events", "leases"}

// splitKinds returns which kinds the two clusters serve.
func splitKinds(all []sim.Resource) (control, target []sim.Resource) {
	for _, r := range all {
		workload := slices.Contains(ofTarget, r.Name)
		if !workload {
			control = append(control, r)
		}
		if workload || slices.Contains(ofBoth, r.Name) {
			target = append(target, r)
		}
	}
	return control, target
}

// connection is one process's connection to both clusters. A request is sent to the cluster that
// serves its kind, to the control cluster if both do.
type connection struct {
	control, target *sim.Client
	servers         [2]*sim.Server

	mu sync.Mutex
	// others are the process's clients of additional servers.
	others     []*sim.Client
	still, cut bool
}

// RoundTrip serves a request on the caller's goroutine.
func (c *connection) RoundTrip(r *http.Request) (*http.Response, error) {
	if !c.servers[0].Serves(r.URL.Path) && c.servers[1].Serves(r.URL.Path) {
		return c.target.RoundTrip(r)
	}
	return c.control.RoundTrip(r)
}

// Cut ends all connections of the process for good.
func (c *connection) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	c.applyState(c.control, c.target)
	c.applyState(c.others...)
}

// freeze stops all connections of the process, or lets them continue.
func (c *connection) freeze(still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still = still
	c.applyState(c.control, c.target)
	c.applyState(c.others...)
}

// applyState sets clients to the state of the connection. The caller holds the lock.
func (c *connection) applyState(clients ...*sim.Client) {
	for _, one := range clients {
		if c.cut {
			one.Cut()
		}
		if c.still {
			one.Freeze()
		} else {
			one.Thaw()
		}
	}
}

// Attach makes a client of an additional server part of the process that a configuration was given
// to: it is cut and frozen together with the process.
func Attach(process *rest.Config, client *sim.Client) {
	c := process.Transport.(*connection) // every process gets one of these
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others = append(c.others, client)
	c.applyState(client)
}

// Config reaches both clusters. Control and Target each reach one of them.
func (c *connection) Config() *rest.Config {
	return &rest.Config{
		Host: "http://sim", Transport: c, QPS: -1, UserAgent: c.control.Config().UserAgent,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// Control returns the configuration of a client that reaches only the control cluster, from one of
// a World.
func Control(config *rest.Config) *rest.Config {
	return narrowed(config, func(c *connection) *sim.Client { return c.control })
}

// Target returns the configuration of a client that reaches only the target cluster, from one of a
// World. If a World has only one cluster, it is that one.
func Target(config *rest.Config) *rest.Config {
	return narrowed(config, func(c *connection) *sim.Client { return c.target })
}

func narrowed(config *rest.Config, one func(*connection) *sim.Client) *rest.Config {
	config = rest.CopyConfig(config)
	if c, ok := config.Transport.(*connection); ok {
		config.Transport = one(c)
	}
	return config
}

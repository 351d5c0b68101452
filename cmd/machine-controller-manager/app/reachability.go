// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/reachability"
)

// clusters report to all controllers of the process whether the API servers answer. target is nil
// without a target cluster.
type clusters struct {
	control, target *reachability.Cluster
}

// newClusters returns the clusters that the selected controllers depend on.
func (p *process) newClusters() (clusters, error) {
	ours, err := machines.Evenkeel(probing(p.control))
	if err != nil {
		return clusters{}, fmt.Errorf("make client that probes the control cluster: %w", err)
	}
	all := clusters{control: reachability.New("control", reachability.Listing(ours.MachineV1alpha1().MachineDeployments(p.options.Namespace).List), reachability.Options{})}
	if p.target == nil {
		p.registry.MustRegister(reachability.Metrics{all.control})
		return all, nil
	}
	core, err := connect.Core(probing(p.target))
	if err != nil {
		return clusters{}, fmt.Errorf("make client that probes the target cluster: %w", err)
	}
	all.target = reachability.New("target", reachability.Nodes(core), reachability.Options{})
	p.registry.MustRegister(reachability.Metrics{all.control, all.target})
	return all, nil
}

// probing returns a config for probes, whose rate limit no other request shares.
func probing(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.RateLimiter, config.QPS = nil, -1
	return config
}

func (c clusters) probes() (all []func(context.Context) error) {
	for _, cluster := range []*reachability.Cluster{c.control, c.target} {
		if cluster != nil {
			all = append(all, cluster.Run)
		}
	}
	return all
}

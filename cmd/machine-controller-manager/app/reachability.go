// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/reachability"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

// clusters report whether the API servers answer, to all controllers of the process. target is nil where nothing here depends on it.
type clusters struct {
	control, target *reachability.Cluster
}

// newClusters makes those that the controllers which were picked depend on.
func (p *process) newClusters() (clusters, error) {
	ours, err := evenkeel.NewForConfig(probing(p.control))
	if err != nil {
		return clusters{}, fmt.Errorf("make client that probes the control cluster: %w", err)
	}
	all := clusters{control: reachability.New("control", p.probe(ours), reachability.Options{})}
	if p.target == nil || !p.runs(dependsOnMachines) {
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

// probe reads from the control cluster what the controllers that were picked may read.
func (p *process) probe(ours evenkeel.Interface) reachability.Probe {
	switch {
	case p.runs(dependsOnMachines):
		return reachability.MachineDeployments(ours.MachineV1alpha1(), p.options.Namespace)
	case p.runs(func(c controller) bool { return c.name == balancerName }):
		return reachability.Balancers(ours.BalancerV1alpha1(), p.options.Balancer.Namespace)
	}
	return reachability.FederatedAutoscalers(ours.AutoscalingV1alpha1(), p.options.Federated.Namespace)
}

func (p *process) runs(which func(controller) bool) bool {
	return slices.ContainsFunc(p.controllers, which)
}

// dependsOnMachines reports whether a controller reads machines; the others need none of the machine API.
func dependsOnMachines(c controller) bool { return c.name != balancerName && c.name != federatedName }

// probing is a config for probes, which share their rate with no other request.
func probing(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.RateLimiter, config.QPS = nil, -1
	return config
}

// reportRestore says why the process ends, on its lease.
func (p *process) reportRestore(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "Ending, to start again: caches and watches show objects that no longer exist")
	lease := &corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: p.options.Namespace, Name: p.lease}
	p.recorder.Eventf(lease, corev1.EventTypeWarning, "StorageRestored", "%s ends, to start again: %v", name, err)
}

func (c clusters) runs() (all []func(context.Context) error) {
	for _, cluster := range []*reachability.Cluster{c.control, c.target} {
		if cluster != nil {
			all = append(all, cluster.Run)
		}
	}
	return all
}

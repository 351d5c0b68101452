// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/reachability"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

// clusters report to all controllers of the process whether the API servers answer. target is nil
// if nothing here depends on it.
type clusters struct {
	control, target *reachability.Cluster
}

// newClusters returns the clusters that the selected controllers depend on.
func (p *process) newClusters() (clusters, error) {
	ours, err := connect.Evenkeel(probing(p.control))
	if err != nil {
		return clusters{}, fmt.Errorf("make client that probes the control cluster: %w", err)
	}
	all := clusters{control: reachability.New("control", p.clusterProbe(ours), reachability.Options{})}
	if p.target == nil || !p.anyRuns(dependsOnMachines) {
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

// clusterProbe reads something from the control cluster that the selected controllers may read.
func (p *process) clusterProbe(ours evenkeel.Interface) reachability.Probe {
	switch {
	case p.anyRuns(dependsOnMachines):
		return reachability.MachineDeployments(ours.MachineV1alpha1(), p.options.Namespace)
	case p.anyRuns(func(c controller) bool { return c.name == balancerName }):
		return reachability.Balancers(ours.BalancerV1alpha1(), p.options.Balancer.Namespace)
	}
	return reachability.FederatedAutoscalers(ours.AutoscalingV1alpha1(), p.options.Federated.Namespace)
}

func (p *process) anyRuns(which func(controller) bool) bool {
	return slices.ContainsFunc(p.controllers, which)
}

// dependsOnMachines reports whether a controller reads machines. The others do not need the machine
// API.
func dependsOnMachines(c controller) bool { return c.name != balancerName && c.name != federatedName }

// probing returns a config for probes, whose rate limit no other request shares.
func probing(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.RateLimiter, config.QPS = nil, -1
	return config
}

// reportTimeout limits the last write of a process that ends by itself.
const reportTimeout = 2 * time.Second

// reportRestore records on the lease why the process ends. The recorder would write the event in
// the background, and the process would end first.
func (p *process) reportRestore(ctx context.Context, cause error) {
	logger := klog.FromContext(ctx)
	logger.Error(cause, "Ending, to start again: caches and watches show objects that no longer exist")
	client, err := p.pastGate(name, func(config *rest.Config) { config.Timeout = reportTimeout })
	if err != nil {
		logger.Error(err, "Event StorageRestored was not written")
		return
	}
	now := metav1.Now()
	_, err = client.CoreV1().Events(p.options.Namespace).Create(context.WithoutCancel(ctx), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: p.options.Namespace, GenerateName: p.lease + "-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: p.options.Namespace, Name: p.lease},
		Source:         corev1.EventSource{Component: name},
		Type:           corev1.EventTypeWarning, Reason: "StorageRestored", Message: fmt.Sprintf("%s ends, to start again: %v", name, cause),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		logger.Error(err, "Event StorageRestored was not written")
	}
}

func (c clusters) probes() (all []func(context.Context) error) {
	for _, cluster := range []*reachability.Cluster{c.control, c.target} {
		if cluster != nil {
			all = append(all, cluster.Run)
		}
	}
	return all
}

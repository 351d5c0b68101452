// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"sync"

	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// ControlCluster returns the probe of the control cluster.
func ControlCluster(ours versioned.Interface) *reachability.Cluster {
	return reachability.New("control", reachability.Listing(ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).List), reachability.Options{})
}

// TargetCluster returns the probe of the target cluster.
func TargetCluster(core kubernetes.Interface) *reachability.Cluster {
	return reachability.New("target", reachability.Nodes(core), reachability.Options{})
}

// Informers are those of a process.
type Informers interface {
	Start(context.Context)
	Shutdown()
}

// sharedFactory is a factory of client-go, or of our client.
type sharedFactory interface {
	StartWithContext(context.Context)
	Shutdown()
}

// InformersOf returns the Informers of a factory.
func InformersOf(f sharedFactory) Informers { return factory{f} }

type factory struct{ sharedFactory }

func (f factory) Start(ctx context.Context) { f.StartWithContext(ctx) }

// Process is what a daemon runs.
type Process struct {
	// Clusters are probed.
	Clusters []*reachability.Cluster
	// Informers are started, and have ended when the process ends.
	Informers []Informers
}

// Run runs a controller until ctx ends, or until the resourceVersions of a cluster go back: then the
// process must start afresh.
func (p Process) Run(ctx context.Context, run func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	for _, cluster := range p.Clusters {
		ended.Go(func() {
			defer cancel()
			_ = cluster.Run(ctx)
		})
	}
	for _, i := range p.Informers {
		i.Start(ctx)
		defer i.Shutdown()
	}
	run(ctx)
	cancel()
}

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
)

// caches contains the informers that all controllers of the process share.
// machine-controller-manager's controllers see machines through the lens, with informers of their
// own.
type caches struct {
	machines *stores.Informers
	target   *target.Informers // nil without a target cluster
	// needed is closed when more of the target cluster than its Nodes is needed; see reserves.go.
	needed chan struct{}
	once   sync.Once
}

func (p *process) newCaches() (*caches, error) {
	ours, err := machines.Evenkeel(p.control)
	if err != nil {
		return nil, fmt.Errorf("make machine client: %w", err)
	}
	all := &caches{machines: stores.New(ours, p.options.Namespace), needed: make(chan struct{})}
	if p.target == nil {
		return all, nil
	}
	core, err := connect.Core(p.target)
	if err != nil {
		return nil, fmt.Errorf("make target client: %w", err)
	}
	all.target = target.New(core, p.rights)
	return all, nil
}

// startInformers starts the informers that controllers asked for; of the target cluster only Nodes,
// until more is needed. They run until ctx ends.
func (c *caches) startInformers(ctx context.Context) {
	c.machines.Start(ctx)
	if c.target == nil {
		return
	}
	select {
	case <-c.needed:
		c.target.Start(ctx)
	default:
		c.target.StartNodes(ctx)
	}
}

// showingReserves requests the informers of objects that show whether there is a reserve.
func (c *caches) showingReserves() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{c.machines.Deployments(), c.machines.Machines(), c.target.Nodes()}
}

// startAll starts all informers of the target cluster that controllers request, from now on.
func (c *caches) startAll() { c.once.Do(func() { close(c.needed) }) }

// shutdown waits until all informers have ended.
func (c *caches) shutdown() {
	c.machines.Shutdown()
	if c.target != nil {
		c.target.Shutdown()
	}
}

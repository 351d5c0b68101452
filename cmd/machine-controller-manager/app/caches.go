// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
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

	mu sync.Mutex
	// expected are controllers that are about to add handlers. complete is closed, and replaced,
	// when all of them have.
	expected map[string]bool
	complete chan struct{}
	// later is expected once more of the target cluster is needed.
	later []string
}

func (p *process) newCaches() (*caches, error) {
	ours, err := evenkeel.NewForConfig(p.control)
	if err != nil {
		return nil, fmt.Errorf("make machine client: %w", err)
	}
	all := &caches{
		machines: stores.New(ours, p.options.Namespace), needed: make(chan struct{}),
		expected: map[string]bool{}, complete: make(chan struct{}),
	}
	for _, name := range []string{mcmName, balanceName} {
		if p.picked(name) {
			all.expect(name)
		}
	}
	if p.picked(releaseName) && p.options.Release.Enabled {
		all.later = []string{releaseName}
	}
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

// attachPatience is how long informers wait for controllers that have yet to add their handlers.
const attachPatience = 2 * time.Second

// expect has informers wait for a controller that is about to add its handlers, so that these share
// listeners with those of others; see [stores.Sharing].
func (c *caches) expect(controllers ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range controllers {
		c.expected[name] = true
	}
}

// attached records that a controller has added its handlers.
func (c *caches) attached(controller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.expected, controller)
	if len(c.expected) == 0 {
		close(c.complete)
		c.complete = make(chan struct{})
	}
}

// awaitExpected waits until all controllers that are expected have added their handlers.
func (c *caches) awaitExpected(ctx context.Context) {
	c.mu.Lock()
	missing, complete := len(c.expected), c.complete
	c.mu.Unlock()
	if missing == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-complete:
	case <-time.After(attachPatience):
	}
}

// startInformers starts the informers that controllers asked for; of the target cluster only Nodes,
// until more is needed. They run until ctx ends.
func (c *caches) startInformers(ctx context.Context) {
	c.awaitExpected(ctx)
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

// startAll starts all informers of the target cluster that controllers request, from now on.
func (c *caches) startAll() {
	c.once.Do(func() {
		c.expect(c.later...)
		close(c.needed)
	})
}

// shutdown waits until all informers have ended.
func (c *caches) shutdown() {
	c.machines.Shutdown()
	if c.target != nil {
		c.target.Shutdown()
	}
}

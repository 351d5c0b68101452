// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"context"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
)

// Written is how many writes the controller remembers. Unlike Held, it can be read at any time.
func (c *Controller) Written() int { return c.written.Len() }

// Held is how many objects the controller remembers.
func (c *Controller) Held() int {
	synctest.Wait() // while the controller does nothing
	return c.written.Len() + len(c.memory.Failing) + len(c.memory.Paused) + len(c.templates.held) + len(c.templates.last)
}

// Moved is how many replicas have moved, by the metrics.
func (c *Controller) Moved() float64 {
	m := &dto.Metric{}
	if err := c.metrics.moves.Write(m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue()
}

// Concerned reports whether events of machines cause a sync.
func (p *Preview) Concerned() bool { return p.c.concerned.Load() }

// DecideFor makes a decision that takes this long.
func (p *Preview) DecideFor(d time.Duration) error {
	p.c.clock = slowClock{p.c.clock, d}
	_, err := p.c.sync(context.Background(), "")
	return err
}

// slowClock is a clock on which everything takes the same time.
type slowClock struct {
	clock.WithTicker
	takes time.Duration
}

func (c slowClock) Since(time.Time) time.Duration { return c.takes }

// DelaysAfter returns when the controller syncs because of changes of a MachineDeployment, or of Nodes
// while a pool has an excess, that come at once, each from one object to another.
func (p *Preview) DelaysAfter(changes ...[2]any) (delays []time.Duration) {
	p.c.concerned.Store(true)
	begun := time.Now()
	p.c.loop = loop.New("test", func(context.Context, string) (time.Duration, error) {
		delays = append(delays, time.Since(begun))
		return 0, nil
	}, loop.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, change := range changes {
		if _, is := cmp.Or(change[0], change[1]).(*corev1.Node); is {
			p.c.nodeChanged(change[0], change[1])
			continue
		}
		p.c.deploymentChanged(change[0], change[1])
	}
	p.c.loop.Run(ctx)
	return delays
}

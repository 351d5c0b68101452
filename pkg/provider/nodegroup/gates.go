// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// gates let one call at a time write to each group. The patches of concurrent calls, such as deletions, would only conflict. A gate
// exists while a call uses it.
type gates struct {
	mu   sync.Mutex
	open map[string]*gate
}

type gate struct {
	turn chan struct{}
	// calls counts the waiting ones and the one that writes.
	calls int
}

// enter waits for its turn.
func (g *gates) enter(ctx context.Context, id string) (leave func(), err error) {
	at := g.come(id)
	select {
	case at.turn <- struct{}{}:
		return func() { <-at.turn; g.depart(id) }, nil
	case <-ctx.Done():
		g.depart(id)
		return nil, status.Errorf(codes.Unavailable, "change %s: too many other changes are in progress", id)
	}
}

func (g *gates) come(id string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = map[string]*gate{}
	}
	if g.open[id] == nil {
		g.open[id] = &gate{turn: make(chan struct{}, 1)}
	}
	g.open[id].calls++
	return g.open[id]
}

func (g *gates) depart(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[id].calls--; g.open[id].calls == 0 {
		delete(g.open, id)
	}
}

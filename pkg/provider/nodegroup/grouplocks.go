// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// groupLocks let one call at a time write to each group. The patches of concurrent calls, such as
// deletions, would only conflict. A lock exists while a call uses it.
type groupLocks struct {
	mu      sync.Mutex
	byGroup map[string]*groupLock
}

type groupLock struct {
	held chan struct{}
	// calls counts the waiting ones and the one that writes.
	calls int
}

// acquire waits until no other call writes to the group.
func (g *groupLocks) acquire(ctx context.Context, id string) (leave func(), err error) {
	at := g.reference(id)
	select {
	case at.held <- struct{}{}:
		return func() { <-at.held; g.dereference(id) }, nil
	case <-ctx.Done():
		g.dereference(id)
		return nil, status.Errorf(codes.Unavailable, "change %s: too many other changes are in progress", id)
	}
}

// reference counts one more call that uses the lock of a group, and returns the lock.
func (g *groupLocks) reference(id string) *groupLock {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byGroup == nil {
		g.byGroup = map[string]*groupLock{}
	}
	if g.byGroup[id] == nil {
		g.byGroup[id] = &groupLock{held: make(chan struct{}, 1)}
	}
	g.byGroup[id].calls++
	return g.byGroup[id]
}

func (g *groupLocks) dereference(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byGroup[id].calls--; g.byGroup[id].calls == 0 {
		delete(g.byGroup, id)
	}
}

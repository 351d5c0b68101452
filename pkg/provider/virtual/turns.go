// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"sync"
)

// turns allows one operation at a time to a machine, while others go on. Waiting ends with a
// context, which it does not for a mutex.
type turns struct {
	mu sync.Mutex
	of map[string]*place
}

type place struct {
	taken chan struct{}
	users int // who has it or waits for it; a place nobody uses is forgotten
}

// enter waits for the lock of that name. The caller releases it with leave.
func (t *turns) enter(ctx context.Context, name string) (leave func(), err error) {
	p := t.join(name)
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken; t.part(name, p) }, nil
	case <-ctx.Done():
		t.part(name, p)
		return nil, ctx.Err()
	}
}

func (t *turns) join(name string) *place {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]*place{}
	}
	if t.of[name] == nil {
		t.of[name] = &place{taken: make(chan struct{}, 1)}
	}
	t.of[name].users++
	return t.of[name]
}

func (t *turns) part(name string, p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(t.of, name)
	}
}

// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"sync"
)

// keyLocks allows one operation at a time to a machine, while others go on. Waiting ends with a
// context, which it does not for a mutex.
type keyLocks struct {
	mu sync.Mutex
	of map[string]*place
}

type place struct {
	taken chan struct{}
	users int // who has it or waits for it; a place nobody uses is forgotten
}

// acquire waits for the lock of that name. The caller calls leave when it is done.
func (t *keyLocks) acquire(ctx context.Context, name string) (leave func(), err error) {
	p := t.reference(name)
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken; t.dereference(name, p) }, nil
	case <-ctx.Done():
		t.dereference(name, p)
		return nil, ctx.Err()
	}
}

func (t *keyLocks) reference(name string) *place {
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

func (t *keyLocks) dereference(name string, p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(t.of, name)
	}
}

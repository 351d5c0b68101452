// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"sync"
)

// keyLocks allows one operation at a time for each machine, without delaying other machines. Unlike
// for a mutex, waiting ends with a context.
type keyLocks struct {
	mu sync.Mutex
	of map[string]*place
}

type place struct {
	taken chan struct{}
	users int // users and waiters; an unused lock is removed
}

// acquire waits for the lock of a name. The caller calls leave when it is done.
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

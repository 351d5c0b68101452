// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// board is where orders to one cluster are posted, and what has become of the last ones: all that the hub knows of it
// beyond its caches and the ledger. It may be lost at any time.
type board struct {
	mu    sync.Mutex
	notes map[string]*note
}

// note is about one object in one cluster, by the key of the federated object.
type note struct {
	order   *Order
	sent    time.Time
	wanted  *unstructured.Unstructured
	placing *placement
	// answered is the cluster's latest answer about the autoscaler, until its cache shows as much. Removed is the uid of one
	// that it has removed, as it was at removedAt, until its cache shows that.
	answered           *unstructured.Unstructured
	removed, removedAt string
	// verifying is the version that the cluster is asked for, and verified one that it does not have any more.
	verifying, verified string
	// rejected is the epoch of the last order that certainly had no effect.
	rejected int64
	// fault is why the cluster does not take what it is sent, for the generation of the object that is noted with it.
	fault      Hold
	generation int64
	due        time.Time
	pause      time.Duration
	// placed is likewise about the workload.
	placed Hold
	retry  time.Time
}

type placement struct {
	Placing
	name   string
	wanted *unstructured.Unstructured
	kind   kind
}

func (b *board) note(key string) *note {
	n, ok := b.notes[key]
	if !ok {
		n = &note{}
		b.notes[key] = n
	}
	return n
}

// read returns a copy of a note.
func (b *board) read(key string) note {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, ok := b.notes[key]; ok {
		return *n
	}
	return note{}
}

// change alters a note.
func (b *board) change(key string, alter func(*note)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	alter(b.note(key))
}

// ended notes that no order is under way any more, and what is known since, unless the object is gone.
func (b *board) ended(key string, alter func(*note)) {
	b.amend(key, func(n *note) {
		n.order, n.wanted = nil, nil
		if alter != nil {
			alter(n)
		}
	})
}

// amend alters a note that there is.
func (b *board) amend(key string, alter func(*note)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, ok := b.notes[key]; ok {
		alter(n)
	}
}

// forget what is known about an object that is gone.
func (b *board) forget(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.notes, key)
}

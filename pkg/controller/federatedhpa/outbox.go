// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// outbox holds the orders to one cluster, and the outcome of the last ones: all that the hub knows of
// the cluster beyond its caches and the ledger. It may be lost at any time.
type outbox struct {
	mu      sync.Mutex
	entries map[string]*outboxEntry
}

// outboxEntry is the state of one object in one cluster, by the key of the federated object.
type outboxEntry struct {
	order   *plan.Order
	sent    time.Time
	wanted  *unstructured.Unstructured
	placing *placement
	// answered is the cluster's latest answer about the autoscaler, until the cache shows it.
	// removed is the UID of an autoscaler that the cluster has deleted, at version removedAt, until
	// the cache shows the deletion. One with finalizers is not gone before that.
	answered           *unstructured.Unstructured
	removed, removedAt string
	// made identifies what the cluster has stored for the last order that it took.
	made string
	// verifying is the version that the cluster is asked for. verified is a version that it no
	// longer has.
	verifying, verified string
	// rejected is the epoch of the last order that certainly had no effect.
	rejected int64
	// fault is why the cluster rejects the order, for the edition of the object recorded with it.
	fault   plan.Hold
	edition string
	due     time.Time
	pause   time.Duration
	// placed is the same for the workload, for the edition placedFor.
	placed    plan.Hold
	placedFor string
	retry     time.Time
	// arrives is until when a creation of the workload that was sent may show, and created the version in
	// which the cluster has stored it, until the cache shows that.
	arrives time.Time
	created string
}

type placement struct {
	plan.WorkloadWrite
	name   string
	wanted *unstructured.Unstructured
	kind   kind
}

// isArriving reports whether a creation of the workload that was sent may take effect, or whether a cache that
// has shown everything up to a version may not show it yet.
func (n outboxEntry) isArriving(now time.Time, shown string) bool {
	return n.placing != nil && n.placing.Operation == plan.Create || now.Before(n.arrives) || n.created != "" && !written.Reached(shown, n.created)
}

func (o *outbox) entryFor(key string) *outboxEntry {
	n, ok := o.entries[key]
	if !ok {
		n = &outboxEntry{}
		o.entries[key] = n
	}
	return n
}

// readEntry returns a copy of an entry.
func (o *outbox) readEntry(key string) outboxEntry {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n, ok := o.entries[key]; ok {
		return *n
	}
	return outboxEntry{}
}

// change changes an entry, and makes it if it does not exist.
func (o *outbox) change(key string, alter func(*outboxEntry)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	alter(o.entryFor(key))
}

// recordOutcome records that no order is being sent any more, and what is known now, unless the
// object is gone.
func (o *outbox) recordOutcome(key string, alter func(*outboxEntry)) {
	o.updateEntry(key, func(n *outboxEntry) {
		n.order, n.wanted = nil, nil
		if alter != nil {
			alter(n)
		}
	})
}

// updateEntry changes an entry if it exists.
func (o *outbox) updateEntry(key string, alter func(*outboxEntry)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n, ok := o.entries[key]; ok {
		alter(n)
	}
}

// forget removes the entry of an object that is gone.
func (o *outbox) forget(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.entries, key)
}

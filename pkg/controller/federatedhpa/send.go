// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

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
	// looking is the workload that the cluster is asked for, and looked what it had when it was last asked.
	looking *workload
	looked  look
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

// How long to wait before a rejected order is sent again. The wait doubles each time.
const (
	firstRefusal = time.Minute
	lastRefusal  = time.Hour
	// lastMissing is the last wait if the cluster lacks something that its operators can add without a
	// change of the object: a namespace, a right or a quota.
	lastMissing = 5 * time.Minute
	// firstFailure is the first wait after a fault of the cluster itself. Only waits from telling
	// on are reported.
	firstFailure = time.Second
	telling      = 8 * time.Second
)

// carryOut sends the order in the outbox and records the outcome.
func (m *member) carryOut(ctx context.Context, key string) {
	n := m.outbox.readEntry(key)
	if n.order == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.RequestTimeout)
	defer cancel()
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	client := m.dynamic.Resource(hpaResource).Namespace(namespace)
	begun := m.o.Clock.Now()
	answer, err := sendOrder(ctx, client, *n.order, name, n.wanted)
	m.o.metrics.countWrite(m.registration.Name, string(n.order.Operation), err, m.o.Clock.Since(begun))
	m.recordResult(ctx, client, key, *n.order, answer, err)
	m.changed(key)
}

var errUnclaimed = errors.New("not sent: a preceding write must be confirmed first")

// sendOrder sends one order to a cluster.
func sendOrder(ctx context.Context, client dynamic.ResourceInterface, o plan.Order, name string, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch o.Operation {
	case plan.Create:
		made, err := client.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
		if err != nil {
			return nil, err
		}
		if claimed, err := claimFields(ctx, client, made); err == nil { // otherwise, before the first change
			return claimed, nil
		}
		return made, nil
	case plan.Change:
		if o.Unclaimed {
			return prepare(ctx, client, o, name)
		}
		return client.Apply(ctx, name, wanted, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	default:
		return nil, client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID(o.UID)), ResourceVersion: &o.Version}})
	}
}

// prepare claims the fields of an autoscaler, so that the next order can be applied to the result.
func prepare(ctx context.Context, client dynamic.ResourceInterface, o plan.Order, name string) (*unstructured.Unstructured, error) {
	is, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if string(is.GetUID()) == o.UID {
		if is, err = claimFields(ctx, client, is); err != nil {
			return nil, err
		}
	}
	return is, errUnclaimed
}

// unclaimed reports whether these fields were created by us and are not applied yet.
func unclaimed(f metav1.ManagedFieldsEntry) bool {
	return f.Manager == fieldManager && f.Operation == metav1.ManagedFieldsOperationUpdate && f.Subresource == "" && f.FieldsV1 != nil
}

// claimFields makes this hub's field manager own by server-side apply what it created, because
// fields that a later apply leaves out would stay otherwise. It leaves out the replicas of a
// workload, which belong to its autoscaler. It returns the object itself if there is nothing to do.
func claimFields(ctx context.Context, client dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	fields, changed := u.GetManagedFields(), false
	for i := range fields {
		f := &fields[i]
		if !unclaimed(*f) {
			continue
		}
		set := map[string]any{}
		if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &set); err != nil {
			return nil, fmt.Errorf("read managed fields: %w", err)
		}
		unstructured.RemoveNestedField(set, "f:spec", "f:replicas")
		raw, err := json.Marshal(set)
		if err != nil {
			return nil, err
		}
		f.Operation, changed = metav1.ManagedFieldsOperationApply, true
		f.FieldsV1.SetRawBytes(raw)
	}
	if !changed {
		return u, nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": fields},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": u.GetResourceVersion()},
	})
	if err != nil {
		return nil, err
	}
	return client.Patch(ctx, u.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
}

// recordResult records the result of an order. It records nothing if the result is unknown; the
// ledger then continues to count the order.
func (m *member) recordResult(ctx context.Context, client dynamic.ResourceInterface, key string, o plan.Order, answer *unstructured.Unstructured, err error) {
	log := klog.FromContext(ctx)
	var after func(*outboxEntry)
	switch result := written.Outcome(err); {
	case o.Operation == plan.Remove && (result == written.Done || apierrors.IsNotFound(err)):
		log.V(2).Info("Removed an autoscaler", "object", key)
		after = func(n *outboxEntry) { n.removed, n.removedAt, n.answered = o.UID, o.Version, nil }
	case result == written.Done:
		log.V(2).Info("Wrote an autoscaler", "object", key, "operation", o.Operation, "from", o.Was, "to", o.Bounds)
		after = func(n *outboxEntry) { n.accepted(o, answer, m.o.Clock.Now()) }
	case errors.Is(err, errUnclaimed):
		after = func(n *outboxEntry) { n.refuted(o, answer) }
	case result == written.Conflict, apierrors.IsNotFound(err) && o.Operation == plan.Change:
		log.V(4).Info("An autoscaler has changed meanwhile", "object", key, "because", err)
		after = m.reread(ctx, client, nameOf(key), o)
	case result == written.Refused:
		log.Error(err, "A cluster refuses an autoscaler", "object", key, "operation", o.Operation)
		after = func(n *outboxEntry) {
			n.rejected = o.Epoch
			n.backOff(err, firstRefusal, m.o.Clock.Now())
		}
	case answered(err):
		log.Error(err, "A cluster fails to take an autoscaler", "object", key, "operation", o.Operation)
		after = func(n *outboxEntry) { n.backOff(err, firstFailure, m.o.Clock.Now()) }
	default:
		log.Error(err, "A write to a cluster got no answer", "object", key, "operation", o.Operation)
		m.health.silent()
	}
	m.outbox.recordOutcome(key, after)
}

// reread looks up the object that an order was sent for. That the order had no effect counts only
// together with the object that is there now: an earlier order may have had an effect that the
// cache does not show yet. If the cluster contradicts its cache, it is read again.
func (m *member) reread(ctx context.Context, client dynamic.ResourceInterface, name string, o plan.Order) func(*outboxEntry) {
	shown := m.hpas.GetStore().LastStoreSyncResourceVersion() // first, so that the consistent read is newer
	list, err := client.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, Limit: 1})
	switch {
	case !written.Answered(err):
		return nil
	case err != nil:
		return func(n *outboxEntry) { n.refuted(o, nil) }
	case len(list.Items) == 0:
		return func(n *outboxEntry) {
			n.refuted(o, nil)
			n.removed, n.removedAt, n.answered = o.UID, list.GetResourceVersion(), nil
		}
	}
	is := &list.Items[0]
	if m.disproves(is, shown, list.GetResourceVersion()) {
		m.restored()
	}
	return func(n *outboxEntry) { n.refuted(o, is) }
}

// accepted records what a cluster has stored for an order. Other bounds than those of the order, as a
// mutating webhook makes them, are a refusal: the same order would have the same result.
func (n *outboxEntry) accepted(o plan.Order, is *unstructured.Unstructured, now time.Time) {
	n.answered, n.made = is, madeOf(is)
	n.fault, n.due = plan.Hold{}, time.Time{}
	if stored := boundsOf(is); stored != o.Bounds {
		n.backOff(fmt.Errorf("it stores %d..%d instead of %d..%d", stored.Min, stored.Max, o.Min, o.Max), firstRefusal, now)
		return
	}
	n.pause = 0
}

// boundsOf returns the bounds of an autoscaler.
func boundsOf(u *unstructured.Unstructured) (b plan.Bounds) {
	b.Min, _, _ = unstructured.NestedInt64(u.Object, "spec", "minReplicas")
	b.Max, _, _ = unstructured.NestedInt64(u.Object, "spec", "maxReplicas")
	return b
}

// refuted records that an order certainly had no effect, and the object that is there.
func (n *outboxEntry) refuted(o plan.Order, is *unstructured.Unstructured) {
	n.rejected = o.Epoch
	if is != nil && is.GetUID() != "" {
		n.answered = is
	}
}

// beginEdition ends the wait for a retry of an order for an earlier edition of the object. The first
// order for this one may meet another write.
func (n *outboxEntry) beginEdition(edition string) {
	if n.edition != edition {
		n.edition, n.fault, n.due, n.pause = edition, plan.Hold{}, time.Time{}, 0
	}
}

// backOff delays the next try for this object in the cluster, longer each time.
func (n *outboxEntry) backOff(err error, first time.Duration, now time.Time) {
	last := lastRefusal
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		last = lastMissing
	}
	n.pause = min(max(first, 2*n.pause), last)
	n.due, n.fault = now.Add(n.pause), plan.Hold{}
	if n.pause >= telling {
		n.fault = plan.Hold{Reason: "Refused" + cmp.Or(string(apierrors.ReasonForError(err)), "ByServer"), Message: "the cluster rejects the autoscaler: " + err.Error()}
	}
}

// answered reports whether an error is an answer of the cluster, rather than a missing answer.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func nameOf(key string) string {
	_, name, _ := cache.SplitMetaNamespaceKey(key)
	return name
}

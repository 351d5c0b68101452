// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// The indexes of objects, and of autoscalers in clusters.
const (
	byTarget = "target"
	byKind   = "kind"
)

func unstructuredOf(item any) (*unstructured.Unstructured, bool) {
	u, ok := item.(*unstructured.Unstructured)
	return u, ok
}

// workloadKey identifies a workload, whatever the version of its group.
func workloadKey(namespace, apiVersion, kind, name string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	return strings.Join([]string{namespace, group, kind, name}, "/")
}

func workloadOfHPA(u *unstructured.Unstructured) string {
	ref, _, _ := unstructured.NestedStringMap(u.Object, "spec", "scaleTargetRef")
	return workloadKey(u.GetNamespace(), ref["apiVersion"], ref["kind"], ref["name"])
}

func indexHPA(item any) ([]string, error) {
	u, ok := unstructuredOf(item)
	if !ok {
		return nil, nil
	}
	return []string{workloadOfHPA(u)}, nil
}

func targetOf(o *v1alpha1.FederatedHorizontalPodAutoscaler) string {
	ref := o.Spec.ScaleTargetRef
	return workloadKey(o.Namespace, ref.APIVersion, ref.Kind, ref.Name)
}

func kindOf(o *v1alpha1.FederatedHorizontalPodAutoscaler) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.Spec.ScaleTargetRef.APIVersion, o.Spec.ScaleTargetRef.Kind)
}

// observe returns everything that is known of a cluster about one object.
func (m *member) observe(o *v1alpha1.FederatedHorizontalPodAutoscaler, b blueprint, hash string) plan.Cluster {
	key := o.Namespace + "/" + o.Name
	n := m.outbox.readEntry(key)
	heard, young, trouble := m.health.status()
	c := plan.Cluster{
		Name: m.registration.Name, Registered: true, Reachable: m.reachable(), Starting: young && !m.reachable(),
		Young: m.health.isYoung() && !m.reachable(), Unprobed: m.health.isUnprobed(), Since: heard, Rejected: n.rejected, Verified: n.verified,
	}
	if trouble != nil && !m.hpas.HasSynced() {
		c.Fault = plan.Hold{Reason: "ListRefused", Message: trouble.Error()}
	}
	if n.order != nil {
		c.InFlight, c.Sent = &n.order.Bounds, n.sent
		if n.order.Operation == plan.Remove {
			c.InFlight = &plan.Bounds{}
		}
	}
	if n.edition == editionOf(o) && m.o.Clock.Now().Before(n.due) {
		c.Fault, c.Pausing = cmp.Or(n.fault, c.Fault), true
	}
	if !m.hpas.HasSynced() {
		return c
	}
	c.Shown = m.hpas.GetStore().LastStoreSyncResourceVersion() // first, so that what is read afterwards is at least as new
	m.lookAtAutoscaler(&c, o, b, n)
	m.lookAtWorkload(&c, o, hash, n)
	return c
}

func (m *member) lookAtAutoscaler(c *plan.Cluster, o *v1alpha1.FederatedHorizontalPodAutoscaler, b blueprint, n outboxEntry) {
	u := m.latest(o.Namespace+"/"+o.Name, n)
	c.Absent = u == nil
	if u != nil && !isOwned(o, u) && (!o.Spec.Adopt || o.DeletionTimestamp != nil) { // what was not taken over yet stays
		c.Foreign = plan.Hold{Reason: "NameTaken", Message: fmt.Sprintf("another client created autoscaler %s in the cluster: remove it, or set spec.adopt", u.GetName())}
		u, c.Absent = nil, false
	}
	if u != nil {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, hpa); err != nil {
			c.Fault = plan.Hold{Reason: "AutoscalerUnreadable", Message: err.Error()}
			return
		}
		c.Local = plan.LocalOf(hpa)
		c.Local.Unclaimed = slices.ContainsFunc(u.GetManagedFields(), unclaimed)
		c.Local.Ours = isOwned(o, u)
		c.Local.Drifted = !c.Local.Ours || b.typed != nil && b.drifted(hpa) && !b.isTaken(u, n.made)
	}
	others, _ := m.hpas.GetIndexer().ByIndex(byTarget, targetOf(o))
	for _, item := range others {
		other, ok := unstructuredOf(item)
		c.Workload.Autoscaled = c.Workload.Autoscaled || ok && !isOwned(o, other)
		if ok && other.GetName() != o.Name {
			c.Foreign = plan.Hold{Reason: "AutoscaledTwice", Message: fmt.Sprintf("autoscaler %s scales the same workload, and two autoscalers disable each other: remove one", other.GetName())}
		}
	}
}

func isOwned(o *v1alpha1.FederatedHorizontalPodAutoscaler, u *unstructured.Unstructured) bool {
	return types.UID(u.GetLabels()[ownerLabel]) == o.UID
}

// latest returns a cluster's autoscaler as the cache or the last response shows it; nil if there is
// none. A response counts until the cache has caught up with it, and never again: if a cluster is
// restored from a backup, its versions start over.
func (m *member) latest(key string, n outboxEntry) *unstructured.Unstructured {
	store := m.hpas.GetStore()
	shown := store.LastStoreSyncResourceVersion() // first, so that what is read afterwards is at least as new
	item, found, _ := store.GetByKey(key)
	u, _ := unstructuredOf(item)
	m.notice(shown)
	if n.answered != nil && !written.Reached(shown, n.answered.GetResourceVersion()) {
		u = n.answered
	}
	if u != nil && string(u.GetUID()) == n.removed && len(u.GetFinalizers()) == 0 {
		u = nil
	}
	m.outbox.updateEntry(key, func(now *outboxEntry) {
		if now.answered == n.answered && n.answered != nil && written.Reached(shown, n.answered.GetResourceVersion()) {
			now.answered = nil
		}
		if now.removed == n.removed && !found && written.Reached(shown, n.removedAt) {
			now.removed, now.removedAt = "", ""
		}
	})
	return u
}

// notice starts the member again if its cluster shows an older version than before: it was restored
// from a backup, and the memory of it describes a state that no longer exists.
func (m *member) notice(shown string) {
	m.mu.Lock()
	restored := plan.IsNewer(m.newest, shown)
	if !restored {
		m.newest = shown
	}
	m.mu.Unlock()
	if restored {
		m.restored()
	}
}

func (m *member) lookAtWorkload(c *plan.Cluster, o *v1alpha1.FederatedHorizontalPodAutoscaler, hash string, n outboxEntry) {
	ref := o.Spec.ScaleTargetRef
	k := m.kinds.kindFor(kindOf(o))
	c.Workload.Arriving = n.isArriving(m.o.Clock.Now(), k.shownVersion()) // first, so that what is read afterwards is at least as new
	switch {
	case k.fault != plan.Hold{}:
		c.Workload.Fault = k.fault
		if c.Local == nil && c.Fault == (plan.Hold{}) {
			c.Fault = k.fault
		}
		return
	case k.informer == nil || !k.informer.HasSynced():
		if _, young, _ := m.health.status(); young && c.Local == nil {
			c.Starting = true
		}
		return
	}
	c.Workload.Known, c.Workload.AsOf = true, m.reads.asOf(k.shownVersion())
	item, found, _ := k.informer.GetStore().GetByKey(o.Namespace + "/" + ref.Name)
	u, ok := unstructuredOf(item)
	if !found || !ok {
		if c.Workload.Fault = n.placed; n.placed == (plan.Hold{}) {
			c.Workload.Fault = plan.Hold{Reason: "NoWorkload", Message: "the workload does not exist in the cluster, so its autoscaler waits; other clusters get its share if they need it for longer than rebalance.startTimeoutSeconds"}
		}
		return
	}
	w := &c.Workload
	w.Exists, w.Version, w.UID = true, u.GetResourceVersion(), string(u.GetUID())
	ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	w.Ready = max(0, min(ready, math.MaxInt32))
	w.Requested = requestedBy(u)
	w.Zeroed = w.Requested == 0 && slices.ContainsFunc(u.GetManagedFields(), scaledByHub)
	w.Counted, w.AtZero = countable[ref.Kind] || w.Ready > 0, o.Spec.MinPolicy == v1alpha1.AllowZero && w.Requested == 0 && !w.Zeroed
	w.Ours, w.Terminating, w.Refused = isOwned(o, u), u.GetDeletionTimestamp() != nil, n.placed
	if w.Drifted = hash != "" && u.GetAnnotations()[templateAnnotation] != hash; w.Drifted {
		w.Fault = w.Refused
	}
}

// requestedBy returns the replicas that a workload asks for, -1 if its kind does not show them.
func requestedBy(u *unstructured.Unstructured) int64 {
	replicas, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		return -1
	}
	return max(0, replicas)
}

// hasWorkload reports whether the cluster shows a workload that was created from an object's
// template. It starts no watch.
func (m *member) hasWorkload(o *v1alpha1.FederatedHorizontalPodAutoscaler) bool {
	informer := m.kinds.informerOf(kindOf(o))
	if informer == nil {
		return false
	}
	item, _, _ := informer.GetStore().GetByKey(o.Namespace + "/" + o.Spec.ScaleTargetRef.Name)
	u, ok := unstructuredOf(item)
	return ok && isOwned(o, u)
}

// countable kinds omit status.readyReplicas only if nothing is ready.
var countable = map[string]bool{"Deployment": true, "StatefulSet": true, "ReplicaSet": true, "ReplicationController": true}

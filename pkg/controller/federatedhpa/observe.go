// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// blueprintSet holds the objects to create in clusters, and when to look again for changes that no
// watch reports.
type blueprintSet struct {
	blueprint blueprint
	workload  *unstructured.Unstructured
	again     time.Duration
}

// observe gathers the view of an object.
func (c *Controller) observe(o *v1alpha1.FederatedHorizontalPodAutoscaler) (plan.View, blueprintSet) {
	v := plan.View{Now: c.o.Clock.Now(), Object: o}
	var d blueprintSet
	var selector labels.Selector
	var hash string
	d, hash, selector, v.Stop = c.readBlueprints(o)
	registered := c.registry.Members()
	for _, r := range registered {
		selected := selector.Matches(labels.Set(r.Labels))
		if !selected && !c.concerned(r.Name, o) {
			continue
		}
		cluster := c.cluster(r, o, d, hash)
		cluster.Selected = selected
		v.Clusters = append(v.Clusters, cluster)
		d.awaitRetry(c, r.Name, o, v.Now)
	}
	for _, s := range o.Status.Clusters {
		if !slices.ContainsFunc(registered, func(r Registration) bool { return r.Name == s.Name }) {
			v.Clusters = append(v.Clusters, plan.Cluster{Name: s.Name})
		}
	}
	refuseAliases(v.Clusters, o)
	doubtNames(v.Clusters, o)
	return v, d
}

// refuseAliases lets nothing be written under the second name of a cluster: the writes under both
// names would undo each other. A name that the object selects comes first, and one that was given up
// never does. What the cluster shows under either name counts.
func refuseAliases(clusters []plan.Cluster, o *v1alpha1.FederatedHorizontalPodAutoscaler) {
	first := map[string]*plan.Cluster{}
	for _, selected := range []bool{true, false} {
		for i := range clusters {
			c := &clusters[i]
			if c.Selected != selected || isReleased(o, *c) {
				continue
			}
			for _, id := range identities(*c) {
				other := first[id]
				if other == nil {
					first[id] = c
				} else if other != c {
					c.Alias = true
					c.Fault = plan.Hold{Reason: sameCluster, Message: fmt.Sprintf("cluster %s has the same autoscaler or workload: register each cluster once", other.Name)}
					other.Local = newerLocal(other.Local, c.Local)
				}
			}
		}
	}
}

// newerLocal returns the later one of two states of an autoscaler.
func newerLocal(is, other *plan.Local) *plan.Local {
	if is != nil && other != nil && is.UID == other.UID && plan.IsNewer(other.Version, is.Version) {
		return other
	}
	return is
}

// sameCluster is the reason of a fault: the cluster has another name, too.
const sameCluster = "SameCluster"

// identities returns the UIDs of what the object has in a cluster.
func identities(c plan.Cluster) (ids []string) {
	if c.Local != nil {
		ids = append(ids, c.Local.UID)
	}
	if c.Workload.Exists && c.Workload.Ours {
		ids = append(ids, c.Workload.UID)
	}
	return ids
}

// doubtNames lets nothing be written to a cluster whose autoscaler is ours and not in the ledger, while
// one with a share has yet to be read, or is no longer registered: both names may be those of one cluster,
// and the second one be read first, as after a restart of the hub or a change of its access. The same goes
// for a workload where nothing was ever sent under this name, until workloads are read under the other one.
func doubtNames(clusters []plan.Cluster, o *v1alpha1.FederatedHorizontalPodAutoscaler) {
	ledger := map[string]v1alpha1.ClusterStatus{}
	for _, s := range o.Status.Clusters {
		ledger[s.Name] = s
	}
	hasShare := func(name string) bool {
		return ledger[name].ConfirmedMaxReplicas > 0 || ledger[name].Outstanding != nil
	}
	doubt := func(what string, unread func(plan.Cluster) bool) plan.Hold {
		for _, c := range clusters {
			if unread(c) && !isReleased(o, c) && (c.Registered || o.DeletionTimestamp == nil) {
				return doubtAbout(c, what)
			}
		}
		return plan.Hold{}
	}
	autoscaler := doubt("autoscaler", func(c plan.Cluster) bool {
		return hasShare(c.Name) && isUnread(c) || ledger[c.Name].Outstanding != nil && c.Local == nil // it may have been created
	})
	workload := doubt("workload", func(c plan.Cluster) bool {
		return hasShare(c.Name) && isUnread(c) || (hasShare(c.Name) || ledger[c.Name].Epoch != 0) && hasUnreadWorkload(c)
	})
	for i := range clusters {
		switch c := &clusters[i]; {
		case c.Alias: // there is no doubt
		case autoscaler != plan.Hold{} && c.Local != nil && c.Local.Ours && !hasShare(c.Name):
			c.Alias, c.Doubtful, c.Fault = true, true, autoscaler
		case workload != plan.Hold{} && c.Local == nil && c.Workload.Exists && c.Workload.Ours && ledger[c.Name].Epoch == 0:
			c.Fault = workload
		}
	}
}

// doubtAbout returns the fault of a cluster that may be the same as one with a share.
func doubtAbout(c plan.Cluster, what string) plan.Hold {
	if c.Registered {
		return plan.Hold{Reason: sameCluster, Message: fmt.Sprintf("cluster %s may have the same %s, and has not been read yet", c.Name, what)}
	}
	return plan.Hold{Reason: sameCluster, Message: fmt.Sprintf("cluster %s may have the same %s, and is no longer registered: register it again, or list it in spec.unreachable.released", c.Name, what)}
}

// isReleased reports whether the user has given up a cluster that is out of reach. One that is about to be
// read may be there again.
func isReleased(o *v1alpha1.FederatedHorizontalPodAutoscaler, c plan.Cluster) bool {
	return !c.Reachable && !c.Starting && o.Spec.Unreachable != nil && slices.Contains(o.Spec.Unreachable.Released, c.Name)
}

// isUnread reports whether it is not known what a cluster has.
func isUnread(c plan.Cluster) bool {
	return c.Local == nil && !c.Absent && c.Foreign == plan.Hold{}
}

// hasUnreadWorkload reports whether it is not known whether a cluster has the workload.
func hasUnreadWorkload(c plan.Cluster) bool {
	return !c.Workload.Known && c.Workload.Fault == plan.Hold{}
}

// concerned reports whether a cluster that is not selected is in the ledger, or still contains
// something of the object.
func (c *Controller) concerned(name string, o *v1alpha1.FederatedHorizontalPodAutoscaler) bool {
	if slices.ContainsFunc(o.Status.Clusters, func(s v1alpha1.ClusterStatus) bool { return s.Name == name }) {
		return true
	}
	m, _ := c.fleet.memberFor(name)
	if m == nil {
		return false
	}
	u := m.latest(keyOf(o), m.outbox.readEntry(keyOf(o)))
	return u != nil && isOwned(o, u) || m.hasWorkload(o)
}

// awaitRetry records when an order that was rejected is due again.
func (d *blueprintSet) awaitRetry(c *Controller, name string, o *v1alpha1.FederatedHorizontalPodAutoscaler, now time.Time) {
	m, _ := c.fleet.memberFor(name)
	if m == nil {
		return
	}
	n := m.outbox.readEntry(keyOf(o))
	for _, due := range []time.Time{n.due, n.retry, n.arrives} {
		if left := due.Sub(now); left > 0 {
			d.again = requeue.Sooner(d.again, left)
		}
	}
}

func (c *Controller) cluster(r Registration, o *v1alpha1.FederatedHorizontalPodAutoscaler, d blueprintSet, hash string) plan.Cluster {
	m, fault := c.fleet.memberFor(r.Name)
	if m == nil {
		// Without a fault, it is about to start.
		return plan.Cluster{Name: r.Name, Registered: true, Fault: fault, Starting: fault == plan.Hold{}}
	}
	return m.observe(o, d.blueprint, hash)
}

// readBlueprints reads what the user wrote, or returns what is wrong with it.
func (c *Controller) readBlueprints(o *v1alpha1.FederatedHorizontalPodAutoscaler) (d blueprintSet, hash string, selector labels.Selector, stop plan.Hold) {
	d.blueprint = bareBlueprint(o)
	if o.Annotations[oversized] != "" {
		return d, "", labels.Nothing(), plan.Hold{Reason: "TooLarge", Message: fmt.Sprintf("metrics, behavior, template and clusterSelector have more than %d bytes: make them smaller", maxSpec)}
	}
	selector = labels.Everything()
	var err error
	if o.Spec.ClusterSelector != nil {
		if selector, err = metav1.LabelSelectorAsSelector(o.Spec.ClusterSelector); err != nil {
			return d, "", labels.Nothing(), plan.Hold{Reason: "InvalidSelector", Message: "spec.clusterSelector: " + err.Error()}
		}
	}
	whole, err := blueprintOf(o)
	if err != nil {
		return d, "", selector, plan.Hold{Reason: "InvalidTemplate", Message: err.Error()}
	}
	d.blueprint = whole
	if d.workload, hash, err = workloadOf(o); err != nil {
		return d, "", selector, plan.Hold{Reason: "InvalidTemplate", Message: err.Error()}
	}
	if rival := c.olderRival(o); rival != "" {
		return d, hash, selector, plan.Hold{Reason: "Conflict", Message: fmt.Sprintf("%s is older and scales the same workload: remove one of the two", rival)}
	}
	return d, hash, selector, d.blueprint.forbids(o)
}

// olderRival returns the oldest object for the same workload, if it is not this one.
func (c *Controller) olderRival(o *v1alpha1.FederatedHorizontalPodAutoscaler) string {
	items, _ := c.objects.ByIndex(byTarget, targetOf(o))
	oldest := o
	for _, item := range items {
		if other, ok := item.(*v1alpha1.FederatedHorizontalPodAutoscaler); ok && other.UID != o.UID && isOlder(other, oldest) {
			oldest = other
		}
	}
	if oldest == o {
		return ""
	}
	return oldest.Name
}

func isOlder(a, b *v1alpha1.FederatedHorizontalPodAutoscaler) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// forbids returns what cannot be done with these metrics.
func (b blueprint) forbids(o *v1alpha1.FederatedHorizontalPodAutoscaler) plan.Hold {
	if o.Spec.MinPolicy != v1alpha1.AllowZero {
		return plan.Hold{}
	}
	for _, m := range b.typed.Metrics {
		if m.External != nil || m.Object != nil {
			return plan.Hold{}
		}
	}
	return plan.Hold{Reason: "ZeroNeedsMetrics", Message: "minPolicy AllowZero needs a metric of type Object or External, because others cannot be measured without replicas"}
}

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
			c.Foreign = plan.Hold{Reason: "AutoscaledTwice", Message: fmt.Sprintf("autoscaler %s scales the same workload, and two autoscalers disable each other: remove it", other.GetName())}
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
	shown := ""
	if found && ok {
		shown = u.GetResourceVersion()
	}
	if n.looked.confirms(shown) && n.looked.begun.After(c.Workload.AsOf) {
		c.Workload.AsOf = n.looked.begun
	}
	if !found || !ok {
		if c.Workload.Fault = n.placed; n.placed == (plan.Hold{}) {
			c.Workload.Fault = plan.Hold{Reason: "NoWorkload", Message: "the workload does not exist in the cluster: deploy it there, or use placement; after rebalance.startTimeoutSeconds, other clusters get its share if they need it"}
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

// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	verifyPrefix = "verify:"
	lookPrefix   = "look:"
)

// verify asks clusters directly if the ledger is ahead of their caches, and for workloads of which replicas are left. A
// cache may be late, also after a change of leader, or the cluster was restored from a backup.
func (c *Controller) verify(v plan.View, p plan.Plan) {
	key := keyOf(v.Object)
	for i := range p.Clusters {
		s := &p.Clusters[i]
		m, _ := c.fleet.memberFor(s.Name)
		if m == nil {
			continue
		}
		if unseen := s.UnseenVersion(); unseen != "" {
			m.outbox.change(key, func(n *outboxEntry) { n.verifying = unseen })
			m.loop.Add(verifyPrefix + key)
		}
		if s.AwaitsWorkload(v.Now) {
			m.lookAt(key, v.Object)
		}
	}
}

// workload is an object that autoscalers scale, in one cluster.
type workload struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// look is the version in which a workload was read from a cluster's etcd, empty if it did not exist.
type look struct {
	begun   time.Time
	version string
	failed  bool
}

// confirms reports whether a workload was in the version that the cache shows, which is therefore the latest of that
// time. The watch of a workload that does not change need not show that for minutes.
func (l look) confirms(shown string) bool {
	return !l.begun.IsZero() && !l.failed && l.version == shown
}

// lookAt asks the cluster for the workload of an object, not more often than it is probed.
func (m *member) lookAt(key string, o *v1alpha1.FederatedHorizontalPodAutoscaler) {
	k := m.kinds.kindFor(kindOf(o))
	if k.informer == nil || m.o.Clock.Since(m.outbox.readEntry(key).looked.begun) < m.o.ProbePeriod {
		return
	}
	w := &workload{k.resource, o.Namespace, o.Spec.ScaleTargetRef.Name}
	m.outbox.change(key, func(n *outboxEntry) { n.looking = w })
	m.loop.Add(lookPrefix + key)
}

// lookOne reads the version of a workload. It lists, because that is what the hub has the right to do.
func (m *member) lookOne(ctx context.Context, key string) {
	w := m.outbox.readEntry(key).looking
	if w == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.RequestTimeout)
	defer cancel()
	is := look{begun: m.o.Clock.Now()}
	list, err := m.dynamic.Resource(w.resource).Namespace(w.namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + w.name})
	if is.failed = err != nil; err == nil && len(list.Items) > 0 {
		is.version = list.Items[0].GetResourceVersion()
	}
	m.outbox.updateEntry(key, func(n *outboxEntry) { n.looking, n.looked = nil, is })
	m.changed(key)
}

// verifyOne reads an autoscaler from the cluster's etcd. If it does not have the version that the
// ledger expects, it never will have it again.
func (m *member) verifyOne(ctx context.Context, key string) {
	version := m.outbox.readEntry(key).verifying
	if version == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.RequestTimeout)
	defer cancel()
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	is, err := m.dynamic.Resource(hpaResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	m.outbox.updateEntry(key, func(n *outboxEntry) {
		n.verifying = ""
		switch {
		case !written.Answered(err):
		case err != nil || !written.Reached(is.GetResourceVersion(), version):
			n.verified = version
		default:
			n.answered = is
		}
	})
	m.changed(key)
}

// emptyList selects an autoscaler that does not exist, so that the list contains only its version.
var emptyList = metav1.ListOptions{FieldSelector: "metadata.name=federatedhpa-probe"}

// wentBack reports whether the cluster's versions are lower than at the last probe, because its
// etcd was restored from a backup. Watches continue from versions that the cluster has not reached
// yet, so they do not show this. Each probe is a consistent read that starts after the previous one
// has ended, so an API server with a late cache does not look like a restore. If a cluster passes
// its old version between two probes, contradicts finds out.
func (m *member) wentBack(ctx context.Context) bool {
	begun := m.o.Clock.Now()
	list, err := m.dynamic.Resource(hpaResource).Namespace(cmp.Or(m.o.Namespace, metav1.NamespaceDefault)).List(ctx, emptyList)
	if err != nil {
		klog.FromContext(ctx).V(4).Info("The version of a cluster is unknown", "err", err)
		return false
	}
	before := m.probed
	m.probed = list.GetResourceVersion()
	m.reads.record(m.probed, begun)
	return plan.IsNewer(before, m.probed)
}

// compare reads a cluster again if it lacks something that it has shown before. It compares after
// each loss of contact and each watch that ended, because a restore always causes one of these. If
// it cannot be compared, the cluster is read again after a loss of contact, and compared again at the
// next probe otherwise.
func (m *member) compare(ctx context.Context) {
	resumed, silent := m.resumed.Swap(false), m.health.wasSilent()
	if !resumed && !silent {
		return
	}
	switch restored, err := m.contradicts(ctx, silent); {
	case restored:
		m.restored()
	case err != nil && !silent:
		m.resumed.Store(true)
	case err != nil:
		klog.FromContext(ctx).V(2).Info("Reading a cluster again, because it cannot be compared with what it has shown", "err", err)
		m.anew()
	}
}

// managed selects the autoscalers that hubs have created.
var managed = metav1.ListOptions{LabelSelector: ownerLabel, Limit: 100}

// contradicts reports whether a cluster has other autoscalers than it has shown before: its etcd
// was restored from a backup, and its versions have passed the old one since.
func (m *member) contradicts(ctx context.Context, silent bool) (bool, error) {
	store := m.hpas.GetStore()
	shown := store.LastStoreSyncResourceVersion() // first, so that the consistent read is newer
	there := map[string]bool{}
	for options := managed; ; {
		list, err := m.dynamic.Resource(hpaResource).Namespace(m.o.Namespace).List(ctx, options)
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if m.disproves(&list.Items[i], shown, list.GetResourceVersion()) {
				return true, nil
			}
			there[cache.MetaObjectToName(&list.Items[i]).String()] = true
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return m.misses(there, shown, list.GetResourceVersion(), silent)
		}
	}
}

// disproves reports whether an autoscaler that was read at one version proves that the cache is
// wrong. The cache has shown everything up to another version.
func (m *member) disproves(is *unstructured.Unstructured, shown, readAt string) bool {
	if plan.IsNewer(shown, readAt) {
		return true
	}
	if plan.IsNewer(is.GetResourceVersion(), shown) {
		return false // it has changed since, and the watch will show that
	}
	item, found, _ := m.hpas.GetStore().GetByKey(cache.MetaObjectToName(is).String())
	was, ok := unstructuredOf(item)
	if !found || !ok {
		return true
	}
	if was.GetResourceVersion() == is.GetResourceVersion() {
		return differ(was, is) // the cluster has assigned the version twice
	}
	return !plan.IsNewer(was.GetResourceVersion(), readAt)
}

// differ reports whether an autoscaler in the cache and the same one as read differ in what counts.
func differ(was, is *unstructured.Unstructured) bool {
	stripped, err := stripAutoscaler(is.DeepCopy())
	return err == nil && !equality.Semantic.DeepEqual(was.Object["spec"], stripped.(*unstructured.Unstructured).Object["spec"])
}

// misses reports whether the cache contains an old autoscaler that a list at one version does not. The
// cache has shown everything up to another version. One that was removed in between may be in the cache
// until it has shown the version of the list, so that its absence proves nothing before, except after a
// loss of contact.
func (m *member) misses(there map[string]bool, shown, readAt string, silent bool) (bool, error) {
	before := m.missed
	m.missed = map[types.UID]string{}
	for _, item := range m.hpas.GetStore().List() {
		u, ok := unstructuredOf(item)
		if !ok || u.GetLabels()[ownerLabel] == "" || there[cache.MetaObjectToName(u).String()] || plan.IsNewer(u.GetResourceVersion(), shown) {
			continue
		}
		at := cmp.Or(before[u.GetUID()], readAt)
		if silent || !plan.IsNewer(at, shown) {
			return true, nil
		}
		m.missed[u.GetUID()] = at
	}
	if len(m.missed) > 0 {
		return false, errLate
	}
	return false, nil
}

var errLate = errors.New("some autoscalers do not exist, and the watch has yet to show whether they were removed")

// maxReads limits how many reads are remembered: bookmarks come every minute, and probes every 10 seconds.
const maxReads = 16

// reads are the latest consistent reads of a cluster's version.
type reads struct {
	mu  sync.Mutex
	all []read
}

type read struct {
	version string
	begun   time.Time
}

func (r *reads) record(version string, begun time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all[max(0, len(r.all)-maxReads+1):], read{version, begun})
}

// asOf returns the time of which a cache that has shown everything up to a version certainly contains all changes.
func (r *reads) asOf(shown string) (latest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, is := range r.all {
		if written.Reached(shown, is.version) {
			latest = is.begun
		}
	}
	return latest
}

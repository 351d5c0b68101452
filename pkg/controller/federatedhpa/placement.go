// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// placeOne carries out the write of a workload from the outbox. If it fails, the next plan asks for
// it again; the workload's own events trigger that plan.
func (m *member) placeOne(ctx context.Context, key string) {
	placing := m.outbox.readEntry(key).placing
	if placing == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.RequestTimeout)
	defer cancel()
	begun := m.o.Clock.Now()
	created, err := m.writeWorkload(ctx, *placing, key)
	m.o.metrics.countWrite(m.registration.Name, "workload", err, m.o.Clock.Since(begun))
	now := m.o.Clock.Now()
	m.outbox.updateEntry(key, func(n *outboxEntry) {
		if at := now.Add(arrival(err)); placing.Operation == plan.Create && at.After(n.arrives) {
			n.arrives = at
		}
		n.created = cmp.Or(created, n.created)
		n.placing, n.placed, n.retry = nil, plan.Hold{}, now.Add(settle)
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "A workload could not be placed", "object", key)
			n.placed, n.retry = plan.Hold{Reason: "WorkloadRefused", Message: err.Error()}, now.Add(firstRefusal)
		}
	})
	m.changed(key)
}

// settle is how long to wait until the cache shows a workload that was written.
const settle = 2 * time.Second

// arrival returns for how long a creation with this answer may still show in the cache.
func arrival(err error) time.Duration {
	switch written.Outcome(err) {
	case written.Unknown:
		return plan.CreationLife
	case written.Refused:
		return 0
	default:
		return settle
	}
}

// writeWorkload creates a workload with one replica, and returns its version. Later writes leave replicas
// out, because they belong to the autoscaler; those of a workload without one are scaled.
func (m *member) writeWorkload(ctx context.Context, p placement, key string) (created string, err error) {
	namespace, _, _ := cache.SplitMetaNamespaceKey(key)
	client := m.dynamic.Resource(p.kind.resource).Namespace(namespace)
	switch p.Operation {
	case plan.Create:
		wanted := p.wanted.DeepCopy()
		if err := unstructured.SetNestedField(wanted.Object, int64(1), "spec", "replicas"); err != nil {
			return "", err
		}
		made, err := client.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
		if err != nil {
			return "", err
		}
		_, _ = claimFields(ctx, client, made) // otherwise, before the first change
		return made.GetResourceVersion(), nil
	case plan.Change:
		is, err := client.Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if string(is.GetUID()) != p.UID {
			return "", apierrors.NewConflict(p.kind.resource.GroupResource(), p.name, errUnclaimed)
		}
		if is, err = claimFields(ctx, client, is); err != nil {
			return "", err
		}
		wanted := p.wanted.DeepCopy()
		wanted.SetUID(is.GetUID())
		wanted.SetResourceVersion(is.GetResourceVersion())
		_, err = client.Apply(ctx, p.name, wanted, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return "", err
	case plan.Scale:
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": p.Version}, "spec": map[string]any{"replicas": p.Replicas}})
		if err != nil {
			return "", err
		}
		_, err = client.Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: leaveManager})
		return "", err
	default:
		return "", client.Delete(ctx, p.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID(p.UID))}, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	}
}

// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

// apply puts the plan's orders into the outboxes of their clusters. It does not wait for any
// cluster.
func (c *Controller) apply(v plan.View, p plan.Plan, d blueprintSet) {
	key := keyOf(v.Object)
	for i := range p.Orders {
		o := &p.Orders[i]
		m, _ := c.fleet.memberFor(o.Cluster)
		if m == nil {
			continue // the cluster has just gone; the ledger still counts it
		}
		m.outbox.change(key, func(n *outboxEntry) {
			n.order, n.wanted, n.sent, n.rejected = o, d.blueprint.autoscaler(v.Object, *o), v.Now, 0
			n.beginEdition(editionOf(v.Object))
		})
		m.loop.Add(key)
		if o.Bounds != o.Was {
			c.recorder.Eventf(v.Object, corev1.EventTypeNormal, reasons[o.Operation], "%s: from %d..%d to %d..%d", o.Cluster, o.Was.Min, o.Was.Max, o.Min, o.Max)
		}
	}
	for _, placing := range p.Placings {
		c.placeWorkload(v, placing, d)
	}
}

var reasons = map[plan.Operation]string{plan.Create: "Joined", plan.Change: "Moved", plan.Remove: "Left"}

func (c *Controller) placeWorkload(v plan.View, p plan.WorkloadWrite, d blueprintSet) {
	m, _ := c.fleet.memberFor(p.Cluster)
	if m == nil || d.workload == nil && (p.Operation == plan.Create || p.Operation == plan.Change) {
		return
	}
	key, ref := keyOf(v.Object), v.Object.Spec.ScaleTargetRef
	n := m.outbox.readEntry(key)
	corrected := n.placed != plan.Hold{} && n.placedFor != editionOf(v.Object)
	if n.placing != nil || v.Now.Before(n.retry) && !corrected {
		return
	}
	m.outbox.change(key, func(n *outboxEntry) {
		n.placedFor = editionOf(v.Object)
		n.placing = &placement{WorkloadWrite: p, name: ref.Name, wanted: d.workload, kind: m.kinds.kindFor(kindOf(v.Object))}
	})
	m.loop.Add(workloadPrefix + key)
}

// handleFinalizer adds or removes the finalizer, and reports whether nothing else remains to be
// done now.
func (c *Controller) handleFinalizer(ctx context.Context, v plan.View, p plan.Plan) (done bool, err error) {
	o := v.Object
	has := slices.Contains(o.Finalizers, Finalizer)
	switch {
	case o.DeletionTimestamp == nil && !has && p.Stop == plan.Hold{}:
		return true, c.finalize(ctx, o, append(slices.Clone(o.Finalizers), Finalizer))
	case o.DeletionTimestamp != nil && !has:
		return true, nil
	case o.DeletionTimestamp != nil && p.Gone:
		return true, c.finalize(ctx, o, slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == Finalizer }))
	}
	return false, nil
}

// finalize sends a patch, because the cached object is not complete.
func (c *Controller) finalize(ctx context.Context, o *v1alpha1.FederatedHorizontalPodAutoscaler, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": o.ResourceVersion, "finalizers": finalizers}})
	if err != nil {
		return fmt.Errorf("write finalizer: %w", err)
	}
	stored, err := c.client.FederatedHorizontalPodAutoscalers(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("write finalizer: %w", err)
	}
	c.written.Record(stored)
	return nil
}

// report writes the ledger and the rest of the status if it has changed, and records events for
// what has begun or ended. Unless it succeeds, nothing may be sent.
func (c *Controller) report(ctx context.Context, v plan.View, p plan.Plan) error {
	status := plan.NewStatus(v, p)
	if equality.Semantic.DeepEqual(v.Object.Status, status) {
		return nil
	}
	wish := v.Object.DeepCopy()
	wish.Status = status
	stored, err := c.client.FederatedHorizontalPodAutoscalers(wish.Namespace).UpdateStatus(ctx, wish, metav1.UpdateOptions{})
	c.o.metrics.reported(err)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	c.written.Record(stored)
	for _, condition := range status.Conditions {
		if kind, tell := newsOf(meta.FindStatusCondition(v.Object.Status.Conditions, condition.Type), condition); tell {
			c.recorder.Event(v.Object, kind, condition.Type+condition.Reason, condition.Message)
		}
	}
	return nil
}

// good contains the status of each condition while all is well. Other conditions summarize these,
// or pass by themselves.
var good = map[string]metav1.ConditionStatus{
	v1alpha1.ConditionReady: metav1.ConditionTrue, v1alpha1.ConditionLimited: metav1.ConditionFalse,
	v1alpha1.ConditionClustersUnreachable: metav1.ConditionFalse, v1alpha1.ConditionOverCommitted: metav1.ConditionFalse,
	v1alpha1.ConditionJoiningBlocked: metav1.ConditionFalse, v1alpha1.ConditionReplicasLeft: metav1.ConditionFalse,
}

// newsOf reports whether a change of a condition deserves an event: it turned bad, it is bad for
// another reason, or it is good again.
func newsOf(before *metav1.Condition, is metav1.Condition) (kind string, tell bool) {
	well, known := good[is.Type]
	switch {
	case !known || is.Status == metav1.ConditionUnknown:
		return "", false
	case is.Status != well:
		return corev1.EventTypeWarning, before == nil || before.Status != is.Status || before.Reason != is.Reason
	default:
		return corev1.EventTypeNormal, before != nil && before.Status != is.Status && before.Status != metav1.ConditionUnknown
	}
}

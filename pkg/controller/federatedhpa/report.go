// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

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

// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// report writes the status if it has changed, and records events for what has begun or ended.
func (c *Controller) report(ctx context.Context, v plan.View, p plan.Plan, o plan.Outcome) error {
	status := plan.NewStatus(v, p, o)
	if equality.Semantic.DeepEqual(v.Balancer.Status, status) {
		return nil
	}
	wish := v.Balancer.DeepCopy()
	wish.Status = status
	stored, err := c.clients.Balancers.Balancers(wish.Namespace).UpdateStatus(ctx, wish, metav1.UpdateOptions{})
	c.metrics.countWrite("status", err)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
	case apierrors.IsConflict(err):
		return fmt.Errorf("write status: %w", err)
	default:
		c.recorder.Eventf(v.Balancer, corev1.EventTypeWarning, "StatusNotUpdated", "Cannot write the status: %s", reasonOf(err))
		return fmt.Errorf("write status: %w", err)
	}
	c.written.Record(stored)
	for _, n := range newsOf(v.Balancer.Status.Conditions, status.Conditions) {
		c.recorder.Event(v.Balancer, n.kind, n.reason, n.message)
	}
	return nil
}

// news is an event to record.
type news struct{ kind, reason, message string }

// newsOf returns the differences between two sets of conditions, once each.
func newsOf(was, is []metav1.Condition) []news {
	var all []news
	for _, c := range is {
		before := meta.FindStatusCondition(was, c.Type)
		if before != nil && before.Status == c.Status && before.Reason == c.Reason {
			continue
		}
		if c.Type == v1alpha1.ConditionTargetsResolved && meta.IsStatusConditionFalse(is, v1alpha1.ConditionBalancing) {
			continue // which has the same message
		}
		if n, ok := newsAbout(before, c); ok {
			all = append(all, n)
		}
	}
	return all
}

func newsAbout(before *metav1.Condition, is metav1.Condition) (news, bool) {
	bad := func(t string) metav1.ConditionStatus { return worst[t] }
	wasBad := before != nil && before.Status == bad(is.Type)
	switch {
	case worst[is.Type] == "":
		return news{}, false
	case is.Status == bad(is.Type):
		return news{corev1.EventTypeWarning, eventReasons[is.Type], is.Message}, true
	case wasBad && is.Type == v1alpha1.ConditionFallbackActive && is.Status == metav1.ConditionFalse:
		return news{corev1.EventTypeNormal, "FallbackEnded", "All targets start their replicas again"}, true
	}
	return news{}, false
}

// worst contains the status of each condition that needs attention. Other conditions summarize
// these, or pass by themselves.
var worst = map[string]metav1.ConditionStatus{
	v1alpha1.ConditionBalancing:       metav1.ConditionFalse,
	v1alpha1.ConditionWithinLimits:    metav1.ConditionFalse,
	v1alpha1.ConditionFallbackActive:  metav1.ConditionTrue,
	v1alpha1.ConditionTargetsResolved: metav1.ConditionFalse,
}

var eventReasons = map[string]string{
	v1alpha1.ConditionBalancing:       "UnableToBalance",
	v1alpha1.ConditionWithinLimits:    "OutsideLimits",
	v1alpha1.ConditionFallbackActive:  "FallbackStarted",
	v1alpha1.ConditionTargetsResolved: "TargetsUnclear",
}

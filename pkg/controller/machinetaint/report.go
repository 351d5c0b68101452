// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// report writes the status if it has changed, and tells of what has begun.
func (c *Controller) report(ctx context.Context, d *v1alpha1.MachineDeployment, p Plan) error {
	s := NewStatus(d, p.Report, metav1.NewTime(c.clock.Now()))
	if equality.Semantic.DeepEqual(d.Status, s) {
		return nil
	}
	answer, err := c.clients.Machine.MachineDeployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, statusPatch(d, s), metav1.PatchOptions{}, "status")
	c.metrics.wrote("status", err)
	if err != nil {
		return ignoreNotFound(fmt.Errorf("write status of machine deployment %s: %w", d.Name, err))
	}
	c.noted(d.ResourceVersion, answer.ResourceVersion)
	c.written.Wrote(d.Namespace+"/"+d.Name, answer.ResourceVersion)
	if c.settings.Drain && p.Report.Silent {
		klog.FromContext(ctx).Info("The reserve is given up")
	}
	if kind, reason := news(condition(d), p.Report); reason != "" {
		c.recorder.Event(reference(d), kind, reason, p.Report.Message)
	}
	return nil
}

// news is the event that a report is worth, if any.
func news(was *v1alpha1.MachineDeploymentCondition, r Report) (kind, reason string) {
	if was != nil && was.Reason == string(r.Reason) {
		return "", ""
	}
	switch r.Reason {
	case reserve.Complete:
		return corev1.EventTypeNormal, reserveHeld
	case BoundsInvalid, AnnotationInvalid, ClusterUnreachable:
		return corev1.EventTypeWarning, string(r.Reason)
	case CapacityUnknown, reserve.CannotBeMade, reserve.Outranked:
		return corev1.EventTypeWarning, "ReserveIncomplete"
	}
	return "", ""
}

// reference names a MachineDeployment for an event.
func reference(d *v1alpha1.MachineDeployment) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "MachineDeployment",
		Namespace: d.Namespace, Name: d.Name, UID: d.UID, ResourceVersion: d.ResourceVersion,
	}
}

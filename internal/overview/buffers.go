// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

func (r *reading) buffers() []Buffer {
	var all []Buffer
	for _, o := range slices.SortedFunc(slices.Values(r.Buffers), byName) {
		if !o.Reserved() {
			continue
		}
		b := Buffer{
			Namespace: o.Namespace, Name: o.Name, Shape: shapeOf(o), Dedicated: o.Annotations[v1beta1.DedicatedAnnotation],
			Chunks: int(ptr.Deref(o.Status.Replicas, -1)),
		}
		b.Ready = readyOf(o.Status.Conditions)
		r.inspectBuffer(o, b)
		all = append(all, b)
	}
	return all
}

// readyOf returns the condition Ready.
func readyOf(conditions []metav1.Condition) Condition {
	c := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
	if c == nil {
		return Condition{}
	}
	return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
}

func shapeOf(b *v1beta1.CapacityBuffer) string {
	switch {
	case b.Spec.ScalableRef != nil:
		return b.Spec.ScalableRef.Kind + "/" + b.Spec.ScalableRef.Name
	case b.Spec.PodTemplateRef != nil:
		return "PodTemplate/" + b.Spec.PodTemplateRef.Name
	}
	return ""
}

// inspectBuffer finds what is wrong with a buffer. While machines boot, nothing is.
func (r *reading) inspectBuffer(o *v1beta1.CapacityBuffer, b Buffer) {
	object := objectRef("capacitybuffer", o.Namespace, o.Name)
	if len(o.Status.Conditions) == 0 {
		if !r.isNew(o) {
			r.addProblem(lacking, object, "no controller reports on it", "check that machine-controller-manager runs with --controllers=*, or with capacitybuffer among them")
		}
		return
	}
	for _, kind := range []string{v1beta1.ConditionReadyForProvisioning, v1beta1.ConditionReady} {
		c := meta.FindStatusCondition(o.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason == reason.Growing {
			continue
		}
		r.addProblem(lacking, object, oneLine(c.Message), reason.CapacityBuffer[kind].Find(c.Reason).RemedyFor(o.Namespace, o.Name))
		return
	}
}

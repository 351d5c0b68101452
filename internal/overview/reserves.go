// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

func (r *reading) reserves() []Reserve {
	var all []Reserve
	for _, o := range slices.SortedFunc(slices.Values(r.Reserves), byName) {
		one := Reserve{
			Namespace: o.Namespace, Name: o.Name, Wanted: int(o.Status.DesiredReplicas), Current: int(o.Status.Replicas),
			ReadyMachines: int(o.Status.ReadyReplicas), Active: o.Status.ActiveSchedules, Ready: readyOf(o.Status.Conditions),
		}
		if next := o.Status.NextChange; next != nil {
			one.Next = &Change{At: next.Time.Time, Wanted: int(next.DesiredReplicas)}
		}
		r.inspectReserveObject(o, one)
		all = append(all, one)
	}
	return all
}

// inspectReserveObject finds what is wrong with a Reserve. What ends by itself is no problem.
func (r *reading) inspectReserveObject(o *v1alpha1.Reserve, one Reserve) {
	object := objectRef("reserve", o.Namespace, o.Name)
	known := reason.Reserve[v1alpha1.ConditionReady].Find(one.Ready.Reason)
	switch {
	case one.Ready.Status == "" && !r.isNew(o):
		r.addProblem(lacking, object, "no controller has reported on it", "check that machine-controller-manager runs with --controllers=*, or with reserves among them")
	case one.Ready.Status == string(metav1.ConditionFalse) && !known.Passing:
		r.addProblem(lacking, object, oneLine(one.Ready.Message), known.RemedyFor(o.Namespace, o.Name))
	}
}

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
		if b.Chunks >= 0 {
			b.Chunks = o.Outstanding()
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
			r.addProblem(lacking, object, "no controller has reported on it", "check that machine-controller-manager runs with --controllers=*, or with capacitybuffer among them")
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

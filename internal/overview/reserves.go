// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
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
		r.addProblem(lacking, object, "no controller reports on it", "check that machine-controller-manager runs with --controllers=*, or with reserves among them")
	case one.Ready.Status == string(metav1.ConditionFalse) && !known.Passing:
		r.addProblem(lacking, object, oneLine(one.Ready.Message), known.RemedyFor(o.Namespace, o.Name))
	}
}

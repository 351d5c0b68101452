// SPDX-License-Identifier: Apache-2.0

package pool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Workload is R, the number of machines that machine-controller-manager may run for workload:
// spec.replicas without the reserve machines that it includes, or less while growth is still to be
// split over zones. Applied replicas delay growth, but never a reduction: if the annotation is
// larger, it is out of date. A negative number is kept, so that machine-controller-manager rejects
// it.
func Workload(d metav1.Object, replicas int32) int32 {
	return AppliedOf(d, replicas).Workload(d, replicas)
}

// Workload is [Workload] for a MachineDeployment whose excess is known.
func (a Applied) Workload(d metav1.Object, replicas int32) int32 {
	r := replicas - int32(a.Counted)
	if applied, held := AppliedReplicas(d); held {
		return min(r, applied)
	}
	return r
}

// Requested is the number of machines that clients request for workload: R plus the growth that is
// still to be split over zones.
func Requested(d *machine.MachineDeployment) int32 {
	return AppliedOf(d, d.Spec.Replicas).requested(d)
}

func (a Applied) requested(d *machine.MachineDeployment) int32 {
	return max(0, d.Spec.Replicas-int32(a.Counted))
}

// AppliedReplicas is the annotation applied-replicas; false where it is missing or invalid.
func AppliedReplicas(d metav1.Object) (int32, bool) {
	text, set := d.GetAnnotations()[machine.AppliedReplicasAnnotation]
	if !set {
		return 0, false // the usual case; parsing an empty text would cost an error
	}
	n, err := machine.ParseAppliedReplicas(text)
	return n, err == nil
}

// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// SetWorkload changes the number of machines for workload to r. Growth that is still to be split
// over zones does not change.
func SetWorkload(d *machine.MachineDeployment, r int32) {
	Resize(d, r, waiting(d))
}

// Resize changes the number of machines for workload to r, and the growth that is still to be split
// over zones. The change itself is not split. If spec.replicas includes reserve machines, it does
// not grow beyond the max recorded with them: workload takes reserve machines instead.
func Resize(d *machine.MachineDeployment, r, waiting int32) {
	a := AppliedOf(d, d.Spec.Replicas)
	over := int(max(0, r)) + int(max(0, waiting)) + a.Counted - max(a.Max, int(d.Spec.Replicas))
	takeOut(d, r, waiting, a, max(0, over))
}

// Release gives workload this number of machines more. It takes reserve machines that spec.replicas
// includes first, so that spec.replicas stays the same while there are any.
func Release(d *machine.MachineDeployment, machines int32) {
	a := AppliedOf(d, d.Spec.Replicas)
	takeOut(d, a.Workload(d, d.Spec.Replicas)+machines, waiting(d), a, int(machines))
}

// Apply changes the number of machines for workload to r, and the applied excess.
func Apply(d *machine.MachineDeployment, r int32, a Applied) {
	setNumbers(d, r, waiting(d), a)
}

// takeOut changes the numbers, and removes machines from the excess, as far as spec.replicas
// includes them. If that leaves none, the record remains and is 0: if it were missing, the
// machine-taint controller would take it for lost, and restore it.
func takeOut(d *machine.MachineDeployment, r, waiting int32, a Applied, machines int) {
	n := min(machines, a.Counted)
	a.Counted, a.Excess = a.Counted-n, a.Excess-n
	setNumbers(d, r, waiting, a)
	if n > 0 && a.Excess == 0 {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machine.AppliedExcessAnnotation, machine.AppliedExcess{}.String())
	}
}

// waiting returns the growth that is still to be split over zones.
func waiting(d *machine.MachineDeployment) int32 {
	a := AppliedOf(d, d.Spec.Replicas)
	return a.requested(d) - max(0, a.Workload(d, d.Spec.Replicas))
}

// setNumbers writes all numbers of a MachineDeployment. No other code turns R into spec.replicas.
// Applied replicas, if they are set, change with R. The annotations of d are replaced and not
// modified, so d may be a shallow copy.
func setNumbers(d *machine.MachineDeployment, r, waiting int32, a Applied) {
	r, waiting = max(0, r), max(0, waiting)
	_, held := AppliedReplicas(d)
	was := AppliedOf(d, d.Spec.Replicas)
	d.Spec.Replicas = ClampInt32(int(r) + int(waiting) + a.Counted)
	d.Annotations = maps.Clone(d.Annotations)
	if held || waiting > 0 {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machine.AppliedReplicasAnnotation, strconv.Itoa(int(r)))
	}
	if text := a.String(int(d.Spec.Replicas)); text != "" && (a != was || a.Counted+a.Absorbed > 0) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machine.AppliedExcessAnnotation, text)
	} else if a != was {
		delete(d.Annotations, machine.AppliedExcessAnnotation)
	}
}

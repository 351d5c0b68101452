// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"maps"
	"math"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Accounting is where the reserve is counted.
type Accounting string

// Additive counts the reserve beyond spec.replicas: R is spec.replicas, and machine-controller-manager is shown R + A.
const Additive Accounting = "Additive"

// Unbounded is the Max of a MachineDeployment without bounds.
const Unbounded = math.MaxInt32

// Applied is A, the excess that machine-controller-manager is asked to run, with the max that it was computed for.
type Applied struct {
	Excess, Max int
}

// AppliedOf reads the annotation applied-excess. An invalid one is none.
func AppliedOf(d metav1.Object) Applied {
	text, set := d.GetAnnotations()[machine.AppliedExcessAnnotation]
	if !set {
		return Applied{Max: Unbounded}
	}
	a, err := machine.ParseAppliedExcess(text)
	switch {
	case err != nil:
		return Applied{Max: Unbounded}
	case a.Max == nil:
		return Applied{Excess: int(a.Machines), Max: Unbounded}
	}
	return Applied{Excess: int(a.Machines), Max: int(*a.Max)}
}

// VisibleReplicas is the number of replicas that machine-controller-manager sees: r + A, at most the max recorded with A,
// and at least r.
func VisibleReplicas(r int, a Applied) int {
	return max(r, min(r+a.Excess, a.Max))
}

// SetWorkload changes the number of machines for workload to r. Growth that waits to be split over zones goes on waiting.
func SetWorkload(d *machine.MachineDeployment, r int32) {
	Resize(d, r, d.Spec.Replicas-Workload(d, d.Spec.Replicas))
}

// Resize changes the number of machines for workload to r, and that of the growth that waits to be split over zones. No other
// code turns R into spec.replicas. The change itself is not split: applied replicas, where they are set, change with it.
// The annotations of d are replaced and not modified, so d may be a shallow copy.
func Resize(d *machine.MachineDeployment, r, waiting int32) {
	r, waiting = max(0, r), max(0, waiting)
	if _, held := AppliedReplicas(d); held || waiting > 0 {
		d.Annotations = maps.Clone(d.Annotations)
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machine.AppliedReplicasAnnotation, strconv.Itoa(int(r)))
	}
	d.Spec.Replicas = int32(min(int64(r)+int64(waiting), math.MaxInt32))
}

// Visible is the number of replicas that machine-controller-manager sees of a MachineDeployment.
func Visible(d *machine.MachineDeployment) int {
	return VisibleReplicas(max(0, int(Workload(d, d.Spec.Replicas))), AppliedOf(d))
}

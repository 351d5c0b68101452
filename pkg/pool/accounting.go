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
type Accounting = machine.Accounting

const (
	// Additive counts the reserve beyond spec.replicas: R is spec.replicas.
	Additive = machine.AccountingAdditive
	// Inclusive counts reserve machines that have a Node within spec.replicas: R is spec.replicas
	// without them.
	Inclusive = machine.AccountingInclusive
)

// Unbounded is the Max of a MachineDeployment without bounds.
const Unbounded = math.MaxInt32

// Applied is A, how many machines there are to be beyond R as far as that is recorded, with the max that
// it was computed for. In both accountings, there are to be R + A machines.
type Applied struct {
	Excess, Max int
	// Counted is how many machines of the excess spec.replicas includes; always 0 in additive
	// accounting.
	Counted int
	// Absorbed is by how much another client has lowered spec.replicas since Counted was recorded,
	// as far as the reserve can cover that. The reserve takes this reduction, so that R and the
	// number of machines stay as they are until it is decided which machines are deleted. A larger
	// reduction lowers R at once.
	Absorbed int
}

// AppliedOf reads the annotation applied-excess of a MachineDeployment with this number of
// replicas. An invalid annotation counts as none.
func AppliedOf(d metav1.Object, replicas int32) Applied {
	text, set := d.GetAnnotations()[machine.AppliedExcessAnnotation]
	if !set {
		return Applied{Max: Unbounded}
	}
	recorded, _ := machine.ParseAppliedExcess(text)
	a := Applied{Excess: int(recorded.Machines), Max: Unbounded, Counted: int(recorded.Counted)}
	if recorded.Max != nil {
		a.Max = int(*recorded.Max)
	}
	return a.withAbsorbed(int(recorded.Replicas), int(replicas))
}

// withAbsorbed returns the record for a different number of replicas than it was written for: the
// reserve absorbs a reduction, as far as replicas include it.
func (a Applied) withAbsorbed(recorded, replicas int) Applied {
	a.Absorbed = max(0, min(recorded-max(0, replicas), a.Counted))
	a.Counted -= a.Absorbed
	return a
}

// Included reports whether spec.replicas includes reserve machines, or did before another client
// lowered them.
func (a Applied) Included() bool { return a.Counted+a.Absorbed > 0 }

// VisibleReplicas is the number of machines that there are to be: r + A, at most the max recorded with A,
// and at least r with the machines of the excess that spec.replicas includes.
func VisibleReplicas(r int, a Applied) int {
	return max(r+a.Counted, min(r+a.Excess, a.Max))
}

// Visible is the number of machines that a MachineDeployment is to have.
func Visible(d *machine.MachineDeployment) int {
	a := AppliedOf(d, d.Spec.Replicas)
	return VisibleReplicas(max(0, int(a.Workload(d, d.Spec.Replicas))), a)
}

// String returns the value of the annotation applied-excess for a MachineDeployment with this
// number of replicas; empty if nothing is applied.
func (a Applied) String(replicas int) string {
	if a.Excess == 0 {
		return ""
	}
	record := machine.AppliedExcess{
		Machines: ClampInt32(a.Excess), Counted: ClampInt32(a.Counted + a.Absorbed), Replicas: ClampInt32(replicas + a.Absorbed),
	}
	if a.Max != Unbounded {
		limit := ClampInt32(a.Max)
		record.Max = &limit
	}
	return record.String()
}

// ClampInt32 limits a count to the range of the API.
func ClampInt32(n int) int32 { return int32(max(0, min(n, math.MaxInt32))) }

// Workload is R, the number of machines that workload may have: spec.replicas without the reserve
// machines that it includes, or less while growth is still to be split over zones. Applied replicas
// delay growth, but never a reduction: if the annotation is larger, it is out of date. A negative number
// is kept, so that it is rejected.
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
// includes them. If that leaves none, the record remains and is 0: if it were missing, it
// would be taken for lost, and restored.
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

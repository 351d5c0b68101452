// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"math"

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

// Applied is A, the excess that machine-controller-manager is asked to run beyond R, with the max
// that it was computed for. In both accountings, machine-controller-manager is shown R + A.
type Applied struct {
	Excess, Max int
	// Counted is how many machines of the excess spec.replicas includes; always 0 in additive
	// accounting.
	Counted int
	// Absorbed is by how much another client has lowered spec.replicas since Counted was recorded,
	// as far as the reserve can cover that. The reserve takes this reduction, so that R and the
	// number of machines stay as they are until the machine-taint controller has decided which
	// machines are deleted. A larger reduction lowers R at once.
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

// VisibleReplicas is the number of replicas that machine-controller-manager sees: r + A, at most
// the max recorded with A, and at least r with the machines of the excess that spec.replicas
// includes.
func VisibleReplicas(r int, a Applied) int {
	return max(r+a.Counted, min(r+a.Excess, a.Max))
}

// Visible is the number of replicas that machine-controller-manager sees of a MachineDeployment.
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

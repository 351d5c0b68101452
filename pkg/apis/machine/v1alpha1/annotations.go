// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "fmt"

// AnnotationPrefix is the prefix of every annotation of Evenkeel.
const AnnotationPrefix = "evenkeel.machine.sapcloud.io/"

// Annotations of Evenkeel. Each has one writer.
const (
	// BoundsAnnotation, on a MachineDeployment, contains "min:max:excess"; see [ParseBounds]. The
	// user writes it.
	BoundsAnnotation = AnnotationPrefix + "bounds"

	// ReserveAnnotation marks a Machine that is in reserve; see [Reserve]. On the Machine's Node,
	// and in its node template, it contains the time when the machine entered the reserve.
	ReserveAnnotation = AnnotationPrefix + "reserve"

	// ReserveStateAnnotation, on a Machine, is for people. It shows when the machine entered or
	// left the reserve, why, and whether its Node has the reserve taint. It is absent from a
	// Machine that was never in reserve. The machine-taint controller writes it.
	ReserveStateAnnotation = AnnotationPrefix + "reserve-state"

	// AppliedExcessAnnotation, on a MachineDeployment, is the number of machines that
	// machine-controller-manager is asked to run beyond those for workload; see
	// [ParseAppliedExcess]. The machine-taint controller writes it, and so does each component that
	// changes replicas that include reserve machines, in the same write.
	AppliedExcessAnnotation = AnnotationPrefix + "applied-excess"

	// AppliedReplicasAnnotation, on a MachineDeployment, is the number of replicas that machine-controller-manager may
	// act on while growth is being split over zones; see [ParseAppliedReplicas]. The balance controller writes it.
	AppliedReplicasAnnotation = AnnotationPrefix + "applied-replicas"

	// AccountingAnnotation, on a MachineDeployment, defines whether spec.replicas includes the
	// reserve; see [ParseAccounting]. The user writes it. If it is absent, the flag
	// --reserve-accounting applies.
	AccountingAnnotation = AnnotationPrefix + "accounting"
)

// Accounting defines where the reserve is counted.
type Accounting string

const (
	// AccountingAdditive counts the reserve beyond spec.replicas.
	AccountingAdditive Accounting = "Additive"
	// AccountingInclusive counts reserve machines that have a Node within spec.replicas.
	AccountingInclusive Accounting = "Inclusive"
)

// ParseAccounting reads the value of [AccountingAnnotation].
func ParseAccounting(text string) (Accounting, error) {
	switch a := Accounting(text); a {
	case AccountingAdditive, AccountingInclusive:
		return a, nil
	}
	return "", fmt.Errorf("accounting %.80q: write %s or %s", text, AccountingAdditive, AccountingInclusive)
}

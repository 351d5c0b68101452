// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "fmt"

// AnnotationPrefix is the prefix of every annotation of Evenkeel.
const AnnotationPrefix = "evenkeel.machine.sapcloud.io/"

// Annotations that users write.
const (
	// BoundsAnnotation, on a MachineDeployment, contains "min:max:excess"; see [ParseBounds].
	BoundsAnnotation = AnnotationPrefix + "bounds"

	// PoolExcessAnnotation, on the node template of a MachineDeployment, is the excess of its whole
	// pool, in any form that [ParseExcess] reads; a percentage refers to the pool's replicas.
	// Annotations of a Gardener Shoot's worker are copied there.
	PoolExcessAnnotation = AnnotationPrefix + "excess"

	// BalanceAnnotation, on a MachineDeployment, defines how it is kept even with similar ones; see
	// [ParseBalanceMode]. On its node template, it does so for all MachineDeployments of a pool that
	// do not have it themselves.
	BalanceAnnotation = AnnotationPrefix + "balance"

	// AccountingAnnotation, on a MachineDeployment, defines whether spec.replicas includes the
	// reserve; see [ParseAccounting]. If it is absent, the flag --reserve-accounting applies.
	AccountingAnnotation = AnnotationPrefix + "accounting"

	// PrepareAnnotation, on a MachineDeployment or, for a whole pool, on its node template, lists what its
	// machines in reserve are prepared for; see [ParsePreparations].
	PrepareAnnotation = AnnotationPrefix + "prepare"

	// DrainReserveAnnotation, on a MachineDeployment, removes the reserve if its value is "true",
	// whatever else requests one. Those requests stay in place, and count again when the annotation
	// is removed or "false". See [ParseDrainReserve]. kubectl evenkeel drain-reserve
	// writes it, too.
	DrainReserveAnnotation = AnnotationPrefix + "drain-reserve"
)

// Annotations that Evenkeel keeps. Each has one writer, unless its comment names others.
const (
	// ReserveAnnotation marks a Machine that is in reserve; see [Reserve]. On the Machine's Node,
	// and in its node template, it contains the time when the machine entered the reserve.
	ReserveAnnotation = AnnotationPrefix + "reserve"

	// ReserveStateAnnotation, on a Machine, is for people. It shows when the machine entered or
	// left the reserve, why, and whether its Node has the reserve taint. It is absent from a
	// Machine that was never in reserve. The controller of MachineDeployments writes it.
	ReserveStateAnnotation = AnnotationPrefix + "reserve-state"

	// DedicatedAnnotation, on a MachineDeployment, is how many of its spare machines are kept for the
	// pods of one owner; see [ParseDedications]. The reserves controller writes it, from the
	// annotation of the same name on Reserves. On a Machine in reserve, it is the [Owner] whose pods
	// may use it. The controller of MachineDeployments writes that one.
	DedicatedAnnotation = AnnotationPrefix + "dedicated"

	// ClaimedAnnotation, on a MachineDeployment, names dedicated machines that pods of their owner
	// need; see [ParseClaims]. The release controller writes it, together with replicas, and the
	// controller of MachineDeployments removes it when no machine in reserve is claimed.
	ClaimedAnnotation = AnnotationPrefix + "claimed"

	// AppliedExcessAnnotation, on a MachineDeployment, is the number of machines that
	// machine-controller-manager is asked to run beyond those for workload; see
	// [ParseAppliedExcess]. The controller of MachineDeployments writes it, and so does each component that
	// changes replicas that include reserve machines, in the same write.
	AppliedExcessAnnotation = AnnotationPrefix + "applied-excess"

	// AppliedReplicasAnnotation, on a MachineDeployment, is the number of replicas that
	// machine-controller-manager may act on while growth is being split over zones; see
	// [ParseAppliedReplicas]. The balance controller writes it.
	AppliedReplicasAnnotation = AnnotationPrefix + "applied-replicas"

	// WantedExcessAnnotation, on a MachineDeployment, is the last value of spec.excessReplicas. If
	// a client that does not know the field drops it, together with spec.reserveWitness, it is
	// restored from here. The controller of MachineDeployments writes it.
	WantedExcessAnnotation = AnnotationPrefix + "wanted-excess"

	// ExcessOwnersAnnotation, on a MachineDeployment, lists the field managers that own
	// spec.excessReplicas by a server-side apply; see [ParseExcessOwners]. After the field is
	// restored, they own it again. The controller of MachineDeployments writes it, together with
	// [WantedExcessAnnotation].
	ExcessOwnersAnnotation = AnnotationPrefix + "excess-owners"

	// RequestedExcessAnnotation, on a MachineDeployment, is how many spare machines a Reserve
	// requests there; see [ParseRequestedExcess]. Of several Reserves it names the one that
	// requests most. It counts if it is more than what the share, bounds or spec.excessReplicas
	// come to. The reserves controller writes it.
	RequestedExcessAnnotation = AnnotationPrefix + "requested-excess"

	// ShareAnnotation, on a MachineDeployment, is the number of machines to keep in reserve there:
	// its share of its pool's excess, and while replicas are being moved to it, the machine that is
	// created for them; see [ParseShare]. It takes precedence over bounds and over
	// spec.excessReplicas. "0" means no reserve; without the annotation there is no share. The
	// balance controller writes it.
	ShareAnnotation = AnnotationPrefix + "share"

	// MoveAnnotation, on the MachineDeployments of a move, is a move of replicas in progress; see
	// [Move]. The balance controller writes it.
	MoveAnnotation = AnnotationPrefix + "move"

	// DeclinedMoveAnnotation, on a MachineDeployment, is the ID of a [Move] from which it takes
	// nothing. The balance controller writes it before the MachineDeployment that gives keeps its
	// replicas, so that nobody takes them who has not seen that yet.
	DeclinedMoveAnnotation = AnnotationPrefix + "declined-move"

	// GivenBoundsAnnotation, on a MachineDeployment, repeats bounds that the balance controller
	// wrote because no user did. If the bounds differ from it, or if it is absent, a user wrote the
	// bounds. The balance controller writes it.
	GivenBoundsAnnotation = AnnotationPrefix + "given-bounds"

	// OwnExcessAnnotation, on a MachineDeployment, is the former value of spec.excessReplicas while
	// a share or given bounds take precedence over it; it is restored afterwards. The balance
	// controller writes it.
	OwnExcessAnnotation = AnnotationPrefix + "own-excess"
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

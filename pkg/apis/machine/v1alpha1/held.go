// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

const (
	// ReserveTaintKey is the key of the taint that keeps workload off a machine in reserve. Its prefix makes
	// cluster-autoscaler leave it out of the node templates it makes of such machines.
	ReserveTaintKey = "status-taint.cluster-autoscaler.kubernetes.io/excess-reserve"

	// ScaleDownDisabledAnnotation, on a Node, is cluster-autoscaler's: it does not remove a machine in reserve for being
	// empty.
	ScaleDownDisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"

	// WantedExcessAnnotation, on a MachineDeployment, is what spec.excessReplicas said last. Where the field is dropped
	// by a client that does not own it, it is restored from here; see [ExcessOwnersAnnotation]. The machine-taint
	// controller writes it.
	WantedExcessAnnotation = AnnotationPrefix + "wanted-excess"

	// DrainReserveAnnotation, on a MachineDeployment, removes the reserve with the value "true", whatever else asks for one:
	// what is asked for stays written down, and counts again when the annotation is removed or "false". See
	// [ParseDrainReserve]. The user writes it, or kubectl evenkeel drain-reserve.
	DrainReserveAnnotation = AnnotationPrefix + "drain-reserve"

	// ReturnedAnnotation, on a MachineDeployment, names machines in reserve that were named for deletion and for which
	// replicas was given back, separated by commas: once each. The machine-taint controller writes it.
	ReturnedAnnotation = AnnotationPrefix + "returned"

	// ReserveReady is the condition of a MachineDeployment with a reserve: True when the reserve is as large as it is
	// meant to be and all of it is ready.
	ReserveReady mcm.MachineDeploymentConditionType = "ReserveReady"
)

// ParseDrainReserve reads the value of [DrainReserveAnnotation].
func ParseDrainReserve(text string) (bool, error) {
	switch text {
	case "true", "false":
		return text == "true", nil
	}
	return false, fmt.Errorf("drain-reserve %.80q: write true or false", text)
}

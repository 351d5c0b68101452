// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

const (
	// ReserveTaintKey is the key of the taint that keeps workload off a machine in reserve. Because
	// of its prefix, cluster-autoscaler omits it from the node templates that it derives from such
	// machines.
	ReserveTaintKey = "status-taint.cluster-autoscaler.kubernetes.io/excess-reserve"

	// ScaleDownDisabledAnnotation, on a Node, belongs to cluster-autoscaler: it keeps
	// cluster-autoscaler from deleting a reserve machine because it is empty.
	ScaleDownDisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"

	// WantedExcessAnnotation, on a MachineDeployment, is the last value of spec.excessReplicas. If
	// a client that does not own the field drops it, it is restored from here; see
	// [ExcessOwnersAnnotation]. The machine-taint controller writes it.
	WantedExcessAnnotation = AnnotationPrefix + "wanted-excess"

	// DrainReserveAnnotation, on a MachineDeployment, removes the reserve if its value is "true",
	// whatever else requests one. Those requests stay in place, and count again when the annotation
	// is removed or "false". See [ParseDrainReserve]. The user writes it, or kubectl evenkeel
	// drain-reserve.
	DrainReserveAnnotation = AnnotationPrefix + "drain-reserve"

	// ReturnedAnnotation, on a MachineDeployment, lists reserve machines that were named for
	// deletion and for which replicas were restored, separated by commas. Each is restored once.
	// The machine-taint controller writes it.
	ReturnedAnnotation = AnnotationPrefix + "returned"

	// ReserveReady is the condition of a MachineDeployment with a reserve: True when the reserve
	// has its desired size and all its machines are ready.
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

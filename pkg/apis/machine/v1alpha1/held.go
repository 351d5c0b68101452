// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

const (
	// ReserveTaintKey is the key of the taint that keeps workload off a machine in reserve. Because
	// of its prefix, cluster-autoscaler omits it from the node templates that it derives from such
	// machines.
	ReserveTaintKey = "status-taint.cluster-autoscaler.kubernetes.io/excess-reserve"

	// RegistrationTaintKey is the key of a taint that Nodes may register with. It keeps all pods off
	// a Node until its Machine shows whether it is in reserve. cluster-autoscaler omits it from node
	// templates, too, and waits for it to be removed.
	RegistrationTaintKey = "startup-taint.cluster-autoscaler.kubernetes.io/evenkeel-registration"

	// ScaleDownDisabledAnnotation, on a Node, belongs to cluster-autoscaler: it keeps
	// cluster-autoscaler from deleting a reserve machine because it is empty.
	ScaleDownDisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"

	// ReserveReady is the condition of a MachineDeployment with a reserve: True when the reserve
	// has its desired size and all its machines are ready.
	ReserveReady mcm.MachineDeploymentConditionType = "ReserveReady"
)

// IsStartupTaint reports whether the taint with this key shows that a Node lacks something that will
// be there soon: to cluster-autoscaler, to a cloud provider, to Gardener or to the Node Readiness
// Controller.
func IsStartupTaint(key string) bool {
	switch key {
	case "node.cloudprovider.kubernetes.io/uninitialized", "node.gardener.cloud/critical-components-not-ready":
		return true
	}
	for _, prefix := range []string{"startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/", "readiness.k8s.io/"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// ParseDrainReserve reads the value of [DrainReserveAnnotation].
func ParseDrainReserve(text string) (bool, error) {
	switch text {
	case "true", "false":
		return text == "true", nil
	}
	return false, fmt.Errorf("drain-reserve %.80q: write true or false", text)
}

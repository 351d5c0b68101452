// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds whose objects are compared.
const (
	Deployment = "MachineDeployment"
	Set        = "MachineSet"
	Machine    = "Machine"
	Node       = "Node"
)

var (
	deployments = mcmapi.SchemeGroupVersion.WithResource("machinedeployments")
	sets        = mcmapi.SchemeGroupVersion.WithResource("machinesets")
	machines    = mcmapi.SchemeGroupVersion.WithResource("machines")
	nodes       = corev1.SchemeGroupVersion.WithResource("nodes")
	events      = corev1.SchemeGroupVersion.WithResource("events")
)

// resourceOf returns the resource of one of the kinds.
func resourceOf(kind string) schema.GroupVersionResource {
	switch kind {
	case Deployment:
		return deployments
	case Set:
		return sets
	case Machine:
		return machines
	case Node:
		return nodes
	}
	panic(fmt.Sprintf("no resource of kind %q", kind)) // a mistake in a story
}

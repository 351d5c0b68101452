// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// View is what is known of some MachineSets at one instant. Nothing in it is changed.
type View struct {
	Now time.Time
	// Sets are those that are decided about together.
	Sets []Set
	// Orphans are the Machines of the namespace that nothing controls.
	Orphans []*mcm.Machine
	// Nodes are those of failed machines, by name. It is nil if there is no target cluster.
	Nodes map[string]*corev1.Node
}

// Set is a MachineSet.
type Set struct {
	Object *mcm.MachineSet
	// Machines are those that it controls, whatever their labels. They include those that were
	// created and that no store shows yet.
	Machines []*mcm.Machine
}

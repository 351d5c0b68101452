// SPDX-License-Identifier: Apache-2.0

package plan

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// HashOf returns the hash of a template.
func HashOf(t mcm.MachineTemplateSpec, collisions *int32) string { return hashOf(t, collisions) }

// Bounds returns how many machines beyond replicas there may be, and how many may be unavailable.
func Bounds(d *machine.MachineDeployment) (surge, unavailable int32) {
	one := &deployment{stored: d}
	return one.surge(), one.maxUnavailable()
}

// ProportionOf returns which size a MachineSet has in proportion.
func ProportionOf(d *machine.MachineDeployment, s *mcm.MachineSet) int32 {
	return (&deployment{stored: d}).proportionOf(&set{stored: s, Object: s})
}

// NewestOf returns the MachineSet that has the template of a MachineDeployment, nil if there is none.
func NewestOf(d *machine.MachineDeployment, sets ...*mcm.MachineSet) *mcm.MachineSet {
	var all []*set
	for _, s := range sets {
		all = append(all, &set{stored: s, Object: s})
	}
	newest, _ := (&deployment{stored: d}).split(all)
	if newest == nil {
		return nil
	}
	return newest.stored
}

// Future returns how many machines of the MachineSets of a plan there are once it has been carried out,
// those that are leaving included, and how many of them serve.
func Future(s Set, after *mcm.MachineSet) (machines, serving int32) {
	one := &set{stored: s.Object, Object: after, machines: s.Machines}
	present := int32(one.present())
	return max(present, after.Spec.Replicas) + int32(len(s.Machines)) - present, one.serving()
}

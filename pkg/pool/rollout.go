// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"maps"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Rollout describes a MachineDeployment with respect to its templates.
type Rollout struct {
	// Set is the MachineSet whose machines stay the longest: that of the current template, or the
	// only one in use while nothing replaces its machines. It is empty if there is none.
	Set string
	// Replacing reports whether machines of an older template are being replaced, or updated in
	// place. The rollout then determines the number of machines.
	Replacing bool
	// Spread reports whether more than one MachineSet is in use. When replicas are reduced, the machines
	// that go are then not simply those that would be deleted first: the reduction is spread over the sets
	// (RollingUpdate), or postponed together with the rollout (InPlaceUpdate).
	Spread bool
}

// RolloutOf examines the MachineSets of a MachineDeployment. Staying contains how many machines of
// each are not leaving, by name.
//
// An edited template does not mean a rollout yet while nothing replaces machines and one MachineSet
// has them all, because that set still follows replicas: while the MachineDeployment is paused, and
// in an in-place update that users carry out (Manual), until the first machine has been updated.
func RolloutOf(d *machine.MachineDeployment, sets []*mcm.MachineSet, staying map[string]int) Rollout {
	r, used := Rollout{Set: CurrentSet(d, sets)}, setsInUse(sets, staying)
	r.Spread = len(used) > 1
	switch old := slices.ContainsFunc(used, func(name string) bool { return name != r.Set }); {
	case old && !r.Spread && leavesOldMachines(d):
		r.Set = used[0]
	case old:
		r.Replacing = true
	}
	return r
}

// setsInUse returns the MachineSets that request machines, or have machines that stay.
func setsInUse(sets []*mcm.MachineSet, staying map[string]int) []string {
	used := map[string]bool{}
	for _, set := range sets {
		used[set.Name] = set.Spec.Replicas > 0
	}
	for name, machines := range staying {
		used[name] = used[name] || machines > 0
	}
	maps.DeleteFunc(used, func(_ string, is bool) bool { return !is })
	return slices.Collect(maps.Keys(used))
}

// CurrentSet is the name of the MachineSet of the current template, empty if there is none.
func CurrentSet(d *machine.MachineDeployment, sets []*mcm.MachineSet) string {
	plain := &mcm.MachineDeployment{ObjectMeta: d.ObjectMeta, Spec: d.Spec.StockMachineDeploymentSpec}
	if set := stock.FindNewMachineSet(plain, slices.Clone(sets)); set != nil { // it sorts its argument
		return set.Name
	}
	return ""
}

// leavesOldMachines reports whether machines of older templates stay as they are.
func leavesOldMachines(d *machine.MachineDeployment) bool {
	s := d.Spec.Strategy
	manual := s.Type == mcm.InPlaceUpdateMachineDeploymentStrategyType && s.InPlaceUpdate != nil && s.InPlaceUpdate.OrchestrationType == mcm.OrchestrationTypeManual
	return d.Spec.Paused || manual
}

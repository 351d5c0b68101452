// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// checkDedications lets the condition report an annotation that dedicates nothing: an invalid one, or
// one on a Reserve of several MachineDeployments.
func (d *Decision) checkDedications() {
	asked, err := machine.ParseDedications(d.Reserve.Annotations[machine.DedicatedAnnotation])
	if len(asked) > 0 && len(d.Parts) > 1 {
		err = fmt.Errorf("the Reserve selects %d MachineDeployments, and can dedicate machines of a single one", len(d.Parts))
	}
	if err != nil {
		d.Reason, d.Message = reason.Invalid, fmt.Sprintf("the annotation %s is invalid, so its machines are dedicated to nobody: %v; %s",
			machine.DedicatedAnnotation, err, d.Message)
	}
}

// dedications returns whom the spare machines of a MachineDeployment are dedicated to, at most as
// many as are requested there, and no more of each Reserve than it requests (law 11). If several
// Reserves name an owner, the largest number counts. Of too many owners, the first by name count.
func dedications(decisions []Decision, d *machine.MachineDeployment, machines int32) string {
	most := map[machine.Owner]int32{}
	for _, each := range decisions {
		if len(each.Parts) != 1 || each.Parts[0].Deployment != d {
			continue // a number for several MachineDeployments could not be told apart
		}
		asked, _ := machine.ParseDedications(each.Reserve.Annotations[machine.DedicatedAnnotation]) // an invalid text dedicates nothing
		for _, a := range limited(asked, int32(each.Parts[0].Machines)) {
			most[a.Owner] = max(most[a.Owner], a.Machines)
		}
	}
	var all []machine.Dedication
	for owner, n := range most {
		all = append(all, machine.Dedication{Owner: owner, Machines: n})
	}
	all = limited(all, machines)
	return machine.DedicationsText(all[:min(len(all), machine.MaxDedications)])
}

// limited returns dedications, by owner, of at most this many machines. An owner that is named twice
// counts once, with the larger number.
func limited(all []machine.Dedication, machines int32) []machine.Dedication {
	slices.SortFunc(all, func(a, b machine.Dedication) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(b.Machines, a.Machines))
	})
	all = slices.CompactFunc(all, func(a, b machine.Dedication) bool { return a.Owner == b.Owner })
	for i := range all {
		all[i].Machines = min(all[i].Machines, machines)
		machines -= all[i].Machines
	}
	return slices.DeleteFunc(all, func(a machine.Dedication) bool { return a.Machines == 0 })
}

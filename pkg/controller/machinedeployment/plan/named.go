// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
)

// nameVictims marks the machines that a client, such as cluster-autoscaler, has named for deletion in an
// annotation of the MachineDeployment, so that they go before others. Each is named with a time; older
// clients name none. A name stays until its machine has failed or is being deleted, a mark for good.
func (d *deployment) nameVictims() {
	list := d.stored.Annotations[machineutils.TriggerDeletionByMCM]
	if list == "" {
		return
	}
	changed := d.lastChange()
	var staying []string
	for entry := range strings.SplitSeq(list, ",") {
		name, at, dated := strings.Cut(entry, "~")
		if !dated {
			at = changed
		}
		if d.markVictim(name, at) {
			staying = append(staying, name+"~"+at)
		}
	}
	if d.Object.Annotations = without(d.Object.Annotations, machineutils.TriggerDeletionByMCM); len(staying) > 0 {
		d.Object.Annotations[machineutils.TriggerDeletionByMCM] = strings.Join(staying, ",")
	}
}

// lastChange returns when a client that names machines changed replicas. If it does not say so, that is
// now, which is written down so that it stays the same.
func (d *deployment) lastChange() string {
	const key = machineutils.LastDeploymentReplicaChangeByScalerTime
	if at := d.stored.Annotations[key]; at != "" {
		return at
	}
	now := d.Now.UTC().Format(time.RFC3339)
	d.Object.Annotations = with(d.Object.Annotations, key, now)
	return now
}

// markVictim marks a machine of the MachineDeployment, and reports whether that is there and may go.
func (d *deployment) markVictim(name, at string) bool {
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		return false
	}
	for _, s := range d.sets() {
		for i, m := range s.machines {
			if m.Name == name && !machineutils.IsMachineFailedOrTerminating(m) {
				s.machines[i] = withMark(m, at)
				return true
			}
		}
	}
	return false
}

// withMark returns a machine that goes first. One that was marked before keeps its mark.
func withMark(m *mcm.Machine, at string) *mcm.Machine {
	marked := m.Annotations[machineutils.MarkedForDeletionTime] != ""
	if marked && machineutils.IsMachineTriggeredForDeletion(m) {
		return m
	}
	m = m.DeepCopy()
	if m.Annotations = with(m.Annotations, machineutils.MachinePriority, "1"); !marked {
		m.Annotations[machineutils.MarkedForDeletionTime] = at
	}
	return m
}

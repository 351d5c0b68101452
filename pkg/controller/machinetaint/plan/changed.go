// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// MachineByName returns the Machine with this name. Plans contain only machines of their view.
func (v View) MachineByName(name string) Machine {
	i := slices.IndexFunc(v.Machines, func(m Machine) bool { return m.Object.Name == name })
	return v.Machines[i]
}

// Changed returns the Machine of the view after a change.
func (v View) Changed(change MachineChange) *mcm.Machine {
	m := v.MachineByName(change.Name).Object
	after := m
	switch change.Mark {
	case Free:
		after = pool.Unmark(m)
	case Hold:
		after = pool.Mark(m, laterMark(m, v.Settings, v.Now))
	}
	if change.Priority != 0 {
		after = withAnnotation(after, machineutils.MachinePriority, fmt.Sprint(change.Priority))
	}
	if change.Owner != nil {
		after = withAnnotation(after, v1alpha1.DedicatedAnnotation, string(*change.Owner))
	}
	if change.State != nil {
		after = withAnnotation(after, v1alpha1.ReserveStateAnnotation, *change.State)
	}
	return after
}

// withAnnotation returns a copy of a Machine with an annotation, or without it if the value is
// empty.
func withAnnotation(m *mcm.Machine, key, value string) *mcm.Machine {
	m = m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	if m.Annotations[key] = value; value == "" {
		delete(m.Annotations, key)
	}
	return m
}

// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"sync/atomic"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// pruned are the fields of MachineDeployments that the API server drops, because its
// CustomResourceDefinition is that of machine-controller-manager: they are not written again and again.
type pruned struct{ field, witness, numbers, selector atomic.Bool }

// observe learns from a MachineDeployment that shows the fields of the spec.
func (p *pruned) observe(d *machine.MachineDeployment) {
	if d.Spec.ExcessReplicas != nil {
		p.field.Store(false)
	}
	if d.Spec.ReserveWitness {
		p.witness.Store(false)
	}
}

// compare learns from the answer to a write.
func (p *pruned) compare(wrote, answer *machine.MachineDeployment) {
	if wrote.Spec.ExcessReplicas != nil {
		p.field.Store(answer.Spec.ExcessReplicas == nil)
	}
	if wrote.Spec.ReserveWitness {
		p.witness.Store(!answer.Spec.ReserveWitness)
	}
	if wrote.Status.ExcessReplicas > 0 {
		p.numbers.Store(answer.Status.ExcessReplicas == 0)
	}
	if wrote.Status.Selector != "" {
		p.selector.Store(answer.Status.Selector == "")
	}
}

// without returns a status in which the fields that are dropped are as a MachineDeployment shows them.
func (p *pruned) without(s machine.MachineDeploymentStatus, d *machine.MachineDeployment) machine.MachineDeploymentStatus {
	if p.numbers.Load() {
		s.ExcessReplicas, s.ReadyExcessReplicas = d.Status.ExcessReplicas, d.Status.ReadyExcessReplicas
	}
	if p.selector.Load() {
		s.Selector = d.Status.Selector
	}
	return s
}

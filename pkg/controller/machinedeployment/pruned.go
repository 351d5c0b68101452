// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"sync/atomic"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// pruned are the fields of MachineDeployments that the API server drops, because its
// CustomResourceDefinition is that of machine-controller-manager: they are not written again and again. Once
// one of them is stored, there is another CustomResourceDefinition, and all are written.
type pruned struct{ field, witness, numbers, selector atomic.Bool }

// observe learns from a MachineDeployment that shows the fields of the spec.
func (p *pruned) observe(d *machine.MachineDeployment) {
	if d.Spec.ExcessReplicas != nil {
		p.note(&p.field, false)
	}
	if d.Spec.ReserveWitness {
		p.note(&p.witness, false)
	}
}

// compare learns from the answer to a write.
func (p *pruned) compare(wrote, answer *machine.MachineDeployment) {
	if wrote.Spec.ExcessReplicas != nil {
		p.note(&p.field, answer.Spec.ExcessReplicas == nil)
	}
	if wrote.Spec.ReserveWitness {
		p.note(&p.witness, !answer.Spec.ReserveWitness)
	}
	if wrote.Status.ExcessReplicas > 0 {
		p.note(&p.numbers, answer.Status.ExcessReplicas == 0)
	}
	if wrote.Status.Selector != "" {
		p.note(&p.selector, answer.Status.Selector == "")
	}
}

// note remembers whether a field is dropped.
func (p *pruned) note(field *atomic.Bool, dropped bool) {
	if was := field.Swap(dropped); was && !dropped {
		for _, one := range []*atomic.Bool{&p.field, &p.witness, &p.numbers, &p.selector} {
			one.Store(false)
		}
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

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Reasons of the condition ReplicaFailure, and of events.
const (
	FailedCreate = "FailedCreate"
	// InvalidSpec and SelectingAll mean that nothing is done about the machines of a MachineSet.
	InvalidSpec  = "InvalidSpec"
	SelectingAll = "SelectingAll"
)

// Failure is why a MachineSet cannot have the machines that it is to have.
type Failure struct{ Reason, Message string }

// validate returns what selects the machines of a MachineSet, or what is wrong with its spec. The
// selector of an invalid MachineSet selects everything that it controls, so that it can be deleted.
// Its template must match, since each machine that does not would be released and created again.
func validate(s *mcm.MachineSet) (labels.Selector, *Failure) {
	wrong := func(format string, args ...any) (labels.Selector, *Failure) {
		return labels.Everything(), &Failure{InvalidSpec, fmt.Sprintf(format, args...)}
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	class := s.Spec.Template.Spec.Class
	switch {
	case err != nil:
		return wrong("spec.selector: %v", err)
	case s.Spec.Selector == nil || selector.Empty():
		return labels.Everything(), &Failure{SelectingAll, "spec.selector is empty, so it would select all machines. Set matchLabels to labels of the template"}
	case len(s.Spec.Template.Labels) == 0 || !selector.Matches(labels.Set(s.Spec.Template.Labels)):
		return wrong("spec.selector does not match spec.template.metadata.labels")
	case s.Spec.Replicas < 0:
		return wrong("spec.replicas is negative")
	case class.Kind == "" || class.Name == "":
		return wrong("spec.template.spec.class needs a kind and a name")
	}
	return selector, nil
}

// claim returns the machines that a MachineSet controls and selects, by name, or what it has to adopt
// and to release first. A MachineSet that is being deleted does neither. Two MachineSets do not adopt
// the same machine.
func claim(s Set, selector labels.Selector, orphans []*mcm.Machine, adopted map[types.UID]bool) (claimed []*mcm.Machine, claims []Claim) {
	leaving := s.Object.DeletionTimestamp != nil
	for _, m := range sortedMachines(s.Machines) {
		switch {
		case selector.Matches(labels.Set(m.Labels)):
			claimed = append(claimed, m)
		case !leaving:
			claims = append(claims, Claim{Set: s.Object, Machine: m})
		}
	}
	if leaving {
		return claimed, nil
	}
	for _, m := range sortedMachines(orphans) {
		if m.DeletionTimestamp == nil && !adopted[m.UID] && selector.Matches(labels.Set(m.Labels)) {
			adopted[m.UID] = true
			claims = append(claims, Claim{Set: s.Object, Machine: m, Adopt: true})
		}
	}
	return claimed, claims
}

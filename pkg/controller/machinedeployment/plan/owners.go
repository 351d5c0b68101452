// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// claimSets returns the MachineSets that a MachineDeployment controls and selects, by age, and what it
// has to adopt and to release first. One that is invalid or is being deleted does neither.
func claimSets(v View, selector labels.Selector, invalid bool) (mine []Set, claims []SetClaim) {
	keeps := invalid || v.Deployment.DeletionTimestamp != nil
	for _, s := range sortedSets(v.Sets) {
		switch {
		case selector.Matches(labels.Set(s.Object.Labels)):
			mine = append(mine, s)
		case !keeps:
			claims = append(claims, SetClaim{Set: s.Object})
		}
	}
	if keeps {
		return mine, nil
	}
	for _, s := range slices.SortedFunc(slices.Values(v.OrphanSets), byAge) {
		if selector.Matches(labels.Set(s.Labels)) && s.DeletionTimestamp == nil && !slices.ContainsFunc(v.Others, v.yieldsTo(s)) {
			claims = append(claims, SetClaim{Set: s, Adopt: true})
		}
	}
	return mine, claims
}

// yieldsTo returns whether a MachineDeployment adopts a MachineSet rather than that of the view: it is
// older.
func (v View) yieldsTo(s *mcm.MachineSet) func(*machine.MachineDeployment) bool {
	return func(d *machine.MachineDeployment) bool {
		selector, invalid := validateDeployment(d)
		age := cmp.Or(d.CreationTimestamp.Compare(v.Deployment.CreationTimestamp.Time), cmp.Compare(d.Name, v.Deployment.Name))
		return age < 0 && invalid == nil && d.DeletionTimestamp == nil && selector.Matches(labels.Set(s.Labels))
	}
}

// validateDeployment returns what selects the MachineSets of a MachineDeployment, or what is wrong with
// its spec. The selector of an invalid MachineDeployment selects everything that it controls, so that
// it can be deleted.
func validateDeployment(d *machine.MachineDeployment) (labels.Selector, *Failure) {
	wrong := func(format string, args ...any) (labels.Selector, *Failure) {
		return labels.Everything(), &Failure{InvalidSpec, fmt.Sprintf(format, args...)}
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	class := d.Spec.Template.Spec.Class
	switch {
	case err != nil:
		return wrong("spec.selector: %v", err)
	case d.Spec.Selector == nil || selector.Empty():
		return labels.Everything(), &Failure{SelectingAll, "spec.selector is empty, so it would select all machine sets. Set matchLabels to labels of the template"}
	case len(d.Spec.Template.Labels) == 0 || !selector.Matches(labels.Set(with(d.Spec.Template.Labels, hashLabel, "0"))):
		return wrong("spec.selector does not match spec.template.metadata.labels")
	case d.Spec.Replicas < 0:
		return wrong("spec.replicas is negative")
	case class.Kind == "" || class.Name == "":
		return wrong("spec.template.spec.class needs a kind and a name")
	}
	if message := validateStrategy(d.Spec.Strategy, int(d.Spec.Replicas)); message != "" {
		return wrong("%s", message)
	}
	return selector, nil
}

// validateStrategy returns what is wrong with a strategy; empty if nothing is.
func validateStrategy(s mcm.MachineDeploymentStrategy, replicas int) string {
	var limits *mcm.UpdateConfiguration
	switch s.Type {
	case mcm.RecreateMachineDeploymentStrategyType:
		return ""
	case mcm.RollingUpdateMachineDeploymentStrategyType:
		if s.RollingUpdate != nil {
			limits = &s.RollingUpdate.UpdateConfiguration
		}
	case mcm.InPlaceUpdateMachineDeploymentStrategyType:
		if s.InPlaceUpdate != nil {
			limits = &s.InPlaceUpdate.UpdateConfiguration
			if by := s.InPlaceUpdate.OrchestrationType; by != mcm.OrchestrationTypeAuto && by != mcm.OrchestrationTypeManual {
				return "spec.strategy.inPlaceUpdate.orchestrationType must be Auto or Manual"
			}
		}
	default:
		return "spec.strategy.type must be Recreate, RollingUpdate or InPlaceUpdate"
	}
	if limits == nil || !isNumber(limits.MaxSurge, replicas) || !isNumber(limits.MaxUnavailable, replicas) {
		return fmt.Sprintf("spec.strategy of type %s needs a maxSurge and a maxUnavailable, each a number or a percentage", s.Type)
	}
	return ""
}

// isNumber reports whether something is a number of machines, or a percentage of replicas.
func isNumber(n *intstr.IntOrString, replicas int) bool {
	value, err := intstr.GetScaledValueFromIntOrPercent(n, replicas, true)
	return err == nil && int(int32(value)) == value
}

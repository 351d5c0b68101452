// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// claimSets returns the MachineSets that a MachineDeployment controls and selects, by age, and what it
// has to adopt and to release first. One that is being deleted does neither.
func claimSets(v View, selector labels.Selector) (mine []Set, claims []SetClaim) {
	leaving := v.Deployment.DeletionTimestamp != nil
	for _, s := range sortedSets(v.Sets) {
		switch {
		case selector.Matches(labels.Set(s.Object.Labels)):
			mine = append(mine, s)
		case !leaving:
			claims = append(claims, SetClaim{Set: s.Object})
		}
	}
	for _, s := range v.OrphanSets {
		if !leaving && s.DeletionTimestamp == nil && selector.Matches(labels.Set(s.Labels)) {
			claims = append(claims, SetClaim{Set: s, Adopt: true})
		}
	}
	return mine, claims
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
	case len(d.Spec.Template.Labels) == 0 || !selector.Matches(labels.Set(d.Spec.Template.Labels)):
		return wrong("spec.selector does not match spec.template.metadata.labels")
	case d.Spec.Replicas < 0:
		return wrong("spec.replicas is negative")
	case class.Kind == "" || class.Name == "":
		return wrong("spec.template.spec.class needs a kind and a name")
	}
	if f := validateStrategy(d.Spec.Strategy); f != nil {
		return labels.Everything(), f
	}
	return selector, nil
}

// validateStrategy returns what is wrong with a strategy.
func validateStrategy(s mcm.MachineDeploymentStrategy) *Failure { return nil }

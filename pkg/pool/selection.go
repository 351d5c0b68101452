// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Selection decides which MachineDeployments a Reserve selects.
func Selection(p autoscaling.ReservePools) (func(*machine.MachineDeployment) bool, error) {
	byLabel, err := metav1.LabelSelectorAsSelector(p.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.pools.selector: %w", err)
	}
	return func(d *machine.MachineDeployment) bool {
		worker := WorkerPoolOf(d)
		return slices.Contains(p.Names, d.Name) || byLabel.Matches(labels.Set(d.Labels)) || worker != "" && slices.Contains(p.WorkerPools, worker)
	}, nil
}

// PrepareText returns what a MachineDeployment asks to have prepared, or else what its pool asks for.
func PrepareText(d *machine.MachineDeployment) string {
	return cmp.Or(d.Annotations[machine.PrepareAnnotation], d.Spec.Template.Spec.NodeTemplateSpec.Annotations[machine.PrepareAnnotation])
}

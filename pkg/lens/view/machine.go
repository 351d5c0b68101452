// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// ShowMachine returns machine-controller-manager's view of a Machine. The result may share parts
// with m, which is not changed.
func ShowMachine(m *v1alpha1.Machine) *v1alpha1.Machine {
	return showWithout(m, pool.AddedByMark(m))
}

func showWithout(m *v1alpha1.Machine, a pool.Added) *v1alpha1.Machine {
	shown := *m
	shown.Annotations = withoutOurs(m.Annotations)
	shown.Spec.NodeTemplateSpec = a.Without(m.Spec.NodeTemplateSpec)
	return &shown
}

// RestoreMachine applies a changed view to the stored object.
func RestoreMachine(stored []byte, after *v1alpha1.Machine) ([]byte, error) {
	m := &v1alpha1.Machine{}
	live, err := decodeStored(stored, m)
	if err != nil {
		return nil, err
	}
	a := pool.AddedByMark(m)
	written := *after
	written.Annotations = withoutOurs(after.Annotations)
	hidden := removeTaints(live, a)
	if !applyChange(live, showWithout(m, a), &written) {
		return stored, nil
	}
	keepOurs(live, m.Annotations)
	if restoreTaints(live, hidden, &a, &written) {
		branch(live, "metadata", "annotations")[machine.ReserveAnnotation] = a.Mark.String()
	}
	return json.Marshal(live)
}

// removeTaints removes the added taints from the stored object, so that the list is that of the
// view, and returns them.
func removeTaints(live tree, a pool.Added) []any {
	if len(a.Taints) == 0 {
		return nil
	}
	spec := branch(live, "spec", "nodeTemplate", "spec")
	all := spec["taints"].([]any) // its typed form has taints
	var hidden []any
	for _, i := range a.Taints {
		hidden = append(hidden, all[i])
	}
	spec["taints"] = withoutIndices(all, a.Taints)
	return hidden
}

// restoreTaints puts back what was added, except for what the controllers now write themselves:
// that belongs to the template from now on, and the mark no longer records it (V4), also if it was
// removed meanwhile. It reports whether the mark has changed.
func restoreTaints(live tree, hidden []any, a *pool.Added, after *v1alpha1.Machine) (changed bool) {
	template := after.Spec.NodeTemplateSpec
	left := machine.Reserve{Since: a.Mark.Since}
	for _, taint := range a.Mark.Taints {
		if !slices.ContainsFunc(template.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			left.Taints = append(left.Taints, taint)
		}
	}
	for key, value := range a.Mark.Annotations {
		if _, theirs := template.Annotations[key]; !theirs {
			if left.Annotations == nil {
				left.Annotations = map[string]string{}
			}
			left.Annotations[key] = value
		}
	}
	for n, i := range a.Taints {
		mine := hidden[n].(tree) // it was read as a taint
		if slices.ContainsFunc(left.Taints, func(t corev1.Taint) bool { return t.Key == mine["key"] && string(t.Effect) == mine["effect"] }) {
			spec := branch(live, "spec", "nodeTemplate", "spec")
			others, _ := spec["taints"].([]any)
			spec["taints"] = slices.Insert(slices.Clone(others), min(i, len(others)), hidden[n])
		}
	}
	for key, value := range a.Annotations {
		if _, mine := left.Annotations[key]; mine {
			branch(live, "spec", "nodeTemplate", "metadata", "annotations")[key] = value
		}
	}
	changed = len(left.Taints) != len(a.Mark.Taints) || len(left.Annotations) != len(a.Mark.Annotations)
	a.Mark = left
	return changed
}

// withoutIndices returns a list without the elements at some indices.
func withoutIndices(list []any, places []int) []any {
	var left []any
	for i, element := range list {
		if !slices.Contains(places, i) {
			left = append(left, element)
		}
	}
	return left
}

// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// addedParts are the parts of a Machine's mark that it really has: the index of each taint in its
// list, and the annotations.
type addedParts struct {
	mark        machine.Reserve
	taints      []int
	annotations map[string]string
}

// ShowMachine returns machine-controller-manager's view of a Machine. The result may share parts
// with m, which is not changed.
func ShowMachine(m *v1alpha1.Machine) *v1alpha1.Machine {
	return showWithout(m, findAdded(m))
}

func showWithout(m *v1alpha1.Machine, a addedParts) *v1alpha1.Machine {
	shown := *m
	shown.Annotations = withoutOurs(m.Annotations)
	template := &shown.Spec.NodeTemplateSpec
	if len(a.taints) > 0 {
		template.Spec.Taints = withoutIndices(template.Spec.Taints, a.taints)
	}
	if len(a.annotations) > 0 {
		template.Annotations = maps.Clone(template.Annotations)
		for key := range a.annotations {
			delete(template.Annotations, key)
		}
		if len(template.Annotations) == 0 {
			template.Annotations = nil
		}
	}
	return &shown
}

// RestoreMachine applies a changed view to the stored object.
func RestoreMachine(stored []byte, after *v1alpha1.Machine) ([]byte, error) {
	m := &v1alpha1.Machine{}
	live, err := decodeStored(stored, m)
	if err != nil {
		return nil, err
	}
	a := findAdded(m)
	written := *after
	written.Annotations = withoutOurs(after.Annotations)
	hidden := a.removeTaints(live)
	if !applyChange(live, showWithout(m, a), &written) {
		return stored, nil
	}
	keepOurs(live, m.Annotations)
	if a.restoreTaints(live, hidden, &written) {
		branch(live, "metadata", "annotations")[machine.ReserveAnnotation] = a.mark.String()
	}
	return json.Marshal(live)
}

// findAdded finds what the mark records. If a taint is there twice, the last one is ours, because
// we append. A mark that cannot be parsed records nothing.
func findAdded(m *v1alpha1.Machine) addedParts {
	text, marked := m.Annotations[machine.ReserveAnnotation]
	if !marked {
		return addedParts{}
	}
	mark, _ := machine.ParseReserve(text)
	a := addedParts{mark: mark, annotations: map[string]string{}}
	template := m.Spec.NodeTemplateSpec
	for _, taint := range mark.Taints {
		for i := len(template.Spec.Taints) - 1; i >= 0; i-- {
			if template.Spec.Taints[i] == taint {
				a.taints = append(a.taints, i)
				break
			}
		}
	}
	slices.Sort(a.taints) // each is put back where it was
	for key, value := range mark.Annotations {
		if held, there := template.Annotations[key]; there && held == value {
			a.annotations[key] = value
		}
	}
	return a
}

// removeTaints removes the added taints from the stored object, so that the list is that of the
// view, and returns them.
func (a addedParts) removeTaints(live tree) []any {
	if len(a.taints) == 0 {
		return nil
	}
	spec := branch(live, "spec", "nodeTemplate", "spec")
	all := spec["taints"].([]any) // its typed form has taints
	var hidden []any
	for _, i := range a.taints {
		hidden = append(hidden, all[i])
	}
	spec["taints"] = withoutIndices(all, a.taints)
	return hidden
}

// restoreTaints puts back what was added, except for what the controllers now write themselves:
// that belongs to the template from now on, and the mark no longer records it (V4), also if it was
// removed meanwhile. It reports whether the mark has changed.
func (a *addedParts) restoreTaints(live tree, hidden []any, after *v1alpha1.Machine) (changed bool) {
	template := after.Spec.NodeTemplateSpec
	left := machine.Reserve{Since: a.mark.Since}
	for _, taint := range a.mark.Taints {
		if !slices.ContainsFunc(template.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			left.Taints = append(left.Taints, taint)
		}
	}
	for key, value := range a.mark.Annotations {
		if _, theirs := template.Annotations[key]; !theirs {
			left.Annotations = withEntry(left.Annotations, key, value)
		}
	}
	for n, i := range a.taints {
		mine := hidden[n].(tree) // it was read as a taint
		if slices.ContainsFunc(left.Taints, func(t corev1.Taint) bool { return t.Key == mine["key"] && string(t.Effect) == mine["effect"] }) {
			spec := branch(live, "spec", "nodeTemplate", "spec")
			others, _ := spec["taints"].([]any)
			spec["taints"] = slices.Insert(slices.Clone(others), min(i, len(others)), hidden[n])
		}
	}
	for key, value := range a.annotations {
		if _, mine := left.Annotations[key]; mine {
			branch(live, "spec", "nodeTemplate", "metadata", "annotations")[key] = value
		}
	}
	changed = len(left.Taints) != len(a.mark.Taints) || len(left.Annotations) != len(a.mark.Annotations)
	a.mark = left
	return changed
}

// withoutIndices returns a list without the elements at some indices.
func withoutIndices[T any](list []T, places []int) []T {
	var left []T
	for i, element := range list {
		if !slices.Contains(places, i) {
			left = append(left, element)
		}
	}
	return left
}

// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"maps"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Mark returns a copy of a Machine with the taints and annotations of want, which hold it in
// reserve. A taint of the same key and effect, or an annotation of the same key, that the
// Machine has already stays unchanged, and is not recorded as added. A Machine that is
// in reserve already gets a new mark.
func Mark(m *mcm.Machine, want machine.Reserve) *mcm.Machine {
	m = Unmark(m) // a copy: the template's lists are shared
	mark := machine.Reserve{Since: want.Since}
	template := &m.Spec.NodeTemplateSpec
	for _, taint := range want.Taints {
		same := func(t corev1.Taint) bool { return t.MatchTaint(&taint) }
		if !slices.ContainsFunc(template.Spec.Taints, same) {
			taint.TimeAdded = nil
			mark.Taints = append(mark.Taints, taint)
			template.Spec.Taints = append(template.Spec.Taints, taint)
		}
	}
	for key, value := range want.Annotations {
		if _, there := template.Annotations[key]; !there {
			mark.Annotations = withEntry(mark.Annotations, key, value)
			template.Annotations = withEntry(template.Annotations, key, value)
		}
	}
	m.Annotations = withEntry(m.Annotations, machine.ReserveAnnotation, mark.String())
	return m
}

// Unmark returns a copy of a Machine that serves: without its mark, and without what the mark
// records as added. If the mark cannot be parsed, only the mark is removed.
func Unmark(m *mcm.Machine) *mcm.Machine {
	m = m.DeepCopy()
	m.Spec.NodeTemplateSpec, _ = WithoutMark(m)
	if delete(m.Annotations, machine.ReserveAnnotation); len(m.Annotations) == 0 {
		m.Annotations = nil
	}
	return m
}

func withEntry(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// WithoutMark returns the node template of a Machine without what its mark records as added, and the mark.
// If a taint is there twice, the last one is ours, because we append. A mark that cannot be parsed records
// nothing. The Machine is not changed.
func WithoutMark(m *mcm.Machine) (mcm.NodeTemplateSpec, machine.Reserve) {
	template := m.Spec.NodeTemplateSpec
	text, marked := m.Annotations[machine.ReserveAnnotation]
	if !marked {
		return template, machine.Reserve{} // most are not
	}
	mark, _ := machine.ParseReserve(text)
	for _, taint := range mark.Taints {
		for i := len(template.Spec.Taints) - 1; i >= 0; i-- {
			if template.Spec.Taints[i] == taint {
				template.Spec.Taints = slices.Delete(slices.Clone(template.Spec.Taints), i, i+1)
				break
			}
		}
	}
	template.Annotations = maps.Clone(template.Annotations)
	maps.DeleteFunc(template.Annotations, func(key, held string) bool {
		value, added := mark.Annotations[key]
		return added && held == value
	})
	if len(template.Spec.Taints) == 0 {
		template.Spec.Taints = nil
	}
	if len(template.Annotations) == 0 {
		template.Annotations = nil
	}
	return template, mark
}

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
	m.Spec.NodeTemplateSpec = AddedByMark(m).Without(m.Spec.NodeTemplateSpec)
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

// Added are the parts of a Machine's mark that its node template really has: the index of each
// taint in its list, and the annotations. Mark is the whole mark.
type Added struct {
	Mark        machine.Reserve
	Taints      []int
	Annotations map[string]string
}

// AddedByMark finds what the mark of a Machine records. If a taint is there twice, the last one is
// ours, because we append. A mark that cannot be parsed records nothing.
func AddedByMark(m *mcm.Machine) Added {
	text, marked := m.Annotations[machine.ReserveAnnotation]
	if !marked {
		return Added{}
	}
	mark, _ := machine.ParseReserve(text)
	a := Added{Mark: mark, Annotations: map[string]string{}}
	template := m.Spec.NodeTemplateSpec
	for _, taint := range mark.Taints {
		for i := len(template.Spec.Taints) - 1; i >= 0; i-- {
			if template.Spec.Taints[i] == taint {
				a.Taints = append(a.Taints, i)
				break
			}
		}
	}
	slices.Sort(a.Taints) // the lens puts each back where it was
	for key, value := range mark.Annotations {
		if held, there := template.Annotations[key]; there && held == value {
			a.Annotations[key] = value
		}
	}
	return a
}

// Without returns the node template of the Machine without what was added. It may share parts with
// the template, which is not changed.
func (a Added) Without(template mcm.NodeTemplateSpec) mcm.NodeTemplateSpec {
	if len(a.Taints) > 0 {
		var left []corev1.Taint
		for i, taint := range template.Spec.Taints {
			if !slices.Contains(a.Taints, i) {
				left = append(left, taint)
			}
		}
		template.Spec.Taints = left
	}
	if len(a.Annotations) > 0 {
		template.Annotations = maps.Clone(template.Annotations)
		for key := range a.Annotations {
			delete(template.Annotations, key)
		}
		if len(template.Annotations) == 0 {
			template.Annotations = nil
		}
	}
	return template
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// changes returns what to change of the machines that are not deleted now: what they take from the
// template, and their preserve values.
func (s *set) changes(preserve map[types.UID]string, deletions []Deletion) (changes []MachineChange) {
	deleted := map[types.UID]bool{}
	for _, d := range deletions {
		deleted[d.Machine.UID] = true
	}
	for _, m := range s.machines {
		after := m
		if s.hasOldTemplate(m) {
			after = s.withTemplate(after)
		}
		if value, changes := preserve[m.UID]; changes {
			after = withPreserveValue(after, value)
		}
		if before := s.lookedAt[m.UID]; after != before && !deleted[m.UID] {
			changes = append(changes, MachineChange{before, after})
		}
	}
	return changes
}

// hasOldTemplate reports whether a machine differs from the template in what its machines take from it
// as long as they exist. Those that have failed or are leaving take only the kind of the class.
func (s *set) hasOldTemplate(m *mcm.Machine) bool {
	is, want := &m.Spec, &s.Object.Spec.Template.Spec
	template, _ := pool.WithoutMark(m)
	return is.Class.Kind != want.Class.Kind || machineutils.IsMachineActive(m) &&
		(!equality.Semantic.DeepEqual(template, want.NodeTemplateSpec) || !equality.Semantic.DeepEqual(is.MachineConfiguration, want.MachineConfiguration))
}

func (s *set) withTemplate(m *mcm.Machine) *mcm.Machine {
	m = m.DeepCopy()
	want := s.Object.Spec.Template.Spec.DeepCopy()
	m.Spec.Class.Kind = want.Class.Kind
	if machineutils.IsMachineActive(m) {
		_, mark := pool.WithoutMark(m)
		m.Spec.NodeTemplateSpec, m.Spec.MachineConfiguration = want.NodeTemplateSpec, want.MachineConfiguration
		if pool.Marked(m) {
			delete(m.Annotations, machine.ReserveAnnotation)
			m = pool.Mark(m, mark)
		}
	}
	return m
}

func withPreserveValue(m *mcm.Machine, value string) *mcm.Machine {
	m = m.DeepCopy()
	if value == "" {
		delete(m.Annotations, machineutils.PreserveMachineAnnotationKey)
		return m
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, machineutils.PreserveMachineAnnotationKey, value)
	return m
}

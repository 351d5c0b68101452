// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

const autoPreserved = machineutils.PreserveMachineAnnotationValueAutoPreserved

func isAutoPreserved(m *mcm.Machine) bool {
	return m.Annotations[machineutils.PreserveMachineAnnotationKey] == autoPreserved
}

// preservations returns the new preserve values of machines; an empty one removes the value. While
// there are fewer preserved machines than allowed, the newest failed ones are preserved; while there
// are more, the oldest ones are given up.
func (s *set) preservations() map[types.UID]string {
	var preserved, unpreserved []*mcm.Machine
	for _, m := range s.machines {
		switch {
		case isAutoPreserved(m):
			preserved = append(preserved, m)
		case isFailed(m) && m.DeletionTimestamp == nil && !hasPreserveValue(m):
			unpreserved = append(unpreserved, m)
		}
	}
	oldestFirst := func(a, b *mcm.Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }
	slices.SortStableFunc(preserved, oldestFirst)
	slices.SortStableFunc(unpreserved, func(a, b *mcm.Machine) int { return oldestFirst(b, a) })
	values, free := map[types.UID]string{}, int(s.Object.Spec.AutoPreserveFailedMachineMax)-len(preserved)
	for _, m := range unpreserved[:min(max(free, 0), len(unpreserved))] {
		values[m.UID] = autoPreserved
	}
	for _, m := range preserved[:min(max(-free, 0), len(preserved))] {
		values[m.UID] = ""
	}
	return values
}

func hasPreserveValue(m *mcm.Machine) bool {
	return machineutils.AllowedPreserveAnnotationValues.Has(m.Annotations[machineutils.PreserveMachineAnnotationKey])
}

// isProtected reports whether a failed machine is preserved, or is about to be. A value that is
// removed now protects it once more, because the machine controller has yet to see that.
func (s *set) isProtected(m *mcm.Machine, value string) bool {
	if m.Status.CurrentStatus.PreserveExpiryTime != nil {
		return pool.Preserved(m, s.Now)
	}
	if value == "" {
		value = m.Annotations[machineutils.PreserveMachineAnnotationKey]
	}
	switch s.effectiveValue(m, value) {
	case machineutils.PreserveMachineAnnotationValueNow, machineutils.PreserveMachineAnnotationValueWhenFailed, autoPreserved:
		return true
	}
	return false
}

// effectiveValue returns the preserve value that counts. That of the Node does if it has one, or had
// one that the machine controller has applied.
func (s *set) effectiveValue(m *mcm.Machine, value string) string {
	ofNode := ""
	if name := m.Labels[mcm.NodeLabelKey]; name != "" && s.Nodes != nil {
		node := s.Nodes[name]
		if node == nil {
			return ""
		}
		ofNode = node.Annotations[machineutils.PreserveMachineAnnotationKey]
	}
	if ofNode == "" && m.Annotations[machineutils.LastAppliedNodePreserveValueAnnotationKey] == "" {
		return value
	}
	return ofNode
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// markOld tells others of the machines that are to be updated: the machine controller and the node agent
// update the Nodes that are candidates and selected, and MachineSets without new machines need no others.
func (d *deployment) markOld() {
	if slices.ContainsFunc(d.old, (*set).serves) {
		for _, s := range d.old {
			disableScaleUp(s)
		}
	}
	d.protectFromScaleDown()
	d.preferOthers()
	for _, s := range d.old {
		for _, m := range s.machines {
			d.labelNode(m, mcm.LabelKeyNodeCandidateForUpdate)
		}
	}
}

func (d *deployment) labelNode(m *mcm.Machine, key string) {
	d.changeNode(m, func(node *corev1.Node) { node.Labels = with(node.Labels, key, "true") })
}

// selectForUpdate selects machines of old MachineSets, the oldest first, as long as enough others serve. A
// selected machine does not until it has moved.
func (d *deployment) selectForUpdate() {
	size, selected := d.newest.Object.Spec.Replicas, d.selected()
	if selected+size >= d.replicas() {
		return
	}
	serving := d.newest.serving() - d.selectedNewest() - selected
	for _, s := range d.old {
		serving += s.serving()
	}
	left := min(serving-(d.replicas()-d.maxUnavailable()), d.replicas()-size)
	for _, s := range d.old {
		if s.missing() >= 0 { // otherwise one of them might be deleted
			left -= d.selectOf(s, left)
		}
	}
}

// selected counts the machines of old MachineSets that are selected.
func (d *deployment) selected() (n int32) {
	for _, s := range d.old {
		for _, m := range s.machines {
			if isSelected(d.nodeOf(m)) && !isTerminating(m) {
				n++
			}
		}
	}
	return n
}

// selectedNewest counts the machines of the newest MachineSet that serve and are selected. That was an old
// one before.
func (d *deployment) selectedNewest() (n int32) {
	for _, m := range d.newest.machines {
		if isSelected(d.nodeOf(m)) && pool.Ready(m.Status.CurrentStatus.Phase) {
			n++
		}
	}
	return n
}

// selectOf selects up to n machines of a MachineSet, by name, and returns how many: those in reserve first,
// so that each pod moves only once. An update of a machine that is not available might never end.
func (d *deployment) selectOf(s *set, n int32) (selected int32) {
	byRole := slices.SortedStableFunc(slices.Values(s.machines), func(a, b *mcm.Machine) int { return falseFirst(!pool.Marked(a), !pool.Marked(b)) })
	for _, m := range byRole {
		node := d.nodeOf(m)
		if selected < n && node != nil && !isSelected(node) && m.DeletionTimestamp == nil && pool.Ready(m.Status.CurrentStatus.Phase) {
			d.labelNode(m, mcm.LabelKeyNodeSelectedForUpdate)
			selected++
		}
	}
	return selected
}

// finishUpdates removes the marks of an update from the Nodes of the newest MachineSet. These accept pods
// again once critical components are ready.
func (d *deployment) finishUpdates() {
	for _, m := range d.newest.machines {
		if node := d.nodeOf(m); isUpdating(m) || !hasSucceeded(node) || reasonOfUpdate(node.Status.Conditions) != mcm.UpdateSuccessful {
			continue
		}
		d.changeNode(m, func(node *corev1.Node) {
			for _, key := range updateLabels {
				node.Labels = without(node.Labels, key)
			}
			node.Annotations = without(node.Annotations, mcm.AnnotationKeyMachineUpdateFailedReason)
			node.Spec.Unschedulable = false
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isPreference)
			if !slices.ContainsFunc(node.Spec.Taints, isCritical) {
				node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: machineutils.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule})
			}
		})
	}
}

// updateLabels are the labels of a Node that is updated in place.
var updateLabels = []string{mcm.LabelKeyNodeCandidateForUpdate, mcm.LabelKeyNodeSelectedForUpdate, mcm.LabelKeyNodeUpdateResult}

// SameUpdate reports whether two versions of a Node say the same about its update.
func SameUpdate(a, b *corev1.Node) bool {
	differs := func(key string) bool { return a.Labels[key] != b.Labels[key] }
	return !slices.ContainsFunc(updateLabels, differs) && reasonOfUpdate(a.Status.Conditions) == reasonOfUpdate(b.Status.Conditions)
}

// nodeOf returns the Node of a machine as it will be, nil if there is none.
func (d *deployment) nodeOf(m *mcm.Machine) *corev1.Node {
	name := m.Labels[mcm.NodeLabelKey]
	if changed := d.nodes[name]; changed != nil {
		return changed
	}
	return d.Nodes[name]
}

func isSelected(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	_, selected := node.Labels[mcm.LabelKeyNodeSelectedForUpdate]
	return selected
}

func hasSucceeded(node *corev1.Node) bool {
	return node != nil && node.Labels[mcm.LabelKeyNodeUpdateResult] == mcm.LabelValueNodeUpdateSuccessful
}

// reasonOfUpdate returns the reason of the condition InPlaceUpdate; empty if there is none.
func reasonOfUpdate(conditions []corev1.NodeCondition) string {
	for _, c := range conditions {
		if c.Type == mcm.NodeInPlaceUpdate {
			return c.Reason
		}
	}
	return ""
}

func isCritical(t corev1.Taint) bool {
	return t.Key == machineutils.TaintNodeCriticalComponentsNotReady && t.Effect == corev1.TaintEffectNoSchedule
}

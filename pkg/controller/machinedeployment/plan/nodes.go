// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller/autoscaler"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// changeNode changes the Node of a machine, if it has one.
func (d *deployment) changeNode(m *mcm.Machine, change func(*corev1.Node)) {
	name := m.Labels[mcm.NodeLabelKey]
	stored := d.Nodes[name]
	if stored == nil {
		return
	}
	if d.nodes[name] == nil {
		d.nodes[name] = stored.DeepCopy()
	}
	change(d.nodes[name])
}

// nodeChanges returns what differs in Nodes, by name.
func (d *deployment) nodeChanges() (changes []NodeChange) {
	for _, name := range slices.Sorted(maps.Keys(d.nodes)) {
		before, after := d.Nodes[name], d.nodes[name]
		if !equality.Semantic.DeepEqual(before.ObjectMeta, after.ObjectMeta) || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
			changes = append(changes, NodeChange{before, after, d.urgent[name]})
		}
	}
	return changes
}

// preferOthers asks the scheduler to prefer Nodes other than those of old MachineSets, once for each of
// these: later Nodes are those of machines that came in place of broken ones.
func (d *deployment) preferOthers() {
	for _, s := range d.old {
		if _, done := s.stored.Annotations[PreferNoSchedule]; done {
			continue
		}
		tainted := true
		for _, m := range s.machines {
			d.changeNode(m, func(node *corev1.Node) {
				if !slices.ContainsFunc(node.Spec.Taints, isPreference) {
					tainted = false
					node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: PreferNoSchedule, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule})
				}
			})
		}
		if tainted {
			s.Object.Annotations = with(s.Object.Annotations, PreferNoSchedule, "True")
		}
	}
}

// preferAgain ends that for a MachineSet that was an old one before.
func (d *deployment) preferAgain(s *set) {
	if _, marked := s.stored.Annotations[PreferNoSchedule]; !marked {
		return
	}
	tainted := false
	for _, m := range s.machines {
		d.changeNode(m, func(node *corev1.Node) {
			tainted = tainted || slices.ContainsFunc(node.Spec.Taints, isPreference)
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isPreference)
		})
	}
	if !tainted {
		s.Object.Annotations = without(s.Object.Annotations, PreferNoSchedule)
	}
}

func isPreference(t corev1.Taint) bool {
	return t.Key == PreferNoSchedule && t.Effect == corev1.TaintEffectPreferNoSchedule
}

// protectFromScaleDown asks cluster-autoscaler to remove no Node while there are old machines that
// serve.
func (d *deployment) protectFromScaleDown() {
	if !d.Settings.ProtectInRollout || !slices.ContainsFunc(d.old, (*set).serves) {
		return
	}
	d.changeNodes(func(_ *mcm.Machine, node *corev1.Node) {
		node.Annotations = with(node.Annotations, autoscaler.ClusterAutoscalerScaleDownDisabledAnnotationKey, autoscaler.ClusterAutoscalerScaleDownDisabledAnnotationValue)
		node.Annotations = with(node.Annotations, autoscaler.ClusterAutoscalerScaleDownDisabledAnnotationByMCMKey, autoscaler.ClusterAutoscalerScaleDownDisabledAnnotationByMCMValue)
	})
}

// serves reports whether a MachineSet has machines that pods can run on.
func (s *set) serves() bool {
	n := s.count()
	return s.stored.Spec.Replicas != 0 && n.labeled != 0 && n.ready != 0
}

// unprotect ends that, except for machines that are preserved, which the machine controller protects in
// the same way.
func (d *deployment) unprotect() {
	if !d.Settings.ProtectInRollout {
		return
	}
	d.changeNodes(func(m *mcm.Machine, node *corev1.Node) {
		if _, ours := node.Annotations[autoscaler.ClusterAutoscalerScaleDownDisabledAnnotationByMCMKey]; ours && m.Status.CurrentStatus.PreserveExpiryTime.IsZero() {
			node.Annotations = without(node.Annotations, autoscaler.ClusterAutoscalerScaleDownDisabledAnnotationKey)
			node.Annotations = without(node.Annotations, autoscaler.ClusterAutoscalerScaleDownDisabledAnnotationByMCMKey)
		}
	})
}

// changeNodes changes the Nodes of all machines.
func (d *deployment) changeNodes(change func(*mcm.Machine, *corev1.Node)) {
	for _, s := range d.sets() {
		for _, m := range s.machines {
			d.changeNode(m, func(node *corev1.Node) { change(m, node) })
		}
	}
}

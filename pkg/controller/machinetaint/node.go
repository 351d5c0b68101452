// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// KeptByRollout is the annotation with which machine-controller-manager remembers that it disabled
// scale-down itself, while it replaces machines.
const KeptByRollout = "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"

// NodeChange is one write of a Node.
type NodeChange struct {
	// Machine is the Machine of the Node, with the present Node.
	Machine Machine
	// Hold reports whether the Node gets the reserve mark or loses it.
	Hold   bool
	Taints []corev1.Taint
	// Annotations to set; those with an empty value are to be removed.
	Annotations map[string]string
}

// nodeChanges makes the Nodes have the marks that their Machines will have. Nodes of leaving
// machines do not change, and no Node changes while Nodes cannot be written.
func nodeChanges(v View, machines []MachineChange) []NodeChange {
	marking := map[string]Marking{}
	for _, c := range machines {
		marking[c.Name] = c.Mark
	}
	var free, hold []NodeChange
	if v.Unreachable != "" {
		return nil
	}
	for _, m := range v.Machines {
		if m.Node == nil || m.Node.DeletionTimestamp != nil || m.Object.DeletionTimestamp != nil {
			continue
		}
		mark := marking[m.Object.Name]
		if mark == Hold || mark == Keep && m.Reserve() {
			if c, differs := holdNode(m, v.Settings, v.Now); differs {
				hold = append(hold, c)
			}
		} else if c, differs := freeNode(m); differs {
			free = append(free, c)
		}
	}
	return append(free, hold...)
}

// nodeMarked reports whether a Node has any part of a reserve mark.
func nodeMarked(n *corev1.Node) bool {
	return n.Annotations[v1alpha1.ReserveAnnotation] != "" || pool.HasReserveTaint(n.Spec.Taints)
}

// holdNode puts the whole mark on a Node, in one write. It keeps what other clients put there. The
// taint has no time, because machine-controller-manager compares that by its address and would
// write forever.
func holdNode(m Machine, s Settings, now time.Time) (NodeChange, bool) {
	c := NodeChange{Machine: m, Hold: true, Taints: slices.DeleteFunc(slices.Clone(m.Node.Spec.Taints), func(t corev1.Taint) bool { return m.outdated(t, s) }), Annotations: map[string]string{}}
	differs := len(c.Taints) != len(m.Node.Spec.Taints)
	for _, taint := range s.Taints() {
		if taint.Effect == corev1.TaintEffectNoExecute && (m.Busy() || !m.Marked()) {
			continue // it would evict pods, also those that came since: they are listed again before the Machine is marked
		}
		if !slices.ContainsFunc(c.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			c.Taints = append(c.Taints, taint)
			differs = true
		}
	}
	for key, value := range map[string]string{v1alpha1.ReserveAnnotation: m.heldSince(s, now), v1alpha1.ScaleDownDisabledAnnotation: m.scaleDownDisabled()} {
		if m.Node.Annotations[key] != value {
			c.Annotations[key] = value
			differs = true
		}
	}
	return c, differs
}

// scaleDownDisabled returns the annotation of that name for the Node of a machine in reserve. A
// template may have it by itself, with any value, and machine-controller-manager restores that.
func (m Machine) scaleDownDisabled() string {
	if own, there := m.Object.Spec.NodeTemplateSpec.Annotations[v1alpha1.ScaleDownDisabledAnnotation]; there {
		return own
	}
	return "true"
}

// outdated reports whether a taint of the Node evicts pods although neither the settings nor the
// template want that any more. machine-controller removes it only if it has put it there itself.
func (m Machine) outdated(t corev1.Taint, s Settings) bool {
	return pool.IsReserveTaint(t) && t.Effect == corev1.TaintEffectNoExecute && !slices.Contains(s.Effects, t.Effect) &&
		!slices.ContainsFunc(m.Object.Spec.NodeTemplateSpec.Spec.Taints, func(own corev1.Taint) bool { return own.MatchTaint(&t) })
}

// heldSince returns when the machine entered the reserve, as its Node shows it; that is now for a
// machine that is about to enter it. The template contains it together with the mark, and is read
// first: every sync needs it for every machine, and parsing a mark takes longer.
func (m Machine) heldSince(s Settings, now time.Time) string {
	if value := m.Object.Spec.NodeTemplateSpec.Annotations[v1alpha1.ReserveAnnotation]; value != "" {
		return value
	}
	mark, _ := v1alpha1.ParseReserve(m.Object.Annotations[v1alpha1.ReserveAnnotation]) // empty if it cannot be parsed
	if value := mark.Annotations[v1alpha1.ReserveAnnotation]; value != "" {
		return value
	}
	return laterMark(m.Object, s, now).Annotations[v1alpha1.ReserveAnnotation]
}

// laterMark returns the mark of a machine that enters the reserve after its creation. By its time,
// such a machine differs from one that was created in reserve; see [pool.Machine.Open].
func laterMark(m *mcm.Machine, s Settings, now time.Time) v1alpha1.Reserve {
	if first := m.CreationTimestamp.Add(pool.ClockSkew + time.Second); now.Before(first) {
		now = first
	}
	return s.NewMark(now)
}

// freeNode removes the mark from a Node, in one write, except for what the machine's template has
// by itself, and what machine-controller-manager put there for a rollout.
func freeNode(m Machine) (NodeChange, bool) {
	if !nodeMarked(m.Node) {
		return NodeChange{}, false
	}
	template := pool.Unmark(m.Object).Spec.NodeTemplateSpec
	c := NodeChange{Machine: m, Annotations: map[string]string{}}
	c.Taints = slices.DeleteFunc(slices.Clone(m.Node.Spec.Taints), func(t corev1.Taint) bool {
		return pool.IsReserveTaint(t) && !slices.ContainsFunc(template.Spec.Taints, func(own corev1.Taint) bool { return own.MatchTaint(&t) })
	})
	_, rolling := m.Node.Annotations[KeptByRollout]
	if m.Node.Annotations[v1alpha1.ReserveAnnotation] != "" {
		c.Annotations[v1alpha1.ReserveAnnotation] = ""
		if _, own := template.Annotations[v1alpha1.ScaleDownDisabledAnnotation]; !own && !rolling && m.Node.Annotations[v1alpha1.ScaleDownDisabledAnnotation] != "" {
			c.Annotations[v1alpha1.ScaleDownDisabledAnnotation] = ""
		}
	}
	differs := len(c.Annotations) > 0 || len(c.Taints) != len(m.Node.Spec.Taints)
	if note, has := withoutMarkNote(m); has {
		c.Annotations[machineutils.LastAppliedALTAnnotation] = note
	}
	return c, differs
}

// withoutMarkNote returns the annotation in which machine-controller-manager records what it has
// applied to a Node, without the mark. Otherwise it would write every Node a second time while pods
// wait, since it would find the mark of the Machine gone. The rest stays in the annotation, because
// machine-controller-manager removes things from the Node by it later. It is false if the
// annotation does not mention the mark.
func withoutMarkNote(m Machine) (string, bool) {
	noted := &mcm.Machine{}
	text := m.Node.Annotations[machineutils.LastAppliedALTAnnotation]
	if json.Unmarshal([]byte(text), &noted.Spec.NodeTemplateSpec) != nil {
		return "", false
	}
	noted.Annotations = map[string]string{v1alpha1.ReserveAnnotation: m.Object.Annotations[v1alpha1.ReserveAnnotation]}
	without := pool.Unmark(noted).Spec.NodeTemplateSpec
	if equality.Semantic.DeepEqual(without, noted.Spec.NodeTemplateSpec) {
		return "", false
	}
	note, err := json.Marshal(without)
	return string(note), err == nil
}

// ApplyTo makes the change to a Node.
func (c NodeChange) ApplyTo(node *corev1.Node) {
	node.Spec.Taints = c.Taints
	node.Annotations = maps.Clone(node.Annotations)
	for key, value := range c.Annotations {
		if delete(node.Annotations, key); value != "" {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, key, value)
		}
	}
}

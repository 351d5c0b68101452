// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// HeldState is the beginning of the state of a Machine in reserve.
const HeldState = "Held since "

// withStates adds the new state of each Machine to the changes. The text is true after the change,
// because a Node is written before its Machine. It is not a condition, because
// machine-controller-manager replaces a Machine's conditions with those of its Node.
func withStates(v View, changes []MachineChange, nodes []NodeChange) []MachineChange {
	if v.Unreachable != "" {
		return changes
	}
	taints := map[string][]corev1.Taint{}
	for _, n := range nodes {
		taints[n.Machine.Object.Name] = n.Taints
	}
	for _, m := range v.Machines {
		if !m.writable() {
			continue
		}
		i := slices.IndexFunc(changes, func(c MachineChange) bool { return c.Name == m.Object.Name })
		c := MachineChange{Name: m.Object.Name}
		if i >= 0 {
			c = changes[i]
		}
		after, written := taints[c.Name]
		if !written && m.Node != nil {
			after = m.Node.Spec.Taints
		}
		state := m.stateText(c, after, v)
		switch {
		case state == m.Object.Annotations[v1alpha1.ReserveStateAnnotation]:
		case i >= 0:
			changes[i].State = &state
		default:
			changes = append(changes, MachineChange{Name: c.Name, State: &state})
		}
	}
	return changes
}

// stateText returns the state of a Machine after a change, with these taints on its Node. A machine
// that boots in reserve has none yet, since its mark contains the time: once it is ready, its
// priority changes, and both are one write. For a machine that serves, it contains when it left the
// reserve, if it ever did.
func (m Machine) stateText(c MachineChange, taints []corev1.Taint, v View) string {
	now, before := v.Now.UTC().Format(time.RFC3339), m.Object.Annotations[v1alpha1.ReserveStateAnnotation]
	switch {
	case c.Mark == Hold && m.Node != nil:
		return HeldState + laterMark(m.Object, v.Settings, v.Now).Annotations[v1alpha1.ReserveAnnotation] + m.nodeState(taints)
	case c.Mark == Hold || c.Mark == Keep && m.Reserve() && (m.Node == nil || before == "" && m.booting()):
		return ""
	case c.Mark == Keep && m.Reserve():
		return HeldState + m.heldSince(v.Settings, v.Now) + m.nodeState(taints)
	case c.Mark == Free:
		return fmt.Sprintf("Released at %s (%s)%s", now, c.Why, m.nodeState(taints))
	case strings.HasPrefix(before, HeldState):
		return "Released at " + now + m.nodeState(taints)
	}
	return before
}

func (m Machine) nodeState(taints []corev1.Taint) string {
	switch {
	case m.Node == nil:
		return ""
	case pool.HasReserveTaint(taints):
		return fmt.Sprintf("; node %s carries the reserve taint", m.Node.Name)
	}
	return fmt.Sprintf("; node %s does not carry the reserve taint", m.Node.Name)
}

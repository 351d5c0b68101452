// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// writable reports whether the machine may be written: not before it has its provider id, and not
// while it is leaving.
func (m Machine) writable() bool {
	return m.Object.Spec.ProviderID != "" && m.Object.DeletionTimestamp == nil && m.Object.Status.CurrentStatus.Phase != mcm.MachineTerminating
}

// booting reports whether the machine is still becoming ready.
func (m Machine) booting() bool { return !m.Ready() && !pool.Unhealthy(m.Phase()) }

// markDiffers reports whether the mark holds the machine with other taints than the settings
// define.
func (m Machine) markDiffers(s Settings) bool {
	mark, err := v1alpha1.ParseReserve(m.Object.Annotations[v1alpha1.ReserveAnnotation])
	if err != nil {
		return true
	}
	// Taints that the template has by itself are not in the mark.
	for _, taint := range s.Taints() {
		if !slices.ContainsFunc(m.Object.Spec.NodeTemplateSpec.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			return true
		}
	}
	for _, taint := range mark.Taints {
		if taint.Key == v1alpha1.ReserveTaintKey && !slices.Contains(s.Effects, taint.Effect) {
			return true
		}
	}
	return false
}

// NamedSpares returns how many reserve machines clients have named for deletion when they lowered replicas,
// and that are not being deleted for that yet. It includes names of machines that were being deleted by
// then, or are gone: nothing else is deleted in their place. Each such name is dropped by the plan that
// sees it.
func NamedSpares(d *v1alpha1.MachineDeployment, machines []Machine) (n int) {
	missing := pool.Named(d)
	for _, m := range machines {
		at, listed := missing[m.Object.Name]
		delete(missing, m.Object.Name)
		late := listed && m.Object.DeletionTimestamp != nil && !at.Before(m.Object.DeletionTimestamp.Time)
		if m.Reserve() && (late || m.Named && !pool.BeingDeleted(m.Object)) {
			n++
		}
	}
	return n + len(missing)
}

func countText(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// MachineByName returns the Machine with this name. Plans contain only machines of their view.
func (v View) MachineByName(name string) Machine {
	i := slices.IndexFunc(v.Machines, func(m Machine) bool { return m.Object.Name == name })
	return v.Machines[i]
}

// Changed returns the Machine of the view after a change.
func (v View) Changed(change MachineChange) *mcm.Machine {
	return v.ChangedFrom(v.MachineByName(change.Name).Object, change)
}

// ChangedFrom returns a Machine after a change, where something else of it may have been changed already.
func (v View) ChangedFrom(m *mcm.Machine, change MachineChange) *mcm.Machine {
	after := m
	switch change.Mark {
	case Free:
		after = pool.Unmark(m)
	case Hold:
		after = pool.Mark(m, laterMark(m, v.Settings, v.Now))
	}
	if change.Unranked {
		after = withAnnotation(after, machineutils.MachinePriority, "")
	}
	if change.Owner != nil {
		after = withAnnotation(after, v1alpha1.DedicatedAnnotation, string(*change.Owner))
	}
	if change.State != nil {
		after = withAnnotation(after, v1alpha1.ReserveStateAnnotation, *change.State)
	}
	return after
}

// withAnnotation returns a copy of a Machine with an annotation, or without it if the value is
// empty.
func withAnnotation(m *mcm.Machine, key, value string) *mcm.Machine {
	m = m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	if m.Annotations[key] = value; value == "" {
		delete(m.Annotations, key)
	}
	return m
}

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
// that boots in reserve has none yet, since its mark contains the time. For a machine that serves, it
// contains when it left the reserve, if it ever did.
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

// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
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

// ruleMachine returns the machine as the reserve rule sees it.
func (m Machine) ruleMachine(returned map[string]bool) reserve.Machine {
	one := reserve.MachineOf(m.Machine)
	one.SeenPriority, one.Returned, one.Doubtful, one.Open = m.SeenPriority, returned[one.Name], m.Doubtful, one.Open || m.Opened
	return one
}

// opened reports whether the Node of a machine in reserve has no reserve taint.
func (m Machine) opened() bool {
	return m.Node != nil && m.Marked() && !pool.HasReserveTaint(m.Node.Spec.Taints)
}

// Returned returns the names of the machines for which replicas were restored.
func Returned(d *v1alpha1.MachineDeployment) map[string]bool {
	names := map[string]bool{}
	for name := range strings.SplitSeq(d.Annotations[v1alpha1.ReturnedAnnotation], ",") {
		if name != "" {
			names[name] = true
		}
	}
	return names
}

// freezeMargin returns how many machines beyond its replicas a MachineDeployment may have before
// machine-controller-manager freezes it; 0 if it does not freeze it.
func freezeMargin(v View) int {
	strategy := v.Deployment.Spec.Strategy
	var surge *intstr.IntOrString
	switch {
	case strategy.RollingUpdate != nil:
		surge = strategy.RollingUpdate.MaxSurge
	case strategy.InPlaceUpdate != nil:
		surge = strategy.InPlaceUpdate.MaxSurge
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(surge, v.Memory.Visible(v.Deployment), true)
	if err != nil { // also without a surge
		return 0
	}
	return n + v.Settings.SafetyUp
}

func countText(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// mostMachines returns how many machines the MachineSets may be asking for, without those that are
// not created because max leaves no room for them (I1). The guard of creations refuses these, except
// in rollouts and where workload exceeds max. Beyond max, it may let a machine of workload be created
// beside each one that leaves.
func mostMachines(v View) int {
	wishes, _ := pool.WishesOf(v.Deployment) // bounds limit whatever other annotations say
	if wishes.Bounds == nil || v.Rollout || v.Memory.Workload(v.Deployment) > int(wishes.Bounds.Max) {
		return v.MaxSetReplicas
	}
	limit := int(wishes.Bounds.Max)
	for _, m := range v.Machines {
		if m.Leaving() {
			limit++
		}
	}
	return min(v.MaxSetReplicas, limit)
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
	if change.Priority != 0 {
		after = withAnnotation(after, machineutils.MachinePriority, fmt.Sprint(change.Priority))
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

// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Machine is one machine of a MachineDeployment with its Node and pods.
type Machine struct {
	Object *mcm.Machine
	// Set is the name of its MachineSet.
	Set string
	// Node is nil until it has registered; see [NodeOf].
	Node *corev1.Node
	// Named reports whether it is named for deletion, by its MachineDeployment or by priority 1 with
	// a deletion time.
	Named bool
	// Preserved reports whether its preserve expiry time is in the future.
	Preserved bool

	// Pods are the pods on it that make it busy; see [IsWorkload]. NonTolerating is how many of
	// them do not tolerate the reserve taint.
	Pods, NonTolerating int
	// Unseen reports whether it may have pods that cannot be seen, because its Node cannot.
	Unseen bool
}

// Marked reports whether the Machine carries the reserve mark.
func (m Machine) Marked() bool { return Marked(m.Object) }

// Reserve reports whether the machine is in reserve. A machine that runs workload is not, even if
// it is marked: a pod may be bound while a Node registers without the taint, or between a read and
// a write.
func (m Machine) Reserve() bool { return m.Marked() && m.NonTolerating == 0 }

// Open reports whether pods may be bound to the machine although it is marked: its Node has no reserve
// taint, or is not seen yet and may register without it, since the machine was created to serve.
func (m Machine) Open() bool {
	if m.Node != nil {
		return m.Marked() && !HasReserveTaint(m.Node.Spec.Taints)
	}
	return m.Marked() && !Unhealthy(m.Phase()) && markedLater(m.Object)
}

// ClockSkew is how far the clock of the process that writes a mark may be ahead of the API server's,
// which sets the time of creation. A Machine that was created in reserve has a mark that is at most
// that much later; one that was created to serve gets a mark that is later still.
const ClockSkew = 10 * time.Second

// markedLater reports whether a marked Machine was created to serve.
func markedLater(m *mcm.Machine) bool {
	mark, err := machine.ParseReserve(m.Annotations[machine.ReserveAnnotation])
	return err != nil || mark.Since.After(m.CreationTimestamp.Add(ClockSkew))
}

// Registered reports whether the machine has a Node, or had one.
func (m Machine) Registered() bool { return m.Node != nil || Ready(m.Phase()) || Unhealthy(m.Phase()) }

// Phase is the phase in its status.
func (m Machine) Phase() mcm.MachinePhase { return m.Object.Status.CurrentStatus.Phase }

// Leaving reports whether the machine is being deleted or named for deletion, by any client.
func (m Machine) Leaving() bool { return m.Named || BeingDeleted(m.Object) }

// Ready reports whether workload can run on the machine now.
func (m Machine) Ready() bool { return Ready(m.Phase()) }

// preservedTaint is what a machine controller after v0.62 puts on the Node of a preserved machine that has
// failed. Up to v0.62, it cordons the Node.
const preservedTaint = "node.machine.sapcloud.io/preserved"

// Cordoned reports whether its Node accepts no pods, whether or not the machine is in reserve.
func (m Machine) Cordoned() bool {
	return m.Node != nil && (m.Node.Spec.Unschedulable || slices.ContainsFunc(m.Node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == preservedTaint }))
}

// Tainted reports whether its Node has a taint that keeps pods away and is neither of its template
// nor of the reserve: someone, or something, has taken it out of service.
func (m Machine) Tainted() bool {
	return m.Node != nil && slices.ContainsFunc(m.Node.Spec.Taints, func(t corev1.Taint) bool {
		return IsForeignTaint(t, m.Object.Spec.NodeTemplateSpec.Spec.Taints)
	})
}

// Busy reports whether deleting or marking the machine would affect pods.
func (m Machine) Busy() bool { return m.Pods > 0 || m.Unseen }

// Marked reports whether a Machine carries the reserve mark.
func Marked(m *mcm.Machine) bool { return m.Annotations[machine.ReserveAnnotation] != "" }

// Preserved reports whether a Machine's preserve expiry time lies ahead.
func Preserved(m *mcm.Machine, now time.Time) bool {
	expiry := m.Status.CurrentStatus.PreserveExpiryTime
	return expiry != nil && expiry.After(now)
}

// BeingDeleted reports whether a Machine is being deleted.
func BeingDeleted(m *mcm.Machine) bool {
	return m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == mcm.MachineTerminating
}

// Ready reports whether a machine in this phase can run pods.
func Ready(phase mcm.MachinePhase) bool {
	return phase == mcm.MachineRunning || phase == mcm.MachineAvailable
}

// Unhealthy reports whether a machine in this phase has stopped working, or never will work.
func Unhealthy(phase mcm.MachinePhase) bool {
	switch phase {
	case mcm.MachineUnknown, mcm.MachineFailed, mcm.MachineInPlaceUpdateFailed:
		return true
	}
	return false
}

// UpdatedInPlace reports whether a machine in this phase is updated in place, or was and does not run
// again yet. Machine-controller-manager limits how long that takes.
func UpdatedInPlace(phase mcm.MachinePhase) bool {
	switch phase {
	case mcm.MachineInPlaceUpdating, mcm.MachineInPlaceUpdateSuccessful, mcm.MachineInPlaceUpdateFailed:
		return true
	}
	return false
}

// Spare reports whether a Machine is in reserve and can be used, now or once it has started, and
// whether it is ready. Pods do not matter here: when one runs on the machine, the mark is removed.
func Spare(m *mcm.Machine) (exists, ready bool) {
	phase := m.Status.CurrentStatus.Phase
	exists = Marked(m) && !BeingDeleted(m) && !Condemned(m) && !Unhealthy(phase)
	return exists, exists && Ready(phase)
}

// CountSpares returns how many machines a MachineDeployment has in reserve, and how many of them are
// ready. Its status shows the same, unless its CustomResourceDefinition does not have the fields, as
// in Gardener.
func CountSpares(d *machine.MachineDeployment, source Source) (exist, ready int) {
	named := Named(d)
	for _, set := range source.Sets(d.UID) {
		for _, m := range source.Machines(set.UID) {
			if _, leaves := named[m.Name]; leaves {
				continue
			}
			exists, isReady := Spare(m)
			if exists {
				exist++
			}
			if isReady {
				ready++
			}
		}
	}
	return exist, ready
}

// countPods counts the pods that make the machine busy.
func (m *Machine) countPods(source Source) {
	if m.Node == nil {
		return
	}
	var effects []corev1.TaintEffect
	for _, pod := range source.Pods(m.Node.Name) {
		if pod.Spec.NodeName != m.Node.Name || !IsWorkload(pod) {
			continue
		}
		if effects == nil {
			effects = ReserveEffects(m.Object)
		}
		m.Pods++
		if !ToleratesReserve(pod, effects) {
			m.NonTolerating++
		}
	}
}

// IsForeignTaint reports whether a taint keeps pods away, and is neither one of a template nor that of the
// reserve.
func IsForeignTaint(t corev1.Taint, template []corev1.Taint) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !IsReserveTaint(t) &&
		!slices.ContainsFunc(template, func(own corev1.Taint) bool { return own.MatchTaint(&t) })
}

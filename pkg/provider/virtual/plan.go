// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// View is everything that a plan depends on.
type View struct {
	Now    time.Time
	VMs    []VM
	Faults Faults
	// Nodes of the target cluster by name.
	Nodes map[string]*corev1.Node
	// Nodeless reports whether there is no target cluster.
	Nodeless bool
}

// Plan is what to do now. The zero value is at rest.
type Plan struct {
	// Register these: their boot has ended.
	Register []VM
	// Bury these: they die now, and their records must say so.
	Bury []VM
	// Change these Nodes.
	Change []Change
	// Again is when the plan changes without an event; zero for never.
	Again time.Time
}

// Change is a change of one Node.
type Change struct {
	VM   VM
	Node *corev1.Node // as it was when the change was decided
	// Kwok is the new value of KwokAnnotation; empty to keep it.
	Kwok string
	// Conditions to set. Others stay.
	Conditions []corev1.NodeCondition
}

// NewPlan decides what to do for every machine.
func NewPlan(view View) Plan {
	var p Plan
	for _, v := range slices.SortedFunc(slices.Values(view.VMs), byDue) {
		f := view.Faults.ForMachine(v.Hardware.Zone, v.Class, v.Name)
		if f.Dead && !v.Dead {
			p.Bury = append(p.Bury, v)
		}
		if v.Dead || f.Dead {
			f.Ready = cmp.Or(f.Ready, corev1.ConditionUnknown)
		}
		switch node := view.Nodes[v.Name]; {
		case view.Nodeless || v.Hardware.Real:
		case !v.Registered && node == nil:
			p.register(v, f, view.Now)
		case node != nil && v.ownsNode(node) && node.DeletionTimestamp == nil:
			p.change(v, f, node, view.Now)
		}
	}
	return p
}

func byDue(a, b VM) int {
	return cmp.Or(a.Created.Add(a.BootDelay).Compare(b.Created.Add(b.BootDelay)), cmp.Compare(a.Name, b.Name))
}

func (p *Plan) register(v VM, f Fault, now time.Time) {
	due := v.RegistersAt(f)
	switch {
	case f.Ready != "": // cut off or dead: whatever ends that causes a new plan
	case !due.After(now):
		p.Register = append(p.Register, v)
	case p.Again.IsZero() || due.Before(p.Again):
		p.Again = due
	}
}

func (p *Plan) change(v VM, f Fault, node *corev1.Node, now time.Time) {
	change := Change{VM: v, Node: node, Conditions: faulty(f, node.Status.Conditions, now)}
	switch held := node.Annotations[KwokAnnotation] == KwokHeld; {
	case f.Ready != "" && !held:
		change.Kwok = KwokHeld
	case f.Ready == "" && held:
		change.Kwok = KwokFake
		change.Conditions = mergeConditions(change.Conditions, []corev1.NodeCondition{
			conditionOf(corev1.NodeReady, corev1.ConditionTrue, reasonHealthy, now),
		})
	}
	if change.Kwok != "" || len(change.Conditions) > 0 {
		p.Change = append(p.Change, change)
	}
}

// faulty returns the conditions to change so that they show the fault, or no longer show one that
// has ended: if all is well, every condition except Ready is False. If a Node is not Ready for
// another reason, that stays, and so do other conditions of a Node that is cut off:
// kube-controller-manager sets Unknown for a Node that has stopped reporting, again and again.
func faulty(f Fault, conditions []corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	current := map[corev1.NodeConditionType]corev1.NodeCondition{}
	for _, c := range conditions {
		current[c.Type] = c
	}
	var set []corev1.NodeCondition
	for _, kind := range slices.Sorted(maps.Keys(f.Conditions)) {
		is, wanted := current[kind], f.Conditions[kind]
		unheard := f.Ready != "" && is.Status == corev1.ConditionUnknown && is.Reason != reasonFault
		if is.Status != wanted && !unheard {
			set = append(set, conditionOf(kind, wanted, reasonFault, now))
		}
	}
	if ready := current[corev1.NodeReady]; f.Ready != "" && ready.Status != f.Ready && (ready.Status == corev1.ConditionTrue || ready.Reason == reasonFault) {
		set = append(set, conditionOf(corev1.NodeReady, f.Ready, reasonFault, now))
	}
	for _, c := range conditions {
		if _, still := f.Conditions[c.Type]; c.Reason == reasonFault && c.Type != corev1.NodeReady && !still {
			set = append(set, conditionOf(c.Type, corev1.ConditionFalse, reasonHealthy, now))
		}
	}
	return set
}

// mergeConditions replaces older conditions with newer ones of the same type.
func mergeConditions(older, newer []corev1.NodeCondition) []corev1.NodeCondition {
	merged := slices.Clone(older)
	for _, c := range newer {
		i := slices.IndexFunc(merged, func(m corev1.NodeCondition) bool { return m.Type == c.Type })
		if i < 0 {
			merged = append(merged, c)
		} else {
			merged[i] = c
		}
	}
	return merged
}

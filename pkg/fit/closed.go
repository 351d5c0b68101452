// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// sortSlots finds out which slots are open, and which shapes no closed node takes. Most pods do not
// tolerate the taint of a reserve: to ask each closed node for each shape would use up the budget
// before a machine is opened.
func (k *packer) sortSlots() {
	for i, s := range k.room.slots {
		k.all = append(k.all, i)
		if !s.closed {
			k.open = append(k.open, i)
		}
	}
	common := k.room.closedTaints()
	for _, s := range k.shapes {
		s.shutOut = repels(common, s.like.Object)
	}
}

// closedTaints returns the taints that all closed nodes have.
func (r *Room) closedTaints() (common []corev1.Taint) {
	first := true
	for _, s := range r.slots {
		switch taints := taintsOf(s.node); {
		case !s.closed:
		case first:
			common, first = slices.Clone(taints), false
		default:
			common = slices.DeleteFunc(common, func(t corev1.Taint) bool {
				return !slices.ContainsFunc(taints, func(o corev1.Taint) bool { return SameTaint(t, o) })
			})
		}
	}
	return common
}

// SameTaint reports whether two taints keep the same pods away.
func SameTaint(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }

// openSlot opens the machine of a step.
func (k *packer) openSlot(step put) {
	k.room.slots[step.slot].closed = false
	k.opened[step.group]++
	k.steps = append(k.steps, step)
	at, _ := slices.BinarySearch(k.open, step.slot)
	k.open = slices.Insert(k.open, at, step.slot)
}

// closeSlot undoes openSlot, but for the list of steps.
func (k *packer) closeSlot(step put) {
	k.room.slots[step.slot].closed = true
	k.opened[step.group]--
	at, _ := slices.BinarySearch(k.open, step.slot)
	k.open = slices.Delete(k.open, at, at+1)
}

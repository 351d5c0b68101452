// SPDX-License-Identifier: Apache-2.0

package pool

import (
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Dedications returns how many spare machines of a MachineDeployment are kept for each owner while
// workload has this many machines. Replicas come first: machines that max leaves no room for are not
// dedicated. If the text cannot be read, no machines are dedicated.
func Dedications(d *machine.MachineDeployment, replicas int) []machine.Dedication {
	text := d.Annotations[machine.DedicatedAnnotation]
	if text == "" {
		return nil
	}
	all, _ := machine.ParseDedications(text)
	room := Unbounded
	if bounds, _ := Parsed(d.Annotations, machine.BoundsAnnotation, machine.ParseBounds); bounds != nil {
		room = max(0, int(bounds.Max)-replicas)
	}
	for i := range all {
		n := min(int(all[i].Machines), room)
		all[i].Machines, room = int32(n), room-n
	}
	return all
}

// Dedicated is how many spare machines are dedicated in all.
func Dedicated(all []machine.Dedication) (n int) {
	for _, d := range all {
		n += int(d.Machines)
	}
	return n
}

// ClaimsOf returns the dedicated machines of a MachineDeployment that pods of their owner need.
func ClaimsOf(d *machine.MachineDeployment) machine.Claims {
	return machine.ParseClaims(d.Annotations[machine.ClaimedAnnotation])
}

// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"maps"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Wishes are the places where a MachineDeployment can ask for an excess.
type Wishes struct {
	// Share is the MachineDeployment's share of its pool's excess, nil if the pool has none.
	Share *int32
	// Bounds are nil if there are none.
	Bounds *machine.Bounds
	// Field is spec.excessReplicas. If a client that does not know the field has removed it, with
	// its witness, it is the field's last value.
	Field *int32
	// Requested is what a Reserve requests, nil if none does.
	Requested *machine.RequestedExcess
}

// Any reports whether a reserve is requested, even if there is no room for it now.
func (w Wishes) Any() bool {
	return positive(w.Share) || positive(w.Field) || w.Bounds != nil && w.Bounds.Excess != nil || w.Requested != nil && w.Requested.Machines > 0
}

func positive(n *int32) bool { return n != nil && *n > 0 }

// Drained reports whether an annotation of a MachineDeployment removes its reserve. An invalid one
// does not.
func Drained(d *machine.MachineDeployment) bool {
	drained, _ := machine.ParseDrainReserve(d.Annotations[machine.DrainReserveAnnotation])
	return drained
}

// WishesOf reads the requested excess of a MachineDeployment. The error names an invalid
// annotation; the others are still used.
func WishesOf(d *machine.MachineDeployment) (w Wishes, err error) {
	if w.Field = d.Spec.ExcessReplicas; w.Field == nil && !d.Spec.ReserveWitness {
		w.Field, _ = Parsed(d.Annotations, machine.WantedExcessAnnotation, machine.ParseShare)
	}
	var errs [3]error
	w.Bounds, errs[0] = Parsed(d.Annotations, machine.BoundsAnnotation, machine.ParseBounds)
	w.Share, errs[1] = Parsed(d.Annotations, machine.ShareAnnotation, machine.ParseShare)
	w.Requested, errs[2] = Parsed(d.Annotations, machine.RequestedExcessAnnotation, machine.ParseRequestedExcess)
	return w, cmp.Or(errs[0], errs[1], errs[2])
}

// Parsed returns the value of an annotation, nil if it is not set or invalid.
func Parsed[T any](annotations map[string]string, key string, parse func(string) (T, error)) (*T, error) {
	text, set := annotations[key]
	if !set {
		return nil, nil
	}
	value, err := parse(text)
	if err != nil {
		return nil, err
	}
	return &value, nil
}

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

// OnlyStatusDiffers reports whether two versions of a MachineDeployment differ at most in their status.
// Each of them may be nil.
func OnlyStatusDiffers(before, after *machine.MachineDeployment) bool {
	return before != nil && after != nil && before.UID == after.UID && before.Generation == after.Generation &&
		maps.Equal(before.Annotations, after.Annotations) && maps.Equal(before.Labels, after.Labels)
}

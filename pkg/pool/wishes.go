// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"

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

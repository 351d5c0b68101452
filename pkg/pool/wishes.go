// SPDX-License-Identifier: Apache-2.0

package pool

import (
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Wishes are the places where a MachineDeployment can ask for an excess.
type Wishes struct {
	// Share is the MachineDeployment's share of its pool's excess, nil where the pool has none.
	Share *int32
	// Bounds are nil where there are none.
	Bounds *machine.Bounds
	// Field is spec.excessReplicas. Where that has been removed by a client that does not know it, it is what the field said last.
	Field *int32
}

// WishesOf reads the wishes of a MachineDeployment. The error says which annotation is invalid; the others count all the same.
func WishesOf(d *machine.MachineDeployment) (w Wishes, err error) {
	if w.Field = d.Spec.ExcessReplicas; w.Field == nil {
		w.Field, _ = parsed(d, machine.WantedExcessAnnotation, machine.ParseShare)
	}
	var shareErr error
	w.Share, shareErr = parsed(d, machine.ShareAnnotation, machine.ParseShare)
	if w.Bounds, err = parsed(d, machine.BoundsAnnotation, machine.ParseBounds); err == nil {
		err = shareErr
	}
	return w, err
}

// parsed is an annotation, nil where it is not set or invalid.
func parsed[T any](d *machine.MachineDeployment, key string, parse func(string) (T, error)) (*T, error) {
	text, set := d.Annotations[key]
	if !set {
		return nil, nil
	}
	value, err := parse(text)
	if err != nil {
		return nil, err
	}
	return &value, nil
}

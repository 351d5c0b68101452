// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

const (
	// OwnLabel marks the Reserves that this controller creates. It changes and deletes no other
	// Reserves.
	OwnLabel = "autoscaling.evenkeel.dev/provisioning-requests"

	namePrefix = "provisioning-requests."
)

// ReserveName is the name of the Reserve that holds what is booked in a MachineDeployment.
func ReserveName(deployment string) string { return autoscaling.ReserveNameFor(namePrefix, deployment) }

// Name is the name of the Reserve.
func (c Change) Name() string {
	if c.Reserve != nil {
		return c.Reserve.Name
	}
	return ReserveName(c.Pool)
}

// After returns the Reserve as the controller leaves it; nil if it is deleted. It asks for no more
// machines than are booked, so that nothing is created for them: other requests for machines keep
// them in reserve already.
func (c Change) After(namespace string) *autoscaling.Reserve {
	if len(c.Bookings) == 0 {
		return nil
	}
	after := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ReserveName(c.Pool), Labels: map[string]string{OwnLabel: "true"}}}
	if c.Reserve != nil {
		after = c.Reserve.DeepCopy()
	}
	after.Spec = specOf(c)
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, machine.DedicatedAnnotation, machine.DedicationsText(c.Bookings))
	return after
}

func specOf(c Change) autoscaling.ReserveSpec {
	n := int32(0)
	for _, b := range c.Bookings {
		n += b.Machines
	}
	return autoscaling.ReserveSpec{Pools: autoscaling.ReservePools{Names: []string{c.Pool}}, Replicas: n}
}

// changes returns the Reserves that differ from what is booked, and those that nothing is booked in.
func (r *round) changes() []Change {
	wanted := map[string]Change{}
	for name, bookings := range r.booked {
		slices.SortFunc(bookings, func(a, b machine.Dedication) int { return cmp.Compare(a.Owner, b.Owner) })
		wanted[ReserveName(name)] = Change{Pool: name, Bookings: bookings}
	}
	var all []Change
	for _, reserve := range r.Reserves {
		c, is := wanted[reserve.Name]
		delete(wanted, reserve.Name)
		if c.Reserve = reserve; !is || !c.isMet() {
			all = append(all, c)
		}
	}
	for _, c := range wanted {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Name(), b.Name()) })
	return all
}

// isMet reports whether the Reserve asks for this and nothing else.
func (c Change) isMet() bool {
	return reflect.DeepEqual(c.Reserve.Spec, specOf(c)) && c.Reserve.Annotations[machine.DedicatedAnnotation] == machine.DedicationsText(c.Bookings)
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

const (
	// OwnLabel marks the Reserves that this controller creates. It changes and deletes no other
	// Reserves.
	OwnLabel = v1beta1.ReserveLabel

	namePrefix = "capacity-buffers."
	maxName    = 253
)

// ReserveName is the name of the Reserve that holds the chunks of all buffers in a
// MachineDeployment.
func ReserveName(deployment string) string {
	name := namePrefix + deployment
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(deployment))
		return namePrefix + hex.EncodeToString(sum[:])
	}
	return name
}

// NewReserve returns this Reserve.
func NewReserve(namespace string, r Request) *autoscaling.Reserve {
	reserve := &autoscaling.Reserve{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ReserveName(r.Pool), Labels: map[string]string{OwnLabel: "true"}},
	}
	r.setRequest(reserve)
	return reserve
}

// After returns the Reserve of a request as the controller leaves it; nil if it is deleted.
func (r Request) After(namespace string) *autoscaling.Reserve {
	switch {
	case r.Machines == 0:
		return nil
	case r.Reserve == nil:
		return NewReserve(namespace, r)
	}
	after := r.Reserve.DeepCopy()
	r.setRequest(after)
	return after
}

// setRequest makes a Reserve ask for what is requested.
func (r Request) setRequest(reserve *autoscaling.Reserve) {
	reserve.Spec = specOf(r.Pool, r.Machines)
	delete(reserve.Annotations, machine.DedicatedAnnotation)
	if len(r.Dedicated) > 0 {
		metav1.SetMetaDataAnnotation(&reserve.ObjectMeta, machine.DedicatedAnnotation, machine.DedicationsText(r.Dedicated))
	}
}

func specOf(deployment string, machines int) autoscaling.ReserveSpec {
	return autoscaling.ReserveSpec{Pools: autoscaling.ReservePools{Names: []string{deployment}}, Replicas: int32(machines)}
}

// isMet reports whether the Reserve asks for this and nothing else.
func (r Request) isMet() bool {
	return reflect.DeepEqual(r.Reserve.Spec, specOf(r.Pool, r.Machines)) && r.Reserve.Annotations[machine.DedicatedAnnotation] == machine.DedicationsText(r.Dedicated)
}

// dedications returns the machines of a Reserve that are dedicated to owners.
func dedications(r *autoscaling.Reserve) []machine.Dedication {
	all, err := machine.ParseDedications(r.Annotations[machine.DedicatedAnnotation])
	if err != nil {
		return nil // it is written anew
	}
	return all
}

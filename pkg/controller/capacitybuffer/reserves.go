// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

const (
	// OwnLabel marks the Reserves that this controller creates. It changes and deletes no others.
	OwnLabel = "autoscaling.evenkeel.dev/capacity-buffers"

	namePrefix = "capacity-buffers."
	maxName    = 253
)

// ReserveName is the name of the Reserve that holds the chunks of all buffers in a MachineDeployment.
func ReserveName(deployment string) string {
	name := namePrefix + deployment
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(deployment))
		return namePrefix + hex.EncodeToString(sum[:])
	}
	return name
}

// NewReserve is that Reserve.
func NewReserve(namespace, deployment string, machines int) *autoscaling.Reserve {
	return &autoscaling.Reserve{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ReserveName(deployment), Labels: map[string]string{OwnLabel: "true"}},
		Spec:       specOf(deployment, machines),
	}
}

func specOf(deployment string, machines int) autoscaling.ReserveSpec {
	return autoscaling.ReserveSpec{Pools: autoscaling.ReservePools{Names: []string{deployment}}, Replicas: int32(machines)}
}

// sameSpec reports whether a Reserve asks for that and nothing else.
func sameSpec(s autoscaling.ReserveSpec, deployment string, machines int) bool {
	return reflect.DeepEqual(s, specOf(deployment, machines))
}

// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

const (
	// ExtensionType is the type of the extension in a Shoot.
	ExtensionType = "evenkeel"
	// APIVersion and Kind are those of the configuration.
	APIVersion = "evenkeel.extensions.gardener.cloud/v1alpha1"
	Kind       = "EvenkeelConfig"
)

// EvenkeelConfig is the providerConfig of the extension. Without any pool, the Shoot runs Evenkeel,
// and worker annotations request reserves.
type EvenkeelConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Pools are worker pools of the Shoot, each at most once.
	Pools []Pool `json:"pools,omitempty"`

	// CapacityBuffers has the Shoot serve CapacityBuffers, and machines in reserve keep room for
	// their chunks, within the minimum and maximum of pools that request an excess, which can be 0.
	// False by default. When it becomes false again, CapacityBuffers stay in the Shoot, and have no
	// room.
	CapacityBuffers bool `json:"capacityBuffers,omitempty"`

	// Accounting defines whether the number of machines that Gardener sees includes the reserve.
	// Inclusive by default. With Additive, gardenlet reports too many nodes for as long as there is
	// a reserve.
	Accounting machine.Accounting `json:"accounting,omitempty"`

	// Autoscaler selects the cluster-autoscaler of the Shoot. Fork by default: the one that Gardener
	// deploys. With upstream, an unmodified one scales the worker pools, within minimum and maximum,
	// and never counts the reserve.
	Autoscaler Autoscaler `json:"autoscaler,omitempty"`
}

// Pool is what one worker pool requests.
type Pool struct {
	// Name of the worker pool.
	Name string `json:"name"`

	// Excess is what the pool keeps in reserve: a number of machines, 10% of the machines for
	// workload, cpu=16,memory=64Gi, or max(1,5%). Minimum and maximum are those of the worker.
	Excess *intstr.IntOrString `json:"excess,omitempty"`

	// Bounds are minimum, maximum and excess in one text, "3:8:2", within minimum and maximum of the
	// worker. They take the place of Excess where workload and reserve must not use all that the
	// worker allows.
	Bounds string `json:"bounds,omitempty"`

	// Balance defines how the zones of the pool are kept even: Off, ScaleUp or Continuous. Off by
	// default.
	Balance machine.BalanceMode `json:"balance,omitempty"`
}

// Autoscaler is a cluster-autoscaler.
type Autoscaler string

const (
	// AutoscalerFork is Gardener's cluster-autoscaler.
	AutoscalerFork Autoscaler = "fork"
	// AutoscalerUpstream is the unmodified cluster-autoscaler.
	AutoscalerUpstream Autoscaler = "upstream"
)

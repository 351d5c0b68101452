// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// View is everything that is known about the MachineDeployments of a namespace. Nothing in it is
// changed.
type View struct {
	Now      time.Time
	Settings Settings
	// Members are sorted by name.
	Members []Member
	// Waiting are the unschedulable pods. Nodes are all Nodes with their pods. Both are empty if no
	// pods are needed.
	Waiting []*fit.Pod
	Nodes   []fit.Node
	// Budgets are the PodDisruptionBudgets; BudgetsUnknown is why they are not known, if they are not.
	Budgets        []pool.Budget
	BudgetsUnknown string
	// Unreachable is why Nodes, pods and budgets may be out of date, if they may.
	Unreachable string
	// NodesKnown reports whether the readiness of Nodes is known now. UnreadyCount is how many Nodes of
	// the cluster are not ready, and NodeCount how many there are; it is set only if some are not.
	NodesKnown              bool
	NodeCount, UnreadyCount int
	// Starting reports whether the process began so recently that Nodes which have been ready for long
	// do not show yet what a fresh machine offers.
	Starting bool
	Garden   Garden
	// Missing describes the rights that the process lacks.
	Missing []string
	Memory  Memory
}

// Member is one MachineDeployment with what belongs to it.
type Member struct {
	Object *v1alpha1.MachineDeployment
	// Template is what a fresh machine offers, under the name of the MachineDeployment; nil if that
	// is unknown.
	Template *similar.Template
	// Fresh is the Node of a fresh machine, nil if that is unknown.
	Fresh *corev1.Node
	// Devices is how many devices one machine has of each DeviceClass that an excess names, by the name of
	// the resource, and DevicesUnknown why that is not known.
	Devices        corev1.ResourceList
	DevicesUnknown pool.Unknown
	// Settling reports whether no Node shows yet what a fresh machine offers, but one soon will.
	Settling bool
	Machines []Machine
	Rollout  pool.Rollout
	// NoSet reports whether machine-controller-manager has made no MachineSet for it yet.
	NoSet bool
}

// Machine is one machine.
type Machine struct {
	// Machine has the counts of its pods only if it carries the reserve mark.
	pool.Machine
	// Workload are the pods that make it busy, read only while pods matter; see [pool.IsWorkload].
	Workload []*fit.Pod
}

// Garden is what is known from Gardener about this namespace.
type Garden struct {
	// Known is false until it is known whether there is a Gardener and which bounds its Worker
	// contains. Bounds stay as they are until then.
	Known bool
	// Here reports whether the control cluster serves Gardener's kinds.
	Here bool
	// Forbidden reports whether the process lacks the right to read the Worker.
	Forbidden bool
	// Bounds have no excess; by the name of the MachineDeployment.
	Bounds map[string]v1alpha1.Bounds
	// Hibernated reports whether the Cluster resource requests hibernation, ClusterKnown whether
	// that has been read, and ClusterAwaited whether it has yet to be read.
	Hibernated, ClusterKnown, ClusterAwaited bool
}

// Settings are the same for all MachineDeployments.
type Settings struct {
	// Enabled is false if replicas are never changed, whatever annotations say.
	Enabled bool
	// Mode of MachineDeployments without the annotation.
	Mode    v1alpha1.BalanceMode
	Similar similar.Options
	// Eviction is by which rule pods may be evicted.
	Eviction pool.EvictionRule
	// Drain reports whether all reserves are given up, so that no machine is created for a move.
	Drain bool
	// BootPatience is how long a machine may take to become ready.
	BootPatience time.Duration
	// Unready are the limits of Nodes that are not ready.
	Unready pool.UnreadyLimits
	// Bounds by name, for MachineDeployments that have no others.
	Bounds map[string]v1alpha1.Bounds
	// PoolLabels are labels with the name of the pool. The first one that a MachineDeployment has
	// counts.
	PoolLabels []string
}

// Memory is kept from plan to plan. Without it, a zone is tried once more than necessary.
type Memory struct {
	// Failing are the members that fail to create machines, or have too many Nodes that are not ready,
	// by name.
	Failing map[string]Failure
	// Paused members take no machine until this time, by name.
	Paused map[string]time.Time
}

// Failure describes a member that fails to create machines, or has too many Nodes that are not ready.
type Failure struct {
	// Since is when it last began to fail.
	Since time.Time
	// Failures is the number of consecutive failures.
	Failures int
	// Until this time, it gets no requests. After that, it gets one machine.
	Until time.Time
	// Probing reports whether this machine may be requested.
	Probing bool
	// Unready reports whether too many of its Nodes are not ready.
	Unready bool
}

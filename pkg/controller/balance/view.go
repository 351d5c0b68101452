// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// View is all that is known of the MachineDeployments of a namespace. Nothing in it is changed.
type View struct {
	Now      time.Time
	Settings Settings
	// Members are sorted by name.
	Members []Member
	// Waiting are the pods that found no node. Nodes are all nodes with their pods. Both are empty where Places says so.
	Waiting []*fit.Pod
	Nodes   []fit.Node
	Budgets []Budget
	// Unreachable is why Nodes, pods and budgets may be out of date; empty where they are not.
	Unreachable string
	Garden      Garden
	// Missing describes the rights that the process lacks.
	Missing []string
	Memory  Memory
}

// Member is one MachineDeployment with what belongs to it.
type Member struct {
	Object *v1alpha1.MachineDeployment
	// Template is what a fresh machine of it offers, nil where that is not known.
	Template *similar.Template
	// Fresh is the Node that a fresh machine would be, nil where that is not known.
	Fresh    *corev1.Node
	Machines []Machine
	Rollout  pool.Rollout
	// NoSet reports whether machine-controller-manager has made no MachineSet for it yet.
	NoSet bool
}

// Machine is one machine with the pods that make it busy; see [pool.IsWorkload].
type Machine struct {
	pool.Machine
	Workload []*fit.Pod
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	Namespace, Name string
	Selector        labels.Selector
	// Allowed is how many of the pods may be evicted now.
	Allowed int
}

// Garden is what Gardener says about this namespace.
type Garden struct {
	// Known is false until it is known whether there is a Gardener and which bounds its Worker contains. Bounds stay as they are
	// until then.
	Known bool
	// Here reports whether the control cluster serves Gardener's kinds.
	Here bool
	// Forbidden reports whether the process lacks the right to read the Worker.
	Forbidden bool
	// Bounds have no excess; by the name of the MachineDeployment.
	Bounds map[string]v1alpha1.Bounds
	// Hibernated reports whether the Cluster resource requests hibernation, and ClusterKnown whether that has been read.
	Hibernated, ClusterKnown bool
}

// Settings are the same for all MachineDeployments.
type Settings struct {
	// Enabled is false where nobody's replicas are touched, whatever annotations say.
	Enabled bool
	// Mode of those that do not say.
	Mode    v1alpha1.BalanceMode
	Similar similar.Options
	// BootPatience is how long a machine may take to become ready.
	BootPatience time.Duration
	// Bounds by name, for those that have no others.
	Bounds map[string]v1alpha1.Bounds
	// PoolLabels name pools; the first that a MachineDeployment has counts.
	PoolLabels []string
}

// Memory is what is known from plan to plan. Without it some zone is tried once more than need be.
type Memory struct {
	// Ill are the members that fail to make machines, by name.
	Ill map[string]Ill
	// Paused members take no machine until then, by name.
	Paused map[string]time.Time
}

// Ill is what is known of a member that fails to make machines.
type Ill struct {
	// Since is when it began to fail, the last time.
	Since time.Time
	// Failures in a row.
	Failures int
	// Until then nothing new is asked of it. After that one machine is.
	Until time.Time
	// Probing says that this machine may be asked for.
	Probing bool
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// View is the whole input of a decision.
type View struct {
	Now      time.Time
	Settings Settings
	// Waiting are pods without a node, the most important first. Beyond is how many more there are.
	Waiting []*fit.Pod
	Beyond  int
	// Nominated are the nodes that waiting pods are nominated for, by the UID of the pod. None of
	// these can take its pod now.
	Nominated map[types.UID]string
	// Uncreated is what the ReplicaSets and Jobs of waiting pods have yet to create, by UID.
	Uncreated map[types.UID]Uncreated
	// Groups are the groups of waiting pods that are known, by namespace/name.
	Groups map[string]PodGroup
	// Nodes are all Nodes.
	Nodes []Node
	// Daemons would run on every machine that they fit, the most important first.
	Daemons []Daemon
	// Pools are the MachineDeployments that take part, by key.
	Pools  []Pool
	Memory Memory
	// Interrupted is called now and then. If it returns true, the decision uses what has been
	// considered so far; nil means never.
	Interrupted func() bool
}

// Settings define which pods count.
type Settings struct {
	// Schedulers are the names of schedulers whose pods count: those that follow the rules of
	// package fit.
	Schedulers []string
	// Cutoff is the priority below which a pod does not justify a machine.
	Cutoff int32
	// Patience is how long a pod may wait although there is room, until it is considered doubtful.
	Patience time.Duration
	// Even reports whether the smallest of similar MachineDeployments releases a machine first. They
	// are similar by the options, if they are of the same worker pool, which the labels name.
	Even       bool
	Similar    similar.Options
	PoolLabels []string
}

// Defaults of the settings.
const (
	// DefaultCutoff is that of cluster-autoscaler.
	DefaultCutoff = -10
	// DefaultPatience is how long a pod may wait although there is room.
	DefaultPatience = 30 * time.Second
)

// DefaultSchedulers place pods by the usual rules: Kubernetes' own scheduler, and the one that
// Gardener runs beside it.
func DefaultSchedulers() []string { return []string{"default-scheduler", "bin-packing-scheduler"} }

// Node is a node with the pods that are assigned to it or nominated for it.
type Node struct {
	Object *corev1.Node
	Pods   []*fit.Pod
}

// Daemon is what a DaemonSet runs on a node.
type Daemon struct {
	Owner types.UID
	Pod   *fit.Pod
}

// Pool is a MachineDeployment with bounds.
type Pool struct {
	Key   string
	Basis Basis
	// Replicas are those for workload, including growth that is still to be split over zones. Max
	// is that of the bounds.
	Replicas, Max int
	// Applied is the number of replicas that machine-controller-manager may act on, if the
	// annotation applied-replicas is set.
	Applied *int32
	// Inclusive reports whether replicas include reserve machines, or are to.
	Inclusive bool
	// Claimed are machines in reserve that are claimed already.
	Claimed []string
	// Reserve is the input of the reserve rule, as far as it decides which machine is released
	// next.
	Reserve reserve.View
	// NodeOf contains the names of Nodes by machine.
	NodeOf map[string]string
	// Sample is what the Node of a new machine would look like, nil if that is unknown.
	Sample *corev1.Node
	// WorkerPool is the name of its worker pool, if any. Taints are those of all its machines.
	WorkerPool string
	Taints     []corev1.Taint
}

// Basis is what must not have changed for a raise to be right. Other changes do not matter, such as
// those that machine-controller-manager writes to the status whenever a machine is released.
type Basis struct {
	UID types.UID
	// Generation counts changes of the spec. A restored backup makes it smaller, and another change
	// can have the same number then.
	Generation int64
	// Replicas is spec.replicas.
	Replicas int32
	// Bounds, Applied and Excess, the applied excess, are annotations. Applied and Excess are nil if
	// they are not set.
	Bounds          string
	Applied, Excess *string
}

// Uncreated is how many pods a ReplicaSet or a Job has yet to create, and where. A pod of another
// namespace only names it as its owner.
type Uncreated struct {
	Namespace string
	Count     int
}

// Memory is when pods were first seen to wait although there was room.
type Memory map[types.UID]time.Time

// KeepDoubtful forgets all pods but those that were doubtful at the last decision. The rest may have
// waited because the room was taken since then, unseen: a cluster does not answer.
func (m Memory) KeepDoubtful(decided time.Time, patience time.Duration) {
	maps.DeleteFunc(m, func(pod types.UID, _ time.Time) bool { return !m.doubts(pod, decided, patience) })
}

// doubts reports whether a pod has waited too long, at some time, although there was room.
func (m Memory) doubts(pod types.UID, at time.Time, patience time.Duration) bool {
	since, known := m[pod]
	return known && at.Sub(since) >= patience
}

// Evaluate reports whether a pod may justify a machine, and whether its scheduler has tried and
// found no node.
func (s Settings) Evaluate(pod *corev1.Pod) (counts, tried bool) {
	switch {
	case pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "":
		return false, false
	case len(pod.Spec.SchedulingGates) > 0 || pod.Status.NominatedNodeName != "":
		return false, false
	case len(s.Schedulers) > 0 && !slices.Contains(s.Schedulers, pod.Spec.SchedulerName):
		return false, false
	case pod.Spec.Priority != nil && *pod.Spec.Priority < s.Cutoff:
		return false, false
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "DaemonSet" {
		return false, false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason != corev1.PodReasonSchedulingGated { // which stays when the gates are gone
			tried = c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
			return tried, tried
		}
	}
	return true, false
}

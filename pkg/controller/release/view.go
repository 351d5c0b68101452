// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// View is all that one decision rests on.
type View struct {
	Now      time.Time
	Settings Settings
	// Waiting are pods that have no node, the most important first; Beyond is how many more there are.
	Waiting []*fit.Pod
	Beyond  int
	// Uncreated is how many pods ReplicaSets have yet to create, by their UID: those of which some wait.
	Uncreated map[types.UID]int
	// Nodes are all there are.
	Nodes []Node
	// Daemons would run on every machine that they suit, the most important first.
	Daemons []Daemon
	// Pools are the MachineDeployments that take part, by key.
	Pools  []Pool
	Memory Memory
	// Interrupted is asked now and then whether to decide by what has been looked at so far; nil means never.
	Interrupted func() bool
}

// Settings say which pods count.
type Settings struct {
	// Schedulers are the names of those whose pods count: such as place pods by the rules of package fit.
	Schedulers []string
	// Cutoff is the priority below which a pod is worth no machine.
	Cutoff int32
	// Patience is how long a pod may wait beside room before it is taken for one that is not understood.
	Patience time.Duration
}

// Node is a node with the pods that are there, or have been promised a place there.
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
	// Replicas are those for workload, with growth that waits to be split over zones; Max is that of the bounds.
	Replicas, Max int
	// Applied is the number of replicas that machine-controller-manager may act on, where the annotation applied-replicas is set.
	Applied *int32
	// Reserve is what the rule of the reserve looks at, as far as it matters to which machine is released next.
	Reserve reserve.View
	// NodeOf has the names of Nodes by machine.
	NodeOf map[string]string
	// Sample is what the Node of a new machine would look like; nil where that is not known.
	Sample *corev1.Node
}

// Basis is what has to be as it was read for a raise to be right. Whoever wrote something else meanwhile, as machine-controller-manager
// does with the status whenever a machine is released, is in nobody's way.
type Basis struct {
	UID types.UID
	// Generation counts changes of the spec. A restored backup makes it go back, and another change can have the same number then.
	Generation int64
	// Replicas is spec.replicas.
	Replicas int32
	// Bounds, Applied and Excess are annotations. Applied is nil where it is not there, and Excess, the applied excess, where replicas
	// include no reserve machines.
	Bounds          string
	Applied, Excess *string
}

// Memory is when pods were first seen to wait beside room.
type Memory map[types.UID]time.Time

// counts says whether a pod may be worth a machine, and whether its scheduler has looked for a place and found none.
func (s Settings) counts(pod *corev1.Pod) (counts, tried bool) {
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
		if c.Type == corev1.PodScheduled {
			tried = c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
			return tried, tried
		}
	}
	return true, false
}

// shapes are those of pods, see fit.Pod.Shape.
type shapes map[string]bool

// has is false for nil, too.
func (s *shapes) has(p *fit.Pod) bool { return s != nil && (*s)[p.Shape()] }

// tried has the shapes of pods that the scheduler has found no place for.
func (v View) tried() *shapes {
	all := shapes{}
	for _, p := range v.Waiting {
		if _, tried := v.Settings.counts(p.Object); tried {
			all[p.Shape()] = true
		}
	}
	return &all
}

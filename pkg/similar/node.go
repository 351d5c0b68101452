// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Settling is how long a Node cannot be a template after it became Ready or left the reserve,
// because pods of its DaemonSets are still being created. cluster-autoscaler waits equally long
// after Ready.
const Settling = time.Minute

// compared is how many Nodes of a MachineDeployment are compared to find its template. Enough to
// outvote the unusual ones, and few where each comparison reads all pods of a Node.
const compared = 20

// Candidate is a Node of a MachineDeployment that may become its template.
type Candidate struct {
	Node *corev1.Node
	// Reserve reports whether the Machine carries the reserve mark, even if the Node does not yet,
	// or no longer.
	Reserve bool
	// Released is when the machine left the reserve; zero if it never was in reserve. Callers that
	// do not know, because they have just started, pass the present.
	Released time.Time
}

// Fit reports whether the Node shows what a new machine offers to workload: it is Ready and
// schedulable, has been so for a while, is not about to be deleted, and is not in reserve: DaemonSets
// that do not tolerate the reserve taint do not run there.
func (c Candidate) Fit(now time.Time) bool {
	n := c.Node
	if _, reserve := n.Annotations[v1alpha1.ReserveAnnotation]; reserve || c.Reserve || now.Sub(c.Released) < Settling {
		return false
	}
	if n.DeletionTimestamp != nil || n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, unsettling) {
		return false
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && now.Sub(condition.LastTransitionTime.Time) >= Settling
		}
	}
	return false
}

// Passing reports whether a taint belongs to the present state of a Node, such as the lack of memory
// or an imminent deletion, so that a fresh machine of the same kind does not keep it.
func Passing(t corev1.Taint) bool {
	return unsettling(t) || strings.HasPrefix(t.Key, "node.kubernetes.io/")
}

// unsettling reports whether a taint shows that the Node is not complete yet, or is about to be
// deleted.
func unsettling(t corev1.Taint) bool {
	return t.Key == "ToBeDeletedByClusterAutoscaler" || v1alpha1.IsStartupTaint(t.Key)
}

// Choose returns the template of a MachineDeployment from one of its Nodes, or false if none is
// suitable. Of the oldest Nodes, it chooses one that runs as many DaemonSet pods as most of them do,
// so that neither a Node that a DaemonSet's rollout has just reached decides, nor one that was set
// aside; of those the oldest, so that the choice seldom changes. podsOn returns all pods that are bound
// to a Node. Callers that ask repeatedly should remember the last template from a Node: it is more
// accurate than one from [FromClass].
func Choose(name string, candidates []Candidate, podsOn func(node string) []*corev1.Pod, now time.Time) (Template, bool) {
	type counted struct {
		node    *corev1.Node
		pods    []*corev1.Pod
		daemons int
	}
	var fit []counted
	nodes := map[int]int{}
	for _, c := range oldest(candidates, now) {
		one := counted{node: c.Node, pods: podsOn(c.Node.Name)}
		one.daemons = countEverywhere(one.pods)
		fit = append(fit, one)
		nodes[one.daemons]++
	}
	if len(fit) == 0 {
		return Template{}, false
	}
	// The first of those that are equal is the oldest.
	best := slices.MinFunc(fit, func(a, b counted) int {
		return cmp.Or(cmp.Compare(nodes[b.daemons], nodes[a.daemons]), cmp.Compare(b.daemons, a.daemons))
	})
	return FromNode(name, best.node, best.pods), true
}

// oldest returns the candidates that are fit, the oldest first, and no more than are compared.
func oldest(candidates []Candidate, now time.Time) []Candidate {
	fit := slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool { return !c.Fit(now) })
	slices.SortFunc(fit, func(a, b Candidate) int {
		return cmp.Or(a.Node.CreationTimestamp.Compare(b.Node.CreationTimestamp.Time), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	return fit[:min(len(fit), compared)]
}

// countEverywhere counts the pods that a fresh machine would run as well.
func countEverywhere(pods []*corev1.Pod) int {
	n := 0
	for _, pod := range pods {
		if runsEverywhere(pod) {
			n++
		}
	}
	return n
}

// FromNode returns the template of a MachineDeployment from one of its Nodes and all pods bound to
// it.
func FromNode(name string, node *corev1.Node, pods []*corev1.Pod) Template {
	return Template{
		Name:        name,
		Capacity:    node.Status.Capacity,
		Allocatable: node.Status.Allocatable,
		Free:        Free(node.Status.Allocatable, pods),
		Labels:      node.Labels,
	}
}

// requests returns what the scheduler reserves for a pod: the sum over its containers and sidecars,
// or the requests of an init container and the sidecars started before it, whichever is more;
// requests of the pod as a whole replace that; then the overhead is added. A resize in progress is
// ignored. The tests compare the result with the scheduler's own.
func requests(pod *corev1.Pod) corev1.ResourceList {
	sum, sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for _, c := range pod.Spec.Containers {
		addResources(sum, c.Resources.Requests)
	}
	for _, c := range pod.Spec.InitContainers {
		needs := corev1.ResourceList{}
		addResources(needs, c.Resources.Requests)
		addResources(needs, sidecars)
		raiseResources(peak, needs)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			addResources(sum, c.Resources.Requests)
			addResources(sidecars, c.Resources.Requests)
		}
	}
	raiseResources(sum, peak)
	if whole := pod.Spec.Resources; whole != nil {
		for name, q := range whole.Requests {
			if ofWholePods(name) {
				sum[name] = q.DeepCopy()
			}
		}
	}
	addResources(sum, pod.Spec.Overhead)
	return sum
}

// ofWholePods reports whether Kubernetes allows a pod as a whole to request the resource.
func ofWholePods(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func addResources(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

func raiseResources(to, least corev1.ResourceList) {
	for name, q := range least {
		if has, ok := to[name]; !ok || q.Cmp(has) > 0 {
			to[name] = q.DeepCopy()
		}
	}
}

// Free returns what is left of allocatable after the pods that every machine of a kind runs: pods
// of DaemonSets and static pods, including kube-proxy in either form, and one pod slot for each. A
// negative amount counts as zero. If a DaemonSet's pod is being replaced, the old one counts while
// it exists.
func Free(allocatable corev1.ResourceList, pods []*corev1.Pod) corev1.ResourceList {
	used := corev1.ResourceList{}
	slot := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)}
	for _, pod := range pods {
		if runsEverywhere(pod) {
			addResources(used, requests(pod))
			addResources(used, slot)
		}
	}
	free := make(corev1.ResourceList, len(allocatable))
	for name, q := range allocatable {
		// A large quantity shares memory with the object that it was read from.
		left := q.DeepCopy()
		left.Sub(used[name])
		if left.Sign() < 0 {
			left = resource.Quantity{Format: q.Format}
		}
		free[name] = left
	}
	return free
}

// DaemonSetPod is cluster-autoscaler's annotation of pods that count as DaemonSet pods if its value
// is "true".
const DaemonSetPod = "cluster-autoscaler.kubernetes.io/daemonset-pod"

// runsEverywhere reports whether a fresh machine of the same kind would run the pod as well. A
// finished pod takes nothing.
func runsEverywhere(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return true
	}
	if pod.Annotations[DaemonSetPod] == "true" {
		return true
	}
	for _, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return owner.Kind == "DaemonSet"
		}
	}
	return false
}

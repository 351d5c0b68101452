// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// Annotations of pods by which cluster-autoscaler decides whether it may evict them.
const (
	// SafeToEvict has the value "true", "false" or [OnCompletion].
	SafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	// OnCompletion is the value of pods that must not be evicted before they have finished.
	OnCompletion = "on-completion"
	// SafeToEvictLocalVolumes lists the volumes whose content may be lost, separated by commas.
	SafeToEvictLocalVolumes = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
)

// Reasons why a pod must not be evicted now.
const (
	// NotSafeToEvict pods have the annotation [SafeToEvict] with the value "false" or [OnCompletion].
	NotSafeToEvict = "NotSafeToEvict"
	// NotReplicated pods have no controller that is known to replace them.
	NotReplicated = "NotReplicated"
	// SystemPod pods belong to kube-system, have no PodDisruptionBudget and are young.
	SystemPod = "SystemPod"
	// LocalStorage pods would lose what they have on the disk of their Node.
	LocalStorage = "LocalStorage"
	// PodDisruptionBudget: their budget allows no eviction now, or it is not known whether one does.
	PodDisruptionBudget = "PodDisruptionBudget"
)

const (
	// systemPodTimeout is how long a pod of kube-system without a budget prevents its eviction:
	// cluster-autoscaler's default of --blocking-system-pod-distruption-timeout.
	systemPodTimeout = time.Hour
	// terminatingTimeout is how long after its grace period a pod that is being deleted still counts.
	terminatingTimeout = 30 * time.Second
	// maxBudgets is how many PodDisruptionBudgets of a namespace are considered. If there are more,
	// its pods stay.
	maxBudgets = 1000
)

// replicatedBy are the kinds of controllers that replace a pod that was evicted.
var replicatedBy = map[string]bool{"ReplicaSet": true, "ReplicationController": true, "StatefulSet": true, "Job": true}

// EvictionRule has what can be changed of the rule by which pods may be evicted. The zero value is
// cluster-autoscaler's default.
type EvictionRule struct {
	// SystemPods and LocalStorage report whether pods may be evicted in spite of the reasons of
	// these names.
	SystemPods, LocalStorage bool
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	Namespace, Name string
	Selector        labels.Selector
	// Allowed is how many of the pods may be evicted now.
	Allowed int
}

// key returns the name of a budget that is unique in the cluster.
func (b *Budget) key() string { return b.Namespace + "/" + b.Name }

// BudgetsOf reads PodDisruptionBudgets. They are sorted.
func BudgetsOf(objects []*policyv1.PodDisruptionBudget) []Budget {
	all := make([]Budget, 0, len(objects))
	for _, b := range objects {
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil {
			all = append(all, Budget{Namespace: b.Namespace, Name: b.Name, Selector: selector, Allowed: int(b.Status.DisruptionsAllowed)})
		}
	}
	slices.SortFunc(all, func(a, b Budget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Evictor decides which pods may be evicted now. Its rule is cluster-autoscaler's, where that drains
// a Node, or stricter; see docs/reserve.md.
type Evictor struct {
	rule EvictionRule
	now  time.Time
	// budgets are by namespace; unknown is why they are not known, if they are not.
	budgets map[string][]*Budget
	unknown string
	// expected are the pods that are taken from their budgets already, by namespace and name.
	expected map[string]bool
}

// NewEvictor returns an Evictor. Unknown is why the budgets are not known; empty if they are.
func NewEvictor(rule EvictionRule, budgets []Budget, unknown string, now time.Time) *Evictor {
	e := &Evictor{rule: rule, now: now, unknown: unknown, budgets: map[string][]*Budget{}, expected: map[string]bool{}}
	for _, b := range budgets {
		e.budgets[b.Namespace] = append(e.budgets[b.Namespace], &b)
	}
	return e
}

// Expect takes pods from their budgets that are about to be evicted, or whose eviction is decided.
// Budgets count pods that are being deleted themselves.
func (e *Evictor) Expect(pods ...*corev1.Pod) {
	for _, pod := range pods {
		if !IsWorkload(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		e.expected[nameOf(pod)] = true
		for _, b := range e.budgetsOf(pod) {
			b.Allowed--
		}
	}
}

// WhyNot returns why pods cannot all be evicted now, and one after the other; empty if they can. The
// text begins with the reason and a colon. Pods that a drain leaves alone, or that are as good as
// gone, do not count.
func (e *Evictor) WhyNot(pods ...*corev1.Pod) string {
	spent := map[string]int{}
	for _, pod := range pods {
		if !IsWorkload(pod) || e.overdue(pod) {
			continue
		}
		if reason, text := e.obstacle(pod, spent); reason != "" {
			return fmt.Sprintf("%s: %s", reason, text)
		}
	}
	return ""
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// overdue reports whether a pod should have been gone for some time.
func (e *Evictor) overdue(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if given := pod.Spec.TerminationGracePeriodSeconds; given != nil {
		grace = *given
	}
	return e.now.After(pod.DeletionTimestamp.Add(time.Duration(grace)*time.Second + terminatingTimeout))
}

// obstacle returns why a pod must not be evicted after others of its machine, and counts its
// eviction.
func (e *Evictor) obstacle(pod *corev1.Pod, spent map[string]int) (reason, text string) {
	name := nameOf(pod)
	if unclear := e.unclear(pod); unclear != "" {
		return PodDisruptionBudget, unclear
	}
	budgets := e.budgetsOf(pod)
	if reason, text := e.pin(pod, len(budgets) > 0); reason != "" {
		return reason, "pod " + name + " " + text
	}
	if len(budgets) > 1 {
		return PodDisruptionBudget, fmt.Sprintf("pod %s has two of them, %s and %s, and Kubernetes does not evict such a pod: remove one", name, budgets[0].Name, budgets[1].Name)
	}
	for _, b := range budgets {
		if !e.expected[name] {
			spent[b.key()]++
		}
		if spent[b.key()] > b.Allowed {
			return PodDisruptionBudget, fmt.Sprintf("%s allows no eviction of pod %s", b.key(), name)
		}
	}
	return "", ""
}

// pin returns why a pod must not be evicted, whatever its budget allows.
func (e *Evictor) pin(pod *corev1.Pod, budgeted bool) (reason, text string) {
	safe, owner := pod.Annotations[SafeToEvict], metav1.GetControllerOfNoCopy(pod)
	volume, local := LocalVolume(pod)
	switch {
	case safe == "true" || pod.Annotations[similar.DaemonSetPod] == "true":
		return "", ""
	case safe == "false":
		return NotSafeToEvict, "must not be evicted"
	case safe == OnCompletion:
		return NotSafeToEvict, "must not be evicted before it has finished"
	case owner == nil:
		return NotReplicated, "has no controller and would not be recreated"
	case !replicatedBy[owner.Kind]:
		return NotReplicated, "belongs to a " + owner.Kind + ", which may not recreate it"
	case !e.rule.SystemPods && !budgeted && e.blocksAsSystem(pod):
		return SystemPod, "has no PodDisruptionBudget, and is younger than 1 hour"
	case !e.rule.LocalStorage && local:
		return LocalStorage, "has local storage in its volume " + volume
	}
	return "", ""
}

func (e *Evictor) blocksAsSystem(pod *corev1.Pod) bool {
	return pod.Namespace == metav1.NamespaceSystem && (pod.CreationTimestamp.IsZero() || !e.now.After(pod.CreationTimestamp.Add(systemPodTimeout)))
}

// LocalVolume returns the first volume of a pod whose content its eviction would lose, and which the
// pod does not list in [SafeToEvictLocalVolumes]; false if there is none.
func LocalVolume(pod *corev1.Pod) (name string, there bool) {
	safe := strings.Split(pod.Annotations[SafeToEvictLocalVolumes], ",")
	for _, v := range pod.Spec.Volumes {
		onDisk := v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
		if onDisk && !slices.Contains(safe, v.Name) {
			return v.Name, true
		}
	}
	return "", false
}

// unclear returns why it cannot be decided what budgets a pod has.
func (e *Evictor) unclear(pod *corev1.Pod) string {
	n := len(e.budgets[pod.Namespace])
	switch {
	case e.unknown != "":
		return e.unknown
	case n > maxBudgets:
		return fmt.Sprintf("namespace %s has more than %d, too many to check", pod.Namespace, maxBudgets)
	case n > 0 && !fit.LabelsKnown(pod):
		return fmt.Sprintf("pod %s is too large to find its budget", nameOf(pod))
	}
	return ""
}

// budgetsOf returns the budgets that select a pod.
func (e *Evictor) budgetsOf(pod *corev1.Pod) (matching []*Budget) {
	for _, b := range e.budgets[pod.Namespace][:min(len(e.budgets[pod.Namespace]), maxBudgets)] {
		if b.Selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, b)
		}
	}
	return matching
}

// SharedBudget limits how many pods of several machines may be evicted together.
type SharedBudget struct {
	// Allowed is how many of its pods may be evicted now; Pods is how many of them each machine
	// runs, by name.
	Allowed int
	Pods    map[string]int
}

// Shared returns the budgets that more than one of these machines have pods of. Pods are by the name
// of their machine.
func (e *Evictor) Shared(pods map[string][]*corev1.Pod) (shared []SharedBudget) {
	all := map[string]*SharedBudget{}
	for name, its := range pods {
		for _, pod := range its {
			if !IsWorkload(pod) || e.overdue(pod) {
				continue
			}
			for _, b := range e.budgetsOf(pod) {
				if all[b.key()] == nil {
					all[b.key()] = &SharedBudget{Allowed: b.Allowed, Pods: map[string]int{}}
				}
				all[b.key()].Pods[name]++
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if len(all[key].Pods) > 1 {
			shared = append(shared, *all[key])
		}
	}
	return shared
}

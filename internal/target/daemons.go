// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"iter"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/turns"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// ImportantDaemons returns the most important DaemonSets, at most as many as the limit allows, in this
// order: system components first, then the oldest. If these are not all, namespaces take turns, so
// that those with few DaemonSets keep all of them.
func ImportantDaemons(sets []*appsv1.DaemonSet, limit int) []*appsv1.DaemonSet {
	sets = slices.SortedFunc(slices.Values(sets), byImportance)
	if len(sets) <= limit {
		return sets
	}
	sets = turns.ByNamespace(sets, func(set *appsv1.DaemonSet) string { return set.Namespace })
	return slices.SortedFunc(slices.Values(sets[:limit]), byImportance)
}

func byImportance(a, b *appsv1.DaemonSet) int {
	return cmp.Or(cmp.Compare(b.Spec.Template.Spec.PriorityClassName, a.Spec.Template.Spec.PriorityClassName),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
}

// DaemonPods yields the most important DaemonSets, at most as many as the limit allows, and what each
// runs on a Node. Their pods are among some that DaemonSets control.
func DaemonPods(sets []*appsv1.DaemonSet, limit int, pods iter.Seq[*corev1.Pod]) iter.Seq2[*appsv1.DaemonSet, *fit.Pod] {
	sets = ImportantDaemons(sets, limit)
	newest := NewestPods(sets, pods)
	return func(yield func(*appsv1.DaemonSet, *fit.Pod) bool) {
		for _, set := range sets {
			if !yield(set, DaemonPod(set, newest[set.UID])) {
				return
			}
		}
	}
}

// DaemonPod returns what a DaemonSet runs on a Node. The newest pod of its present template, if there
// is one, shows what the next one requests: admission may change that, for example for a
// VerticalPodAutoscaler, a LimitRange or a RuntimeClass.
func DaemonPod(set *appsv1.DaemonSet, newest *corev1.Pod) *fit.Pod {
	pod := templatePod(set)
	if newest != nil {
		from := newest.Spec
		pod.Spec.Containers, pod.Spec.InitContainers, pod.Spec.Overhead, pod.Spec.Resources = from.Containers, from.InitContainers, from.Overhead, from.Resources
	}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: set.Name, UID: set.UID}}
	pod.Spec.Tolerations = slices.Concat(pod.Spec.Tolerations, daemonTolerations)
	return fit.Read(pod, false)
}

// templateGeneration is the label of a pod for the template of its DaemonSet that it was created from.
const templateGeneration = "pod-template-generation"

// NewestPods returns the newest pod of the present template of each DaemonSet, by UID, among some pods
// that DaemonSets control. A pod of another namespace only names the DaemonSet as its owner.
func NewestPods(sets []*appsv1.DaemonSet, pods iter.Seq[*corev1.Pod]) map[types.UID]*corev1.Pod {
	present := make(map[types.UID]*appsv1.DaemonSet, len(sets))
	for _, set := range sets {
		if set.Annotations[appsv1.DeprecatedTemplateGeneration] != "" {
			present[set.UID] = set
		}
	}
	newest := map[types.UID]*corev1.Pod{}
	for pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || present[owner.UID] == nil || !isOfTemplate(pod, present[owner.UID]) {
			continue
		}
		if other := newest[owner.UID]; other == nil || cmp.Or(other.CreationTimestamp.Compare(pod.CreationTimestamp.Time), cmp.Compare(pod.Name, other.Name)) < 0 {
			newest[owner.UID] = pod
		}
	}
	return newest
}

// isOfTemplate reports whether a pod was created from the present template of a DaemonSet, if that
// created it.
func isOfTemplate(pod *corev1.Pod, set *appsv1.DaemonSet) bool {
	return pod.Namespace == set.Namespace && pod.Labels[templateGeneration] == set.Annotations[appsv1.DeprecatedTemplateGeneration]
}

// templatePod returns a pod of a DaemonSet as the API server completes it.
func templatePod(set *appsv1.DaemonSet) *corev1.Pod {
	return fit.TemplatePod(set.Namespace, set.Name, &set.Spec.Template)
}

// daemonTolerations are the tolerations that every pod of a DaemonSet gets.
var daemonTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

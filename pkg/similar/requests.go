// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

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

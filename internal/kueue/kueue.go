// SPDX-License-Identifier: Apache-2.0

// Package kueue reads which pods Kueue admits together.
package kueue

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// groupName is a label and, for long names, an annotation. totalCount is an annotation.
	groupName, totalCount = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"
	// Groups with one of these annotations are admitted before all their pods exist.
	fastAdmission, serving = "kueue.x-k8s.io/pod-group-fast-admission", "kueue.x-k8s.io/pod-group-serving"
)

// Group returns the name of the group of pods that a pod is admitted with, and how many pods the group
// has; empty if it is admitted alone, or before all of them exist.
func Group(pod *corev1.Pod) (name string, pods int) {
	if pod.Annotations[fastAdmission] == "true" || pod.Annotations[serving] == "true" {
		return "", 0
	}
	name = cmp.Or(pod.Annotations[groupName], pod.Labels[groupName])
	pods, err := strconv.Atoi(pod.Annotations[totalCount])
	if name == "" || err != nil || pods < 1 {
		return "", 0
	}
	return name, pods
}

// SetGroup writes the annotations that [Group] reads, unless the pod is admitted alone.
func SetGroup(pod *corev1.Pod, name string, pods int) {
	if name == "" {
		return
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, totalCount, strconv.Itoa(pods))
	if pod.Labels[groupName] != name {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, groupName, name)
	}
}

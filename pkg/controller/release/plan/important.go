// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MostImportant returns the most important of many pods, in this order: as many as the limit
// allows, by the rule of TakeFairly. It sorts little more than these.
func MostImportant(pods []*corev1.Pod, limit int) []*corev1.Pod {
	counts := map[string]int{}
	for _, pod := range pods {
		counts[pod.Namespace]++
	}
	chosen := make(map[string]*selection, len(counts))
	for namespace, share := range sharesOf(counts, limit) {
		chosen[namespace] = &selection{limit: share}
	}
	for _, pod := range pods {
		chosen[pod.Namespace].consider(pod)
	}
	all := make([]*corev1.Pod, 0, min(limit, len(pods)))
	for _, s := range chosen {
		s.trimToLimit()
		all = append(all, s.pods...)
	}
	slices.SortFunc(all, byImportance)
	return all
}

// selection keeps the most important pods of those that it is offered.
type selection struct {
	limit int
	// pods are at most twice as many as the limit. If it was trimmed, as many as the limit are
	// sorted and come first: one that is less important than these is not among the most important.
	pods    []*corev1.Pod
	trimmed bool
}

func (s *selection) consider(pod *corev1.Pod) {
	if s.limit == 0 || s.trimmed && byImportance(s.pods[s.limit-1], pod) < 0 {
		return
	}
	if s.pods = append(s.pods, pod); len(s.pods) == 2*s.limit {
		s.trimToLimit()
	}
}

// trimToLimit keeps no more than the limit.
func (s *selection) trimToLimit() {
	if len(s.pods) <= s.limit {
		return
	}
	slices.SortFunc(s.pods, byImportance)
	s.pods, s.trimmed = s.pods[:s.limit], true
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// Bounds of one decision, since users of the target cluster create pods, ReplicaSets and
// DaemonSets. What exceeds them is left to the autoscaler, and namespaces get equal parts.
const (
	// MaxPods is how many waiting pods are considered.
	MaxPods = 5000
	// MaxShapes is how many of their shapes are considered. Each replica of a StatefulSet is one.
	MaxShapes = 256
	// MaxDaemons is how many DaemonSets are considered for the part of a machine that they need.
	MaxDaemons = 200
)

// TakeFairly takes as many items as the limit allows, in their order. If these are not all, no
// namespace gets more than its share while another gets less than it has.
func TakeFairly[T any](items []T, namespaceOf func(T) string, limit int) (taken, left []T) {
	if len(items) <= limit {
		return items, nil
	}
	counts := map[string]int{}
	for _, item := range items {
		counts[namespaceOf(item)]++
	}
	shares := sharesOf(counts, limit)
	for _, item := range items {
		if namespace := namespaceOf(item); shares[namespace] > 0 {
			shares[namespace]--
			taken = append(taken, item)
		} else {
			left = append(left, item)
		}
	}
	return taken, left
}

// sharesOf divides a limit among namespaces, the smallest first: each gets what it has, up to an
// equal part of the rest.
func sharesOf(counts map[string]int, limit int) map[string]int {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b)) })
	shares := make(map[string]int, len(names))
	for i, name := range names {
		part := limit / (len(names) - i)
		if (len(names)-i)*part < limit {
			part++ // some get one more than others
		}
		shares[name] = min(counts[name], part)
		limit -= shares[name]
	}
	return shares
}

// byImportance puts pods of higher priority first, then those that have waited longer.
func byImportance(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(priority(b), priority(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// limitShapes omits pods of more shapes than one decision considers.
func limitShapes(pods []*fit.Pod) (taken, left []*fit.Pod) {
	var shapes []*fit.Pod // the most important of each
	known := map[string]bool{}
	for _, p := range pods {
		if !known[p.Shape()] {
			known[p.Shape()] = true
			shapes = append(shapes, p)
		}
	}
	_, beyond := TakeFairly(shapes, func(p *fit.Pod) string { return p.Object.Namespace }, MaxShapes)
	for _, p := range beyond {
		known[p.Shape()] = false
	}
	for _, p := range pods {
		if known[p.Shape()] {
			taken = append(taken, p)
		} else {
			left = append(left, p)
		}
	}
	return taken, left
}

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

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	requests "k8s.io/component-helpers/resource"
)

// maxQuotas is how many ResourceQuotas of a namespace count, the first by name.
const maxQuotas = 32

// quotas divide what the ResourceQuotas of namespaces leave (law 3).
type quotas struct {
	byNamespace map[string][]*quota
}

type quota struct {
	object *corev1.ResourceQuota
	// left is what is left of each resource.
	left map[corev1.ResourceName]resource.Quantity
}

func newQuotas(objects []*corev1.ResourceQuota) quotas {
	all := quotas{byNamespace: map[string][]*quota{}}
	for _, o := range slices.SortedFunc(slices.Values(objects), func(a, b *corev1.ResourceQuota) int { return cmp.Compare(a.Name, b.Name) }) {
		if len(all.byNamespace[o.Namespace]) == maxQuotas {
			continue
		}
		q := &quota{object: o, left: map[corev1.ResourceName]resource.Quantity{}}
		for name, hard := range o.Status.Hard {
			left := hard.DeepCopy()
			left.Sub(o.Status.Used[name])
			q.left[name] = left
		}
		all.byNamespace[o.Namespace] = append(all.byNamespace[o.Namespace], q)
	}
	return all
}

// takeChunks takes what chunks of a shape request, within all quotas. It returns for how many
// chunks that is enough, and which quotas leave less than requested.
func (q quotas) takeChunks(chunk *corev1.Pod, asked int) (taken int, limiting []string) {
	if len(q.byNamespace[chunk.Namespace]) == 0 {
		return asked, nil
	}
	requested := quotaNames(requests.PodRequests(chunk, requests.PodResourcesOptions{}))
	taken = asked
	var concerned []*quota
	for _, each := range q.byNamespace[chunk.Namespace] {
		if !concerns(each.object, chunk) {
			continue
		}
		concerned = append(concerned, each)
		if n := each.roomFor(requested, asked); n < asked {
			taken, limiting = min(taken, n), append(limiting, each.object.Name)
		}
	}
	for _, each := range concerned {
		each.reduce(requested, taken)
	}
	return taken, limiting
}

// quotaNames returns requests under both names by which a quota can limit them.
func quotaNames(requested corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, q := range requested {
		if q.Sign() > 0 {
			all[name], all[corev1.DefaultResourceRequestsPrefix+name] = q, q
		}
	}
	return all
}

// roomFor returns how many chunks there is room for, at most the given number.
func (q *quota) roomFor(requested corev1.ResourceList, asked int) int {
	for name, each := range requested {
		if left, limited := q.left[name]; limited {
			asked = int(min(int64(asked), timesIn(each, left)))
		}
	}
	return asked
}

func (q *quota) reduce(requested corev1.ResourceList, chunks int) {
	for name, each := range requested {
		if left, limited := q.left[name]; limited {
			all := each.DeepCopy()
			all.Mul(int64(chunks))
			left.Sub(all)
			q.left[name] = left
		}
	}
}

// concerns reports whether a quota counts a pod.
func concerns(q *corev1.ResourceQuota, pod *corev1.Pod) bool {
	for _, scope := range q.Spec.Scopes {
		if !inScope(pod, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}) {
			return false
		}
	}
	return q.Spec.ScopeSelector == nil || !slices.ContainsFunc(q.Spec.ScopeSelector.MatchExpressions,
		func(r corev1.ScopedResourceSelectorRequirement) bool { return !inScope(pod, r) })
}

func inScope(pod *corev1.Pod, r corev1.ScopedResourceSelectorRequirement) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return pod.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return pod.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		return selectsClass(r, pod.Spec.PriorityClassName)
	}
	return false
}

func bestEffort(pod *corev1.Pod) bool {
	all := requests.PodRequests(pod, requests.PodResourcesOptions{})
	return all.Cpu().IsZero() && all.Memory().IsZero()
}

func selectsClass(r corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpIn:
		return class != "" && slices.Contains(r.Values, class)
	}
	return !slices.Contains(r.Values, class) // NotIn
}

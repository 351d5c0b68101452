// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	requests "k8s.io/component-helpers/resource"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// kinds are those that a scalableRef can name, by group.
var kinds = map[string][]string{
	"":      {"ReplicationController"},
	"apps":  {"Deployment", "ReplicaSet", "StatefulSet"},
	"batch": {"Job"},
}

// Watched reports whether the kind of a workload is watched, so that its template is known. Of a
// workload of another kind, the scale subresource and the newest pod are read.
func Watched(ref *v1beta1.ScalableRef) bool { return slices.Contains(kinds[ref.APIGroup], ref.Kind) }

func problem(why, format string, arguments ...any) *Problem {
	return &Problem{Reason: why, Message: fmt.Sprintf(format, arguments...)}
}

// chunkPod returns one chunk as a pod (law 1), or why that is not known.
func (b *Buffer) chunkPod() (*corev1.Pod, *Problem) {
	s := &b.Object.Spec
	switch {
	case s.PodTemplateRef != nil && s.ScalableRef != nil:
		return nil, problem(reason.ReferenceInvalid, "the buffer has both podTemplateRef and scalableRef: remove one")
	case b.Lacks != "":
		return nil, unread(reason.RightMissing, b.Lacks)
	case s.PodTemplateRef != nil && b.Template == nil:
		return nil, problem(reason.PodTemplateNotFound, "PodTemplate %s does not exist in namespace %s", s.PodTemplateRef.Name, b.Object.Namespace)
	case s.PodTemplateRef != nil:
		return chunkOf(b.Object, &b.Template.Template), nil
	case s.ScalableRef == nil:
		return nil, problem(reason.ReferenceInvalid, "the buffer has no reference: set podTemplateRef or scalableRef")
	case !Watched(s.ScalableRef):
		return b.liveShape(s.ScalableRef)
	case b.Workload == nil:
		return nil, problem(reason.WorkloadNotFound, "%s %s does not exist in namespace %s, or has ended", s.ScalableRef.Kind, s.ScalableRef.Name, b.Object.Namespace)
	}
	return chunkOf(b.Object, b.Workload.Template), nil
}

// liveShape returns the newest pod of a workload of a kind without a known template.
func (b *Buffer) liveShape(ref *v1beta1.ScalableRef) (*corev1.Pod, *Problem) {
	switch {
	case b.Scale == nil:
		return nil, unread(reason.WorkloadUnread, fmt.Sprintf("the scale of %s %s has not been read yet", ref.Kind, ref.Name))
	case b.Scale.Lacks != "":
		return nil, unread(reason.RightMissing, b.Scale.Lacks)
	case apierrors.IsNotFound(b.Scale.Err):
		return nil, problem(reason.WorkloadNotFound, "%s %s does not exist in namespace %s, or has no scale", ref.Kind, ref.Name, b.Object.Namespace)
	case meta.IsNoMatchError(b.Scale.Err):
		return nil, problem(reason.KindNotSupported, "the cluster does not serve kind %s of group %q: correct scalableRef", ref.Kind, ref.APIGroup)
	case b.Scale.Err != nil:
		return nil, unread(reason.WorkloadUnread, b.Scale.Err.Error())
	case b.Newest == nil:
		return nil, problem(reason.PodNotFound, "no pod of %s %s exists that shows the shape of a chunk: start one, or use podTemplateRef and replicas", ref.Kind, ref.Name)
	}
	return chunkOf(b.Object, &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: b.Newest.Labels, Annotations: b.Newest.Annotations}, // package fit notes there what it has not kept
		Spec:       b.Newest.Spec,
	}), nil
}

// unread returns the problem that something could not be read.
func unread(why, message string) *Problem {
	return &Problem{Reason: why, Message: message, unread: true}
}

// replicas returns the replicas of the workload, if there is one.
func (b *Buffer) replicas() (n int32, known bool) {
	switch {
	case b.Workload != nil:
		return b.Workload.Replicas, true
	case b.Scale != nil && b.Scale.Err == nil:
		return b.Scale.Replicas, true
	}
	return 0, false
}

// chunkOf returns a pod of a template, for the pool that the buffer names, if any.
func chunkOf(buffer *v1beta1.CapacityBuffer, template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := CompletedPod(buffer.Namespace, template)
	if pool := buffer.Annotations[v1beta1.PoolAnnotation]; pool != "" {
		selector := map[string]string{poolLabel(pool): ""}
		maps.Copy(selector, pod.Spec.NodeSelector)
		pod.Spec.NodeSelector = selector
	}
	return pod
}

// CompletedPod returns a pod of a template as the API server would complete it.
func CompletedPod(namespace string, template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := fit.TemplatePod(namespace, "chunk", template)
	pod.Spec.NodeName, pod.Spec.SchedulingGates = "", nil
	return pod
}

// chunkCount returns how many chunks a buffer asks for (law 2), or why that is not known.
func (b *Buffer) chunkCount(chunk *corev1.Pod) (int, *Problem) {
	s, most, known := &b.Object.Spec, int64(0), false
	if s.Replicas != nil {
		most, known = int64(*s.Replicas), true
	}
	if replicas, has := b.replicas(); has && s.Percentage != nil {
		most, known = max(most, percentOf(int64(*s.Percentage), int64(replicas))), true
	}
	if s.Limits != nil {
		limit, matched := within(s.Limits, requests.PodRequests(chunk, requests.PodResourcesOptions{}))
		if !matched {
			return 0, problem(reason.LimitsDoNotMatch, "spec.limits names no resource that a chunk requests: limit one that it requests")
		}
		if !known || limit < most {
			most, known = limit, true
		}
	}
	if !known {
		return 0, problem(reason.NumberMissing, "the number of chunks is missing: set replicas, percentage or limits")
	}
	return int(min(max(0, most), math.MaxInt32)), nil
}

// percentOf returns a percentage, rounded up.
func percentOf(percentage, replicas int64) int64 {
	return (max(0, percentage)*max(0, replicas) + 99) / 100
}

// within returns how many chunks with these requests fit into limits, and whether the limits name a
// resource that they request.
func within(limits v1beta1.ResourceList, requested corev1.ResourceList) (most int64, matched bool) {
	for name, each := range requested {
		all, limited := limits[v1beta1.ResourceName(name)]
		if !limited || each.Sign() <= 0 {
			continue
		}
		if n := timesIn(each, all); !matched || n < most {
			most, matched = n, true
		}
	}
	return most, matched
}

// timesIn returns how often an amount above 0 fits into another.
func timesIn(each, all resource.Quantity) int64 {
	switch {
	case each.Cmp(all) > 0: // the sum of requests may not fit into 64 bits
		return 0
	case all.Value() > math.MaxInt64/1000: // so large that thousandths do not matter, and would overflow
		return all.Value() / each.Value()
	}
	return all.MilliValue() / each.MilliValue()
}

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

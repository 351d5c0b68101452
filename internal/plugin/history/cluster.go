// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	requests "k8s.io/component-helpers/resource"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Objects are what a cluster knows about its pods.
type Objects struct {
	Now  time.Time
	Pods []*corev1.Pod
	// Events show when deleted pods were bound, and that their containers were stopped.
	Events []*corev1.Event
	// Nodes are the names of Nodes whose pods count, with those that wait; nil counts all.
	Nodes map[string]bool
}

// readPatience limits how long a single request may take.
const readPatience = time.Minute

// Read reads the pods and events of all namespaces. Without the right to list events, it returns
// the pods, and a note.
func Read(ctx context.Context, client kubernetes.Interface) (Objects, []string, error) {
	var o Objects
	err := listEach(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods("").List(ctx, options)
	}, func(item runtime.Object) int {
		if p, ok := item.(*corev1.Pod); ok {
			o.Pods = append(o.Pods, slim(p))
		}
		return len(o.Pods)
	})
	if err != nil {
		return o, nil, fmt.Errorf("list pods: %w", err)
	}
	err = listEach(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		options.FieldSelector = "involvedObject.kind=Pod"
		return client.CoreV1().Events("").List(ctx, options)
	}, func(item runtime.Object) int {
		if e, ok := item.(*corev1.Event); ok && (e.Reason == scheduled || e.Reason == killing) {
			o.Events = append(o.Events, slimEvent(e))
		}
		return len(o.Events)
	})
	switch {
	case apierrors.IsForbidden(err):
		return o, []string{"no right to list events, so pods that no longer exist are missing"}, nil
	case err != nil:
		return o, nil, fmt.Errorf("list events: %w", err)
	}
	return o, nil, nil
}

// listEach lists objects in pages, and ends with an error when too many were kept.
func listEach(ctx context.Context, list pager.ListPageFunc, keep func(runtime.Object) (kept int)) error {
	return read.Pages(readPatience, list).EachListItemWithAlloc(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		if keep(item) > read.MaxObjects {
			return read.ErrTooMany
		}
		return nil
	})
}

// slim keeps the fields of a pod that are read.
func slim(p *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, OwnerReferences: p.OwnerReferences,
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: p.Spec.NodeName, Overhead: p.Spec.Overhead, Resources: p.Spec.Resources},
		Status: corev1.PodStatus{Phase: p.Status.Phase, StartTime: p.Status.StartTime},
	}
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		kept.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
	}
	for _, c := range p.Spec.InitContainers {
		kept.Spec.InitContainers = append(kept.Spec.InitContainers, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range p.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Name: c.Name, Resources: c.Resources})
	}
	kept.Status.InitContainerStatuses, kept.Status.ContainerStatuses = ended(p.Status.InitContainerStatuses), ended(p.Status.ContainerStatuses)
	return kept
}

// ended returns when containers have ended, of those that have.
func ended(all []corev1.ContainerStatus) (kept []corev1.ContainerStatus) {
	for _, c := range all {
		if at := c.State.Terminated; at != nil {
			state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at.FinishedAt}}
			kept = append(kept, corev1.ContainerStatus{State: state})
		}
	}
	return kept
}

// slimEvent keeps the fields of an event that are read.
func slimEvent(e *corev1.Event) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{CreationTimestamp: e.CreationTimestamp},
		InvolvedObject: e.InvolvedObject, Reason: e.Reason, Message: e.Message, EventTime: e.EventTime, LastTimestamp: e.LastTimestamp,
	}
}

// The reasons of events that tell of a pod.
const (
	scheduled = "Scheduled"
	killing   = "Killing"
)

// Cluster returns the pods that exist, and deleted pods that events mention. A pod that is gone is
// taken to request what a pod with the same name but for its suffix requests.
func Cluster(o Objects) (demand.Trace, []string) {
	var trace demand.Trace
	known, siblings, agents := map[types.UID]bool{}, map[string]demand.Pods{}, map[string]bool{}
	for _, p := range o.Pods {
		known[p.UID] = true
		if pool.IsNodeAgent(p) {
			agents[commonName(p.Namespace, p.Name)] = true
			continue
		}
		one := podOf(p, o.Now)
		siblings[commonName(p.Namespace, p.Name)] = one
		if o.Nodes == nil || p.Spec.NodeName == "" || o.Nodes[p.Spec.NodeName] {
			trace = append(trace, one)
		}
	}
	gone, unknown := traceOfGone(o, known, siblings, agents)
	trace = append(trace, gone...)
	sortAll(trace)
	notes := []string{"pods that no longer exist are known only from the cluster's events, mostly of the last hour: prefer a file or Prometheus"}
	if unknown > 0 {
		notes = append(notes, "omitted: "+plural.Of(unknown, "deleted pod")+", because no similar pod shows their requests")
	}
	return trace, notes
}

func podOf(p *corev1.Pod, now time.Time) demand.Pods {
	need := requests.PodRequests(p, requests.PodResourcesOptions{})
	one := demand.Pods{Created: p.CreationTimestamp.UTC(), CPU: amountOf(need.Cpu(), resource.Milli), Memory: amountOf(need.Memory(), 0), Count: 1}
	if end := endTime(p, now); !end.IsZero() {
		one.Lasts = durationUntil(startTime(p), end)
	}
	return one
}

// startTime returns when a pod started on its Node. Before that, it waited, and used no room.
func startTime(p *corev1.Pod) time.Time {
	if p.Status.StartTime != nil {
		return later(p.CreationTimestamp.Time, p.Status.StartTime.Time)
	}
	return p.CreationTimestamp.Time
}

// amountOf returns a quantity in multiples of 10^scale, and the largest amount for larger ones, which
// may overflow. No machine has that much.
func amountOf(q *resource.Quantity, scale resource.Scale) int64 {
	if q.Cmp(*resource.NewScaledQuantity(demand.MaxRequest, scale)) > 0 {
		return demand.MaxRequest
	}
	return q.ScaledValue(scale)
}

// endTime returns when a pod ended; zero if it still runs.
func endTime(p *corev1.Pod, now time.Time) time.Time {
	switch {
	case p.DeletionTimestamp != nil && p.DeletionTimestamp.Time.Before(now):
		return p.DeletionTimestamp.Time
	case p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed:
		return time.Time{}
	}
	var end time.Time
	// Where an init container has failed, no other shows when.
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if c.State.Terminated != nil && c.State.Terminated.FinishedAt.After(end) {
			end = c.State.Terminated.FinishedAt.Time
		}
	}
	if end.IsZero() {
		return now // it has ended, but nothing shows when
	}
	return end
}

// durationUntil is at least an instant, because 0 means that a pod does not end.
func durationUntil(start, end time.Time) time.Duration { return max(time.Second, end.Sub(start)) }

// gonePod is a pod that no longer exists, as its events show.
type gonePod struct {
	namespace, name string
	// bound is zero if it is not known when the pod was bound, or if it ran on another Node.
	bound, stopped time.Time
}

// traceOfGone returns the deleted pods that only events mention, and how many of them have unknown
// requests. Those that are named as pods of a DaemonSet do not count.
func traceOfGone(o Objects, known map[types.UID]bool, siblings map[string]demand.Pods, agents map[string]bool) (trace demand.Trace, unknown int) {
	for _, g := range gonePods(o, known) {
		if g.bound.IsZero() {
			continue
		}
		name := commonName(g.namespace, g.name)
		like, found := siblings[name]
		if !found {
			if !agents[name] {
				unknown++
			}
			continue
		}
		end := o.Now
		if !g.stopped.IsZero() {
			end = g.stopped
		}
		trace = append(trace, demand.Pods{Created: g.bound.UTC(), CPU: like.CPU, Memory: like.Memory, Lasts: durationUntil(g.bound, end), Count: 1})
	}
	return trace, unknown
}

func gonePods(o Objects, known map[types.UID]bool) map[types.UID]*gonePod {
	gone := map[types.UID]*gonePod{}
	for _, e := range o.Events {
		about := e.InvolvedObject
		if about.Kind != "Pod" || about.UID == "" || known[about.UID] || e.Reason != scheduled && e.Reason != killing {
			continue
		}
		if gone[about.UID] == nil {
			gone[about.UID] = &gonePod{namespace: about.Namespace, name: about.Name}
		}
		if at := timeOf(e); e.Reason == killing {
			// Containers that are restarted are killed, too.
			gone[about.UID].stopped = later(gone[about.UID].stopped, at)
		} else if o.Nodes == nil || boundTo(e, o.Nodes) {
			gone[about.UID].bound = at
		}
	}
	return gone
}

// sortAll sorts pods in an order that does not depend on how they were found.
func sortAll(trace demand.Trace) {
	slices.SortFunc(trace, func(a, b demand.Pods) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.Lasts, b.Lasts))
	})
}

// boundTo reports whether an event of the scheduler names one of these Nodes: "Successfully
// assigned default/web-x to node-1".
func boundTo(e *corev1.Event, nodes map[string]bool) bool {
	_, node, found := strings.Cut(e.Message, " to ")
	return found && nodes[strings.TrimSpace(node)]
}

func timeOf(e *corev1.Event) time.Time {
	switch {
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.CreationTimestamp.Time
}

// commonName is what the names of pods of one template have in common.
func commonName(namespace, name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		name = name[:i]
	}
	return fmt.Sprintf("%s/%s", namespace, name)
}

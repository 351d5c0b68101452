// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/evenkeel/evenkeel/internal/plugin/read"
)

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
		return o, []string{"no right to list events, so pods that no longer exist are not known"}, nil
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

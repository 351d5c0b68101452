// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

// kubelet keeps every Deployment's pods: all that a cluster does for them, once a second while there is something to do.
func (c *cluster) kubelet(ctx context.Context, client kubernetes.Interface, _ versioned.Interface) (again time.Duration, err error) {
	list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for i := range list.Items {
		if c.tend(ctx, client, &list.Items[i]) {
			again = time.Second
		}
	}
	return again, nil
}

func (c *cluster) tend(ctx context.Context, client kubernetes.Interface, d *appsv1.Deployment) (busy bool) {
	list, err := client.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		return true
	}
	wanted := int(ptr.Deref(d.Spec.Replicas, 1))
	out := false
	c.Do(func() {
		if q, ok := c.quota[d.Name]; ok {
			wanted = min(wanted, q)
		}
		out = c.out[d.Name]
	})
	living := list.Items
	for range wanted - len(living) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: d.Name + "-", Namespace: d.Namespace, Labels: d.Spec.Template.Labels}}
		if pod.Spec = d.Spec.Template.Spec; pod.Spec.Containers == nil {
			pod.Spec.Containers = []corev1.Container{{Name: "work", Image: "registry.example/work:1"}}
		}
		_, _ = client.CoreV1().Pods(d.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	}
	// Pods that do not run are deleted first, as a ReplicaSet does.
	slices.SortFunc(living, func(a, b corev1.Pod) int { return strings.Compare(string(a.Status.Phase), string(b.Status.Phase)) })
	for i := range max(0, len(living)-wanted) {
		_ = client.CoreV1().Pods(d.Namespace).Delete(ctx, living[i].Name, metav1.DeleteOptions{})
	}
	ready := 0
	for i := range living {
		pod := &living[i]
		busy = busy || pod.Status.Phase != corev1.PodRunning && !out
		if pod.Status.Phase == corev1.PodRunning {
			ready++
		} else if !out && time.Since(pod.CreationTimestamp.Time) >= c.boot {
			now := metav1.Now()
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}}
			_, _ = client.CoreV1().Pods(d.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		}
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: int32(len(living)), ReadyReplicas: int32(ready)}
	_, err = client.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	return busy || err != nil || len(living) != wanted
}

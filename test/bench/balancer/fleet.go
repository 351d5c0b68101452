// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/bench/internal/parallel"
)

const (
	namespace = "default"
	// bare is the name of what the bare client writes to: a Deployment in the place of a Balancer,
	// and its targets.
	bare = "bare"
	// writers make objects at the same time.
	writers = 32
)

// fleet is all objects of the benchmark.
type fleet struct {
	size
	kube kubernetes.Interface
	ours versioned.Interface
}

func newFleet(config *rest.Config, s size) (*fleet, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ours, err := versioned.NewForConfig(config)
	return &fleet{s, kube, ours}, err
}

func balancerName(i int) string { return fmt.Sprintf("shop-%d", i) }

// targetsOf are the names of the Deployments of a Balancer, or of the bare client.
func (f *fleet) targetsOf(balancer string) []string {
	var names []string
	for i := range f.targets {
		names = append(names, fmt.Sprintf("%s-%d", balancer, i))
	}
	return names
}

func (f *fleet) populate(ctx context.Context) error {
	owners := []string{bare}
	for i := range f.balancers {
		owners = append(owners, balancerName(i))
	}
	if _, err := f.kube.AppsV1().Deployments(namespace).Create(ctx, f.deployment(bare, bare), metav1.CreateOptions{}); err != nil {
		return err
	}
	return parallel.Each(len(owners), writers, func(i int) error {
		for _, name := range f.targetsOf(owners[i]) {
			if _, err := f.kube.AppsV1().Deployments(namespace).Create(ctx, f.deployment(owners[i], name), metav1.CreateOptions{}); err != nil {
				return err
			}
			for pod := range f.each() {
				if owners[i] == bare {
					break
				}
				if err := f.newPod(ctx, owners[i], name, pod); err != nil {
					return err
				}
			}
		}
		if owners[i] == bare {
			return nil
		}
		_, err := f.ours.BalancerV1alpha1().Balancers(namespace).Create(ctx, f.balancer(owners[i]), metav1.CreateOptions{})
		return err
	})
}

func (f *fleet) deployment(owner, name string) *appsv1.Deployment {
	labels := map[string]string{"app": owner, "run": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": owner}}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To(int32(f.each())), &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	return d
}

func (f *fleet) newPod(ctx context.Context, owner, target string, n int) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", target, n), Labels: map[string]string{"app": owner, "run": target}}}
	pod.Spec.NodeName = "none"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	pod, err := f.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}
	_, err = f.kube.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// balancer is one that has what it wants: as many replicas as there are pods.
func (f *fleet) balancer(name string) *v1alpha1.Balancer {
	b := &v1alpha1.Balancer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec = v1alpha1.BalancerSpec{
		Replicas: ptr.To(int32(f.each() * f.targets)),
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Policy: v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Even, Fallback: &v1alpha1.Fallback{
			StartupTimeoutSeconds: ptr.To[int32](3600)}},
	}
	for _, target := range f.targetsOf(name) {
		b.Spec.Targets = append(b.Spec.Targets, v1alpha1.BalancerTarget{
			Name: target, ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}})
	}
	return b
}

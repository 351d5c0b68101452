// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// podSpec is one of a pod that takes so many CPUs of a machine of these workers.
func podSpec(workers, cpus string) corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelInstanceTypeStable: workers}, TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpus), "memory": resource.MustParse("1Gi")}}}},
	}
}

// takes has each pod of a workload take so many CPUs.
func takes(cpus string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(cpus)
	}
}

// in has a workload run in another namespace.
func in(namespace string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Namespace = namespace }
}

// scratch has the pods of a workload keep something on their Node's disk.
func scratch(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// workload is a Deployment of pods that each take most of a machine with 4 CPUs.
func workload(ctx context.Context, name, workers string, replicas int32, change ...func(*appsv1.Deployment)) {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Replicas, d.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels, d.Spec.Template.Spec = labels, podSpec(workers, "3")
	for _, f := range change {
		f(d)
	}
	deployments := kube.AppsV1().Deployments(d.Namespace)
	_, err := deployments.Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		foreground := metav1.DeletePropagationForeground
		err := deployments.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground})
		Expect(err == nil || apierrors.IsNotFound(err)).To(BeTrue())
		Eventually(func() ([]corev1.Pod, error) { return pods(ctx, name) }).Should(BeEmpty())
	})
}

// alone is a small pod that no controller would make again.
func alone(ctx context.Context, name, workers string) {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: podSpec(workers, "500m")}
	_, err := kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		err := kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		Expect(err == nil || apierrors.IsNotFound(err)).To(BeTrue())
	})
}

// everywhere is a DaemonSet on the machines of these workers.
func everywhere(ctx context.Context, name, workers string) {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Selector, d.Spec.Template.Labels, d.Spec.Template.Spec = &metav1.LabelSelector{MatchLabels: labels}, labels, podSpec(workers, "100m")
	_, err := kube.AppsV1().DaemonSets(namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.AppsV1().DaemonSets(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

// demand changes how many pods a workload wants.
func demand(ctx context.Context, name string, replicas int32) {
	GinkgoHelper()
	_, err := kube.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// pods of a workload, wherever they are.
func pods(ctx context.Context, name string) ([]corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// nodesOf are the Nodes that the pods of a workload are on, one for each.
func nodesOf(ctx context.Context, name string) []string {
	GinkgoHelper()
	list, err := pods(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, p := range list {
		all = append(all, p.Spec.NodeName)
	}
	slices.Sort(all)
	return all
}

// evictable allows what moves pods off Nodes to move the pods that a workload has now.
func evictable(ctx context.Context, name string) {
	GinkgoHelper()
	list, err := pods(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	for _, p := range list {
		_, err := kube.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// run counts the pods of a workload that run.
func run(ctx context.Context, name string) (int, error) {
	list, err := pods(ctx, name)
	return len(slices.DeleteFunc(list, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })), err
}

// runs waits until so many pods of a workload run.
func runs(ctx context.Context, name string, n int) {
	GinkgoHelper()
	By(fmt.Sprintf("%d pods of %s run", n, name))
	Eventually(func() (int, error) { return run(ctx, name) }).WithContext(ctx).Should(Equal(n))
}

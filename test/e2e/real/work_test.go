// SPDX-License-Identifier: Apache-2.0

package real

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// tiny is an image without content beside its program.
const tiny = "127.0.0.1:5000/0b/work:1"

// template is that of pods for a pool, which leave Nodes at once that are not ready.
func (p pool) template(image, cpu string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": p.name}},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelTopologyZone: p.name},
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			DNSPolicy:                     corev1.DNSDefault,
			AutomountServiceAccountToken:  ptr.To(false),
			Containers: []corev1.Container{{Name: "work", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}},
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](0)},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](0)},
			},
		},
	}
}

// work runs that many pods, each of which needs most of a machine.
func (p pool) work(ctx context.Context, replicas int32, image string) {
	GinkgoHelper()
	p.workWith(ctx, replicas, image, "600m")
}

// workWith runs this many pods, each of which requests this much CPU.
func (p pool) workWith(ctx context.Context, replicas int32, image, cpu string) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.name}}, Template: p.template(image, cpu),
	}}
	_, err := p.kube.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(p.kube.AppsV1().Deployments(namespace).Delete(ctx, p.name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})).To(Succeed())
		Eventually(p.pods).WithContext(ctx).Should(BeEmpty())
	})
}

func (p pool) scaleWork(ctx context.Context, replicas int) {
	GinkgoHelper()
	_, err := p.kube.AppsV1().Deployments(namespace).Patch(ctx, p.name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// setImage updates the Deployment.
func (p pool) setImage(ctx context.Context, image string) {
	GinkgoHelper()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"work","image":%q}]}}}}`, image)
	_, err := p.kube.AppsV1().Deployments(namespace).Patch(ctx, p.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (p pool) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := p.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + p.name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// running are the pods that are ready: the Node of each, by name.
func (p pool) running(ctx context.Context) (map[string]string, error) {
	pods, err := p.pods(ctx)
	running := map[string]string{}
	for _, pod := range pods {
		if isReady(&pod) && pod.DeletionTimestamp == nil {
			running[pod.Name] = pod.Spec.NodeName
		}
	}
	return running, err
}

// states tells what keeps pods from being ready, for the message of a failure.
func (p pool) states(ctx context.Context) string {
	pods, err := p.pods(ctx)
	text := fmt.Sprint("pods: ", err)
	for _, pod := range pods {
		text += fmt.Sprintf("\n%s on %s: %s %v", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.ContainerStatuses)
	}
	nodes, err := p.nodes(ctx)
	return text + fmt.Sprint("\nnodes: ", nodes, err)
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// agent runs a DaemonSet on the pool's Nodes; one that tolerates the reserve runs on closed ones, too.
func (p pool) agent(ctx context.Context, name string, tolerates bool) {
	GinkgoHelper()
	template := p.template(tiny, "10m")
	template.Labels = map[string]string{"app": name}
	if tolerates {
		template.Spec.Tolerations = append(template.Spec.Tolerations, corev1.Toleration{Key: machine.ReserveTaintKey, Operator: corev1.TolerationOpExists})
	}
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
	}}
	_, err := p.kube.AppsV1().DaemonSets(namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(p.kube.AppsV1().DaemonSets(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

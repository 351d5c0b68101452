// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// workload is a Deployment whose pods take more than half a machine each.
type workload struct {
	name string
	pods int32
	// first are the pods that were there when all ran for the first time.
	first map[string]bool
}

func (z zones) work(ctx context.Context, pods int32) *workload {
	GinkgoHelper()
	pool := strings.TrimSuffix(z[0].name, "-z1")
	w := &workload{name: "work-" + pool, pods: pods}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	d.Spec.Replicas, d.Spec.Selector = &pods, &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}}
	d.Spec.Template.Labels = map[string]string{"app": w.name}
	d.Spec.Template.Spec = corev1.PodSpec{
		NodeSelector:                  map[string]string{"pool": pool},
		TerminationGracePeriodSeconds: new(int64),
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}},
	}
	_, err := kube.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.AppsV1().Deployments(namespace).Delete(ctx, w.name, metav1.DeleteOptions{})).To(Succeed())
	})
	return w
}

func (w *workload) list(ctx context.Context) ([]corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + w.name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// scale changes how many pods there are.
func (w *workload) scale(ctx context.Context, pods int32) {
	GinkgoHelper()
	_, err := kube.AppsV1().Deployments(namespace).Patch(ctx, w.name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, pods), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	w.pods = pods
}

// runs waits until all pods run.
func (w *workload) runs(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pods, err := w.list(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods).To(HaveLen(int(w.pods)))
		for _, p := range pods {
			g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning), p.Name)
		}
	}).Should(Succeed())
	if w.first == nil {
		w.first = map[string]bool{}
		for _, p := range must(w.list(ctx)) {
			w.first[p.Name] = true
		}
	}
}

// evictions are how often pods were made anew, one entry for each of the first ones that is gone: a pod that was moved twice
// left more successors than it should.
func (w *workload) evictions(ctx context.Context) map[string]int {
	GinkgoHelper()
	events, err := kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=SuccessfulCreate,involvedObject.kind=ReplicaSet"})
	Expect(err).NotTo(HaveOccurred())
	made := 0
	for _, e := range events.Items {
		if strings.HasPrefix(e.InvolvedObject.Name, w.name+"-") {
			made += int(max(1, e.Count))
		}
	}
	gone := map[string]int{}
	here := map[string]bool{}
	for _, p := range must(w.list(ctx)) {
		here[p.Name] = true
	}
	for name := range w.first {
		if !here[name] {
			gone[name] = 1
		}
	}
	if more := made - int(w.pods) - len(gone); more > 0 {
		gone["moved again"] = 1 + more
	}
	return gone
}

// budget keeps that many pods up.
func (w *workload) budget(ctx context.Context, least int) {
	GinkgoHelper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	b.Spec.MinAvailable = ptr.To(intstr.FromInt(least))
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}}
	budgets := kube.PolicyV1().PodDisruptionBudgets(namespace)
	if _, err := budgets.Create(ctx, b, metav1.CreateOptions{}); err == nil {
		DeferCleanup(func(ctx context.Context) { Expect(budgets.Delete(ctx, w.name, metav1.DeleteOptions{})).To(Succeed()) })
	} else {
		live, err := budgets.Get(ctx, w.name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		live.Spec = b.Spec
		_, err = budgets.Update(ctx, live, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	Eventually(func(g Gomega) {
		live, err := budgets.Get(ctx, w.name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Status.ObservedGeneration).To(Equal(live.Generation))
		g.Expect(live.Status.DisruptionsAllowed).To(BeEquivalentTo(int(w.pods) - least))
	}).Should(Succeed())
}

// boundPod makes a pod with a volume in one zone, that finds no room there.
func (z zones) boundPod(ctx context.Context, at int) string {
	GinkgoHelper()
	name := "bound-" + z[at].name
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	volume.Spec = corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
		ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: name},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{z[at].name}}}}}}},
	}
	_, err := kube.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: volume.Spec.AccessModes, VolumeName: name, StorageClassName: ptr.To(""),
		Resources: corev1.VolumeResourceRequirements{Requests: volume.Spec.Capacity},
	}
	_, err = kube.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, claim, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pod.Spec = corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64),
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}},
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}},
	}
	_, err = kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Expect(kube.CoreV1().PersistentVolumeClaims(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Expect(kube.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
	return name
}

// podState is a pod's phase, or Unschedulable.
func podState(ctx context.Context, name string) (string, error) {
	pod, err := kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return c.Reason, nil
		}
	}
	return string(pod.Status.Phase), nil
}

// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

// image is that of the neighbour, and evil the beginning of those of the hostile user.
const image, evil = "neighbour", "evil-"

// mayCreate lets the hostile user create objects in the namespace that the admin role does not include: CapacityBuffers and
// PodGroups.
func mayCreate(ctx context.Context) {
	GinkgoHelper()
	_, err := kube.RbacV1().Roles(hostile).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "create"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"capacitybuffers"}, Verbs: []string{"create"}},
		{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"podgroups"}, Verbs: []string{"create"}},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims", "resourceclaimtemplates"}, Verbs: []string{"create"}},
	}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = kube.RbacV1().RoleBindings(hostile).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "create"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "create"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: stranger}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// crave has images of as many workloads prepared as there are buffers. Each needs next to nothing.
func crave(ctx context.Context, buffers int) {
	GinkgoHelper()
	for i := range buffers {
		name := fmt.Sprint(evil, i)
		d := &appsv1.Deployment{ObjectMeta: named(name), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: selecting(name), Template: template(name, i)}}
		d.Spec.Template.Spec.Containers[0].Image = name
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		_, err := user.AppsV1().Deployments(hostile).Create(ctx, d, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1beta1.PrepareAnnotation: "true"}}, Spec: v1beta1.CapacityBufferSpec{
			ProvisioningStrategy: ptr.To(v1beta1.StrategyReserved), ScalableRef: &v1beta1.ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: name}, Replicas: ptr.To[int32](1),
		}}
		_, err = federating.CapacityBufferV1beta1().CapacityBuffers(hostile).Create(ctx, b, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// pullers are the pods that say they pull images on machines, with the name of the Node and the image of each.
func pullers(ctx context.Context) (all []corev1.Pod, said []string) {
	GinkgoHelper()
	list, err := kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: plan.Label})
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range list.Items {
		text := pod.Namespace + " " + pod.Spec.NodeName
		for _, v := range pod.Spec.Volumes {
			if v.Image != nil {
				text += " " + v.Image.Reference
			}
		}
		said = append(said, text)
	}
	return list.Items, said
}

// forge creates pods that look like those that have pulled the image of the neighbour, and returns how many.
func forge(ctx context.Context) (forged int) {
	GinkgoHelper()
	pods, _ := pullers(ctx)
	for _, pod := range pods {
		if pod.Namespace != namespace {
			continue
		}
		fake := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Labels: pod.Labels, OwnerReferences: pod.OwnerReferences}, Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Tolerations: pod.Spec.Tolerations, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "wait", Image: "none"}},
		}}
		_, err := user.CoreV1().Pods(hostile).Create(ctx, fake, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		forged++
	}
	return forged
}

// expectApart asks for images of the hostile user and of a neighbour, and expects that the hostile user affects nobody else: pods
// that pull its images run in its own namespace, no machine has too many of them, and forged pods do not count.
func expectApart(ctx context.Context) {
	GinkgoHelper()
	_, err := ours.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, pool, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"[{namespace: %s, images: [%s]}]"}}}`, machine.PrepareAnnotation, namespace, image), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() int { _, said := pullers(ctx); return len(said) }).WithContext(ctx).Should(Equal(spares))
	awaitReserve(ctx)
	Expect(forge(ctx)).To(Equal(spares))
	crave(ctx, 60)
	Eventually(func() int { _, said := pullers(ctx); return len(said) }).WithContext(ctx).Should(BeNumerically(">", 10*spares), "an attack that is none")
	byHand, released := measure(ctx, *duration/4)
	report("beside images of a stranger", byHand, released)
	awaitReserve(ctx)
	Eventually(func(g Gomega) {
		pods, said := pullers(ctx)
		perNode, own := map[string]int{}, 0
		for i, pod := range pods {
			perNode[pod.Spec.NodeName]++
			g.Expect(pod.Spec.Volumes).NotTo(BeEmpty(), "a forged one: %s", said[i])
			switch foreign := strings.Contains(said[i], evil); {
			case foreign:
				g.Expect(pod.Namespace).To(Equal(hostile), said[i])
			default:
				g.Expect(pod.Namespace).To(Equal(namespace), said[i])
				own++
			}
		}
		g.Expect(own).To(Equal(spares), "each machine in reserve has the image of the neighbour")
		for node, n := range perNode {
			g.Expect(n).To(BeNumerically("<=", plan.MaxWishes), node)
		}
	}).WithContext(ctx).Should(Succeed())
	expectHalf("beside images of a stranger")
}

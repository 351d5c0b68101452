// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	bufferv1beta1 "github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	evenkeelclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

const roomForBuffers = `{"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig","pools":[{"name":"pool","excess":0}],"capacityBuffers":true}`

// createBuffer asks for room for one pod in the Shoot.
func createBuffer(ctx context.Context) {
	GinkgoHelper()
	core, ours := must(kubernetes.NewForConfig(targetCluster.Config())), must(evenkeelclient.NewForConfig(targetCluster.Config()))
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "room"}, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "room", Image: "room", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
	}}}}}
	must(core.CoreV1().PodTemplates(metav1.NamespaceDefault).Create(ctx, template, metav1.CreateOptions{}))
	DeferCleanup(func(ctx context.Context) error {
		return core.CoreV1().PodTemplates(metav1.NamespaceDefault).Delete(ctx, template.Name, metav1.DeleteOptions{})
	})
	strategy, chunks := bufferv1beta1.StrategyReserved, int32(1)
	buffer := &bufferv1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: "room"}, Spec: bufferv1beta1.CapacityBufferSpec{
		ProvisioningStrategy: &strategy, PodTemplateRef: &bufferv1beta1.LocalObjectRef{Name: template.Name}, Replicas: &chunks,
	}}
	buffers := ours.CapacityBufferV1beta1().CapacityBuffers(metav1.NamespaceDefault)
	Eventually(func() error { // the API server has just learned the kind
		_, err := buffers.Create(ctx, buffer, metav1.CreateOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
	DeferCleanup(func(ctx context.Context) error { return buffers.Delete(ctx, buffer.Name, metav1.DeleteOptions{}) })
}

// bufferReason is why machines are provisioned for the buffer, or not.
func bufferReason(ctx context.Context) string {
	GinkgoHelper()
	b := must(must(evenkeelclient.NewForConfig(targetCluster.Config())).CapacityBufferV1beta1().CapacityBuffers(metav1.NamespaceDefault).Get(ctx, "room", metav1.GetOptions{}))
	for _, c := range b.Status.Conditions {
		if c.Type == "Provisioning" {
			return c.Reason
		}
	}
	return ""
}

// buffersReserves are the Reserves on the seed that the manager has created for buffers.
func (s *shoot) buffersReserves(ctx context.Context) []autoscaling.Reserve {
	GinkgoHelper()
	list := must(must(evenkeelclient.NewForConfig(seedCluster.Config())).AutoscalingV1alpha1().Reserves(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: bufferv1beta1.ReserveLabel}))
	return list.Items
}

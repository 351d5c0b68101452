// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// registering is a Node as a kubelet creates it.
func registering(ctx context.Context, name, group string, taints ...corev1.Taint) (keys []string) {
	GinkgoHelper()
	config := rest.CopyConfig(cluster.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{group, "system:authenticated"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
	node, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	Expect(err).NotTo(HaveOccurred())
	for _, taint := range node.Spec.Taints {
		Expect(taint.Effect).To(Equal(corev1.TaintEffectNoSchedule))
		keys = append(keys, taint.Key)
	}
	return keys
}

var _ = Describe("The policy for the registration of Nodes", func() {
	It("adds its taint to each Node that a kubelet creates, once", func(ctx context.Context) {
		Expect(cluster.Apply(ctx, "kubernetes/optional-policies")).To(Succeed())
		DeferCleanup(func() {
			out, err := kubectl("", "delete", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", "--all")
			Expect(err).NotTo(HaveOccurred(), out)
		})
		Eventually(func() []string { return registering(ctx, "n", "system:nodes") }, 30*time.Second, 50*time.Millisecond).Should(ContainElement(api.RegistrationTaintKey))
		other := corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule}
		own := corev1.Taint{Key: api.RegistrationTaintKey, Effect: corev1.TaintEffectNoSchedule}
		Expect(registering(ctx, "n", "system:nodes")).To(ConsistOf(corev1.TaintNodeNotReady, api.RegistrationTaintKey))
		Expect(registering(ctx, "n", "system:nodes", other)).To(ConsistOf(corev1.TaintNodeNotReady, "other", api.RegistrationTaintKey))
		Expect(registering(ctx, "n", "system:nodes", own, other)).To(ConsistOf(corev1.TaintNodeNotReady, "other", api.RegistrationTaintKey))
		Expect(registering(ctx, "n", "system:masters")).To(ConsistOf(corev1.TaintNodeNotReady))
	})
})

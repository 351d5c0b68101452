// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
)

// book creates a ProvisioningRequest for pods that each need a machine of the pool.
func (p pool) book(ctx context.Context, name string, pods int32, parameters map[string]provisioningv1.Parameter) {
	GinkgoHelper()
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Template: corev1.PodTemplateSpec{Spec: wholeMachine(p.name)}}
	Expect(kube.CoreV1().PodTemplates(namespace).Create(ctx, template, metav1.CreateOptions{})).NotTo(BeNil())
	r := &provisioningv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: provisioningv1.ProvisioningRequestSpec{
		ProvisioningClassName: provisioningv1.ClassReserved, Parameters: parameters,
		PodSets: []provisioningv1.PodSet{{PodTemplateRef: provisioningv1.Reference{Name: name}, Count: pods}},
	}}
	Expect(machines.ProvisioningRequestV1().ProvisioningRequests(namespace).Create(ctx, r, metav1.CreateOptions{})).NotTo(BeNil())
	DeferCleanup(func(ctx context.Context) {
		Expect(machines.ProvisioningRequestV1().ProvisioningRequests(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Expect(kube.CoreV1().PodTemplates(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

// requestIs reports a condition of a request.
func requestIs(ctx context.Context, name, condition string) func() bool {
	return func() bool {
		r := must(machines.ProvisioningRequestV1().ProvisioningRequests(namespace).Get(ctx, name, metav1.GetOptions{}))
		return meta.IsStatusConditionTrue(r.Status.Conditions, condition)
	}
}

// consume creates pods that use what was booked, one by one: while others wait, a pod can lose its nomination
// when the Node of another one opens.
func (p pool) consume(ctx context.Context, request string, pods int) {
	GinkgoHelper()
	for i := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", request, i), Labels: map[string]string{"request": request}, Annotations: map[string]string{provisioningv1.ConsumeAnnotation: request},
		}, Spec: wholeMachine(p.name)}
		Expect(kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})).NotTo(BeNil())
		Eventually(func() []string { return consumers(ctx, request) }).WithContext(ctx).Should(HaveLen(i + 1))
	}
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "request=" + request})).To(Succeed())
	})
}

// consumers are the Nodes of these pods.
func consumers(ctx context.Context, request string) (nodes []string) {
	GinkgoHelper()
	for _, pod := range must(kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "request=" + request})).Items {
		if pod.Spec.NodeName != "" {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	return nodes
}

var _ = Describe("A ProvisioningRequest", Label("ours"), func() {
	It("has machines of the reserve kept for its pods, and for no others", func(ctx context.Context) {
		p := newPool(ctx, "booked", 1, withBounds("1:4:3"))
		p.rests(ctx, 1, 3, "Complete")
		p.work(ctx, 1)
		before := namesOf(p.machines(ctx))
		p.book(ctx, "job-booked", 2, nil)
		Eventually(requestIs(ctx, "job-booked", provisioningv1.ConditionProvisioned)).Should(BeTrue())
		Expect(must(p.owners(ctx))).To(HaveLen(2))
		Expect(namesOf(p.machines(ctx))).To(ConsistOf(before), "nothing was created for it")

		By("pods of others, which get the machine that is not booked")
		p.moreWork(ctx, 3)
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(2))
		Consistently(func() int { return len(p.busy(ctx)) }, 3*time.Second).Should(Equal(2))

		By("its own pods")
		p.consume(ctx, "job-booked", 2)
		Expect(before).To(ContainElements(consumers(ctx, "job-booked")))
		Eventually(func() (map[string]string, error) { return p.owners(ctx) }).Should(BeEmpty())
		Expect(p.replicas(ctx)).To(Equal(4))
	})

	It("waits until the reserve has machines for all of its pods, and books none before that", func(ctx context.Context) {
		p := newPool(ctx, "unbooked", 1, withBounds("1:3:2"))
		p.rests(ctx, 1, 2, "Complete")
		p.book(ctx, "job-unbooked", 3, nil)
		Eventually(requestIs(ctx, "job-unbooked", provisioningv1.ConditionAccepted)).Should(BeTrue())
		Consistently(func() (map[string]string, error) { return p.owners(ctx) }, 2*time.Second).Should(BeEmpty())
		p.setBounds(ctx, "1:4:3")
		Eventually(requestIs(ctx, "job-unbooked", provisioningv1.ConditionProvisioned)).Should(BeTrue())
	})

	It("gives back what its pods have not used in time", func(ctx context.Context) {
		p := newPool(ctx, "expired", 1, withBounds("1:2:1"))
		p.rests(ctx, 1, 1, "Complete")
		p.work(ctx, 1)
		p.book(ctx, "job-expired", 1, map[string]provisioningv1.Parameter{provisioningv1.BookingParameter: "4"})
		Eventually(requestIs(ctx, "job-expired", provisioningv1.ConditionProvisioned)).Should(BeTrue())
		p.moreWork(ctx, 2)
		Eventually(requestIs(ctx, "job-expired", provisioningv1.ConditionBookingExpired)).Should(BeTrue())
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(2))
	})

	It("fails if it is not to wait", func(ctx context.Context) {
		p := newPool(ctx, "refused", 1, withBounds("1:2:1"))
		p.rests(ctx, 1, 1, "Complete")
		p.book(ctx, "job-refused", 2, map[string]provisioningv1.Parameter{provisioningv1.NoRetryParameter: "true"})
		Eventually(requestIs(ctx, "job-refused", provisioningv1.ConditionFailed)).Should(BeTrue())
		Expect(must(p.owners(ctx))).To(BeEmpty())
	})
})

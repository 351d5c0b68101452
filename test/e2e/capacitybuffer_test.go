// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
)

// buffer creates a CapacityBuffer for the work of a pool.
func (p pool) buffer(ctx context.Context, percentage int32) {
	GinkgoHelper()
	buffers := machines.CapacityBufferV1beta1().CapacityBuffers(namespace)
	b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: v1beta1.CapacityBufferSpec{
		ProvisioningStrategy: ptr.To(v1beta1.StrategyReserved), Percentage: &percentage,
		ScalableRef: &v1beta1.ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: "work-" + p.name},
	}}
	_, err := buffers.Create(ctx, b, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(buffers.Delete(ctx, p.name, metav1.DeleteOptions{})).To(Or(Succeed(), MatchError(ContainSubstring("not found"))))
	})
}

// buffered is the number of chunks of the pool's buffer, and why it is ready or not.
func (p pool) buffered(ctx context.Context) (string, error) {
	b, err := machines.CapacityBufferV1beta1().CapacityBuffers(namespace).Get(ctx, p.name, metav1.GetOptions{})
	ready := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionReady)
	if err != nil || ready == nil {
		return "", err
	}
	return fmt.Sprintf("%d %s %s", ptr.Deref(b.Status.Replicas, -1), ready.Status, ready.Reason), nil
}

var _ = Describe("A CapacityBuffer", Label("ours"), func() {
	It("keeps room for a part of a Deployment, which grows into it at once, and is filled again", func(ctx context.Context) {
		p := newPool(ctx, "buffered", 5, withBounds("1:12"))
		p.work(ctx, 5)
		p.buffer(ctx, 40)
		Eventually(p.buffered).WithContext(ctx).Should(Equal("2 True Complete"))
		p.rests(ctx, 5, 2, "Complete")
		before := namesOf(p.machines(ctx))

		By("growing by as much as there is room for")
		p.moreWork(ctx, 7)
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(7))
		Expect(before).To(ContainElements(p.busy(ctx)), "no pod waited for a machine to be made")
		Eventually(p.buffered).WithContext(ctx).Should(Equal("3 True Complete"))
		p.rests(ctx, 7, 3, "Complete")

		By("deleting the buffer")
		Expect(machines.CapacityBufferV1beta1().CapacityBuffers(namespace).Delete(ctx, p.name, metav1.DeleteOptions{})).To(Succeed())
		p.settles(ctx, 7)
	})
})

// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// serveBuffers are the flags by which cluster-autoscaler serves CapacityBuffers: its controller, and its placeholder pods.
var serveBuffers = []string{"--capacity-buffer-controller-enabled", "--capacity-buffer-pod-injection-enabled"}

// buffer asks for so many chunks like the pods of a workload. Without a strategy it is cluster-autoscaler's.
func buffer(ctx context.Context, name, workload string, chunks int32, change ...func(*v1beta1.CapacityBuffer)) {
	GinkgoHelper()
	b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.CapacityBufferSpec{
		Replicas: &chunks, ScalableRef: &v1beta1.ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: workload},
	}}
	for _, f := range change {
		f(b)
	}
	_, err := buffers.Create(ctx, b, metav1.CreateOptions{FieldManager: "user"})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(unbuffer, name)
}

func unbuffer(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(buffers.Delete(ctx, name, metav1.DeleteOptions{})).To(Or(Succeed(), MatchError(ContainSubstring("not found"))))
}

// reserved makes a buffer ours.
func reserved(b *v1beta1.CapacityBuffer) {
	b.Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyReserved)
}

// dedicated keeps the machines of a buffer for the pods of its workload.
func dedicated(b *v1beta1.CapacityBuffer) {
	b.Annotations = map[string]string{v1beta1.DedicatedAnnotation: "workload"}
}

// buffered is how many chunks a buffer asks for, and the reason of a condition with its status.
func buffered(ctx context.Context, name, condition string) (string, error) {
	b, err := buffers.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	c := ptr.Deref(meta.FindStatusCondition(b.Status.Conditions, condition), metav1.Condition{})
	return fmt.Sprintf("%d %s %s", ptr.Deref(b.Status.Replicas, -1), c.Status, c.Reason), nil
}

// writers are those who have written a buffer.
func writers(ctx context.Context, name string) []string {
	GinkgoHelper()
	b, err := buffers.Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	all := map[string]bool{}
	for _, f := range b.ManagedFields {
		all[f.Manager] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// mostReplicas returns the limit to which cluster-autoscaler may raise a pool, from its own status.
func mostReplicas(ctx context.Context, name string) (int, error) {
	s, err := said(ctx)
	for _, g := range s.NodeGroups {
		if g.Name == name {
			return g.Health.MaxSize, err
		}
	}
	return 0, err
}

// closed are the machines of a pool that are dedicated.
func (p pool) closed(ctx context.Context) ([]string, error) {
	list, err := p.machines(ctx)
	var names []string
	for _, m := range list {
		if m.Annotations[machine.DedicatedAnnotation] != "" {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// One buffer of each strategy for the same workload: cluster-autoscaler keeps an empty machine that serves, for its placeholder pod, and we keep
// two in reserve.
var _ = real("CapacityBuffers beside those that cluster-autoscaler serves", func() {
	It("are each served by their own component, for 10 cycles, with no machine too many", func(ctx context.Context) {
		p := newPool(ctx, "both", "both", "1:20", 2)
		workload(ctx, "both", "both", 2)
		runs(ctx, "both", 2)
		autoscale(serveBuffers...)
		buffer(ctx, "ours", "both", 2, reserved)
		buffer(ctx, "theirs", "both", 1)
		served := func(replicas int) {
			GinkgoHelper()
			p.becomes(ctx, fmt.Sprintf("R%[1]d %[1]d+2+0", replicas))
			Eventually(buffered).WithContext(ctx).WithArguments("ours", v1beta1.ConditionReady).Should(Equal("2 True Complete"))
			Expect(buffered(ctx, "theirs", v1beta1.ConditionProvisioning)).To(Equal("1 True FakePodsInjected"))
		}
		served(3)
		seen, before := p.record(ctx), calls(ctx)
		for range 10 {
			demand(ctx, "both", 4)
			runs(ctx, "both", 4)
			served(5)
			demand(ctx, "both", 2)
			served(3)
			Expect(run(ctx, "both")).To(Equal(2))
		}
		after := calls(ctx)
		AddReportEntry("10 cycles of two pods, with 1 chunk of cluster-autoscaler's and 2 of ours", fmt.Sprintf(
			"%d machines at most; cluster-autoscaler raised %d times, and named machines %d times", seen.most(),
			after["NodeGroupIncreaseSize"]-before["NodeGroupIncreaseSize"], after["NodeGroupDeleteNodes"]-before["NodeGroupDeleteNodes"]), ReportEntryVisibilityAlways)
		Expect(seen.most()).To(Equal(7), "four pods, one chunk of theirs and two of ours")
		Expect(writers(ctx, "ours")).To(ConsistOf("user", manager))
		Expect(writers(ctx, "theirs")).To(ConsistOf("user", autoscaler))

		By("deleting theirs, and then ours")
		unbuffer(ctx, "theirs")
		p.becomes(ctx, "R2 2+2+0")
		unbuffer(ctx, "ours")
		p.becomes(ctx, "R2 2+0+0")
	})

	It("lose no dedicated machine to placeholder pods, not even at max", func(ctx context.Context) {
		p := newPool(ctx, "kept", "kept", "1:5", 2)
		workload(ctx, "kept", "kept", 2)
		runs(ctx, "kept", 2)
		buffer(ctx, "ours", "kept", 2, reserved, dedicated)
		p.becomes(ctx, "R2 2+2+0")
		Eventually(p.closed).WithContext(ctx).Should(HaveLen(2))
		kept, err := p.closed(ctx)
		Expect(err).NotTo(HaveOccurred())
		seen := p.record(ctx)
		autoscale(serveBuffers...)
		buffer(ctx, "theirs", "kept", 3)
		p.becomes(ctx, "R3 3+2+0")
		Eventually(mostReplicas).WithContext(ctx).WithArguments("kept").Should(Equal(3))
		Expect(buffered(ctx, "theirs", v1beta1.ConditionProvisioning)).To(Equal("3 True FakePodsInjected"))
		Consistently(func() string { return p.counts(ctx) }, 15*time.Second).Should(Equal("R3 3+2+0"), "two of three placeholder pods wait")
		Expect(p.closed(ctx)).To(Equal(kept))

		By("creating a pod of the workload, for which the empty machine is enough")
		demand(ctx, "kept", 3)
		runs(ctx, "kept", 3)
		Expect(p.closed(ctx)).To(Equal(kept))

		By("creating more pods than there is room for without the buffer")
		demand(ctx, "kept", 5)
		runs(ctx, "kept", 5)
		p.becomes(ctx, "R5 5+0+0")
		Expect(nodesOf(ctx, "kept")).To(ContainElements(kept), "its own pods")
		Expect(seen.most()).To(Equal(5))
	})
})

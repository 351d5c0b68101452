// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// budget has so many pods of a workload left alone; until that many are not there at all, none may be moved.
func budget(ctx context.Context, name string, pods int32) {
	GinkgoHelper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.MinAvailable = ptr.To(intstr.FromInt32(pods))
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	_, err := kube.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, b, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func lift(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(kube.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
}

// Of three machines one is used, one holds a small pod that has room on the first, and one is empty.
var _ = real("A machine that is hardly used", func() {
	DescribeTable("is kept for a pod that must not be moved, until it may; an empty one is removed at once",
		func(ctx context.Context, name string, place func(ctx context.Context, name string), allow func(ctx context.Context, name string)) {
			p := newPool(ctx, name, name, "1:4:1", 3)
			p.becomes(ctx, "R3 3+1+0")
			workload(ctx, name+"-busy", name, 1)
			runs(ctx, name+"-busy", 1)
			place(ctx, name)
			runs(ctx, name, 1)
			held := nodesOf(ctx, name)
			Expect(held).NotTo(Equal(nodesOf(ctx, name+"-busy")), "the scheduler takes an empty machine")
			autoscale()
			p.wants(ctx, 2)
			Consistently(func() (int32, error) { return p.replicas(ctx) }, 15*time.Second).Should(BeEquivalentTo(2), "three times as long as an empty machine is left alone")
			Expect(nodesOf(ctx, name)).To(Equal(held))
			allow(ctx, name)
			p.becomes(ctx, "R1 1+1+0")
			Expect(run(ctx, name+"-busy")).To(Equal(1))
		},
		Entry("a pod of kube-system", "system",
			func(ctx context.Context, name string) {
				workload(ctx, name, name, 1, takes("500m"), in(metav1.NamespaceSystem))
			}, evictable),
		Entry("a pod with local storage", "local",
			func(ctx context.Context, name string) { workload(ctx, name, name, 1, takes("500m"), scratch) }, evictable),
		Entry("a pod of no controller", "alone",
			func(ctx context.Context, name string) { alone(ctx, name, name) }, evictable),
		Entry("a pod that a disruption budget protects", "budget",
			func(ctx context.Context, name string) {
				workload(ctx, name, name, 1, takes("500m"))
				budget(ctx, name, 1)
			}, lift),
	)

	It("is removed when its pods have room elsewhere, and they run there", func(ctx context.Context) {
		p := newPool(ctx, "merged", "merged", "1:4:1", 2)
		p.becomes(ctx, "R2 2+1+0")
		workload(ctx, "merged", "merged", 2, takes("1"))
		runs(ctx, "merged", 2)
		Expect(nodesOf(ctx, "merged")).NotTo(HaveEach(nodesOf(ctx, "merged")[0]), "the scheduler spreads")
		autoscale()
		p.becomes(ctx, "R1 1+1+0")
		runs(ctx, "merged", 2)
	})

	It("is removed with all others that only run a DaemonSet's pod, in one loop of cluster-autoscaler", func(ctx context.Context) {
		const look = 15 * time.Second
		p := newPool(ctx, "bulk", "bulk", "1:8:1", 6)
		p.becomes(ctx, "R6 6+1+0")
		everywhere(ctx, "bulk-daemon", "bulk")
		runs(ctx, "bulk-daemon", 6)
		workload(ctx, "bulk", "bulk", 2)
		runs(ctx, "bulk", 2)
		seen := p.record(ctx)
		autoscale("--scan-interval=" + look.String())
		p.becomes(ctx, "R2 2+1+0")
		Expect(run(ctx, "bulk")).To(Equal(2))
		removed := seen.removed()
		Expect(removed).To(HaveLen(4))
		Expect(removed[3].Sub(removed[0])).To(BeNumerically("<", look))
	})
})

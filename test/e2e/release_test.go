// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// withBounds lets pods that wait raise replicas.
func withBounds(bounds string) func(*machine.MachineDeployment) {
	return func(md *machine.MachineDeployment) {
		md.Annotations = map[string]string{machine.BoundsAnnotation: bounds}
	}
}

func (p pool) replicas(ctx context.Context) int {
	GinkgoHelper()
	return int(must(p.deployment(ctx)).Spec.Replicas)
}

var _ = Describe("Waiting pods", Label("ours"), func() {
	It("get a reserve machine automatically, up to max, and no machine too many", func(ctx context.Context) {
		p := newPool(ctx, "released", 1, withBounds("1:4:2"))
		p.rests(ctx, 1, 2, "Complete")
		p.work(ctx, 1)
		before := namesOf(p.machines(ctx))

		By("one pod, and a second that the first machine cannot hold")
		p.moreWork(ctx, 2)
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(2))
		Expect(p.replicas(ctx)).To(Equal(2))
		Expect(before).To(ContainElements(p.busy(ctx)), "no pod waited for a machine to be created")
		p.rests(ctx, 2, 2, "Complete")
		Expect(kubectl(ctx, "get", "events", "--field-selector=involvedObject.name="+p.name+",reason=ReserveNeeded")).
			To(ContainSubstring("Raised replicas from 1 to 2"))

		By("more pods than max allows machines for")
		p.moreWork(ctx, 6)
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(4))
		p.rests(ctx, 4, 0, "AtMax")
		Consistently(func() int { return p.replicas(ctx) }, 2*time.Second).Should(Equal(4))

		By("fewer: the client that lowers replicas is not the one that raised them")
		p.moreWork(ctx, 1)
		Consistently(func() int { return p.replicas(ctx) }, 2*time.Second).Should(Equal(4))
	})

	It("get a machine each if a Job creates them, and no machine too many", func(ctx context.Context) {
		p := newPool(ctx, "employed", 1, withBounds("1:5:3"))
		p.rests(ctx, 1, 3, "Complete")
		p.work(ctx, 1)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job-" + p.name}}
		job.Spec.Parallelism = ptr.To[int32](2)
		job.Spec.Template = must(kube.AppsV1().Deployments(namespace).Get(ctx, "work-"+p.name, metav1.GetOptions{})).Spec.Template
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		Expect(kube.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})).NotTo(BeNil())
		DeferCleanup(func(ctx context.Context) {
			Expect(kube.BatchV1().Jobs(namespace).Delete(ctx, job.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})).To(Succeed())
		})
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(3))
		Consistently(func() int { return p.replicas(ctx) }, 2*time.Second).Should(Equal(3))
		p.rests(ctx, 3, 2, "AtMax")
	})

	It("get machines of the smallest of similar zones first, so that zones become as even as they can", func(ctx context.Context) {
		z := newZones(ctx, "released-even", []int32{6, 1, 3}, excess(3))
		z.rest(ctx, 3, 6, 1, 3)
		w := z.work(ctx, 10)
		w.runs(ctx)
		z.annotate(ctx, machine.BoundsAnnotation, "1:20:3")
		z.rest(ctx, 3, 6, 1, 3)
		w.scale(ctx, 14)
		w.runs(ctx)
		Expect(z.replicas(ctx)).To(Equal("6/4/4"))
		z.rest(ctx, 3, 6, 4, 4)
	})

	It("get no machine without bounds, because nothing would remove it again", func(ctx context.Context) {
		p := newPool(ctx, "unbounded", 1, excess(1))
		p.rests(ctx, 1, 1, "Complete")
		p.work(ctx, 1)
		p.moreWork(ctx, 2)
		Consistently(func() int { return len(p.busy(ctx)) }, 3*time.Second).Should(Equal(1))
		Expect(p.replicas(ctx)).To(Equal(1))
	})
})

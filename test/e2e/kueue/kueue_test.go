// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

var _ = Describe("A queue of Kueue", func() {
	BeforeEach(func(ctx context.Context) { Expect(cluster.Apply(ctx, "examples/kueue.yaml")).To(Succeed()) })

	It("starts a Job of 20 pods on machines that were ready before", func(ctx context.Context) {
		p := newPool(ctx, "large", 20)
		begin := time.Now()
		j := p.submit(ctx, job{name: "large", queue: "batch", pods: 20})
		Eventually(j.running).WithContext(ctx).Should(Equal(20))
		AddReportEntry("20 pods run after", time.Since(begin).String())
		Eventually(p.booked).WithContext(ctx).Should(BeZero())
		j.complete(ctx)
		Eventually(p.restored).WithContext(ctx).Should(Equal(20))
	})

	It("lets a Job wait that has too few machines, which holds none", func(ctx context.Context) {
		p := newPool(ctx, "short", 3)
		first := p.submit(ctx, job{name: "short-first", queue: "batch", pods: 2})
		Eventually(first.running).WithContext(ctx).Should(Equal(2))
		second := p.submit(ctx, job{name: "short-second", queue: "batch", pods: 3})
		Eventually(second.request).WithContext(ctx).Should(Equal("CapacityIsNotFound"))
		Consistently(p.booked, 2*time.Second).WithContext(ctx).Should(BeZero())
		Expect(second.suspended(ctx)).To(BeTrue())

		By("a smaller one, which gets the machine that is left")
		third := p.submit(ctx, job{name: "short-third", queue: "batch", pods: 1})
		Eventually(third.running).WithContext(ctx).Should(Equal(1))
		third.complete(ctx)
		first.complete(ctx)
		Eventually(p.restored).WithContext(ctx).Should(Equal(3))
		Eventually(second.running).WithContext(ctx).Should(Equal(3))
	})

	It("ends a Job for a more important one, which gets its machines", func(ctx context.Context) {
		p := newPool(ctx, "preempted", 3)
		newQueue(ctx, "preempted", 9, checked)
		apply(ctx, `
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
`)
		low := p.submit(ctx, job{name: "preempted-low", queue: "preempted", pods: 3})
		Eventually(low.running).WithContext(ctx).Should(Equal(3))
		high := p.submit(ctx, job{name: "preempted-high", queue: "preempted", pods: 2, priority: "urgent"})
		Eventually(func() (int, error) { return high.runningWith(ctx, p) }).Should(Equal(2))
		Expect(low.running(ctx)).To(BeZero())
		Expect(low.suspended(ctx)).To(BeTrue())

		By("the end of the important one")
		high.complete(ctx)
		Eventually(func() (int, error) { return low.runningWith(ctx, p) }).Should(Equal(3))
	})

	It("forgets a Job that is deleted while it waits", func(ctx context.Context) {
		p := newPool(ctx, "cancelled", 1)
		cancelled := p.submit(ctx, job{name: "cancelled-first", queue: "batch", pods: 2})
		Eventually(cancelled.request).WithContext(ctx).Should(Equal("CapacityIsNotFound"))
		cancelled.cancel(ctx)
		Eventually(cancelled.request).WithContext(ctx).Should(BeEmpty())
		second := p.submit(ctx, job{name: "cancelled-second", queue: "batch", pods: 1})
		Eventually(second.running).WithContext(ctx).Should(Equal(1))
	})

	It("admits plain pods together, which instant release serves together", func(ctx context.Context) {
		p := newPool(ctx, "plain", 2)
		newQueue(ctx, "plain", 100, unchecked)
		p.submitPods(ctx, "plain", "plain", 3)
		Eventually(func(g Gomega) {
			events, err := kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=ReserveTooSmall,involvedObject.kind=Pod"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(events.Items).To(ContainElement(HaveField("Message", "3 pods must start together, and the reserve lacks 1 machine of MachineDeployment default/plain (zone plain, max is 2)")))
		}).Should(Succeed())
		started := func() (int, error) { return running(ctx, labelled(groupLabel+"=plain")) }
		Consistently(started, 2*time.Second).Should(BeZero())
		p.setReserve(ctx, 3)
		Eventually(started).Should(Equal(3))
	})

	It("runs ten Jobs of two queues one after the other on a reserve for five, through restarts", func(ctx context.Context) {
		p := newPool(ctx, "shared", 5)
		var waiting []job
		for _, queue := range []string{"shared-a", "shared-b"} {
			newQueue(ctx, queue, 100, checked)
			for i := range 5 {
				waiting = append(waiting, p.submit(ctx, job{name: fmt.Sprintf("%s-%d", queue, i), queue: queue, pods: 1 + i}))
			}
		}
		restarts := []string{manager, localcluster.Kueue, manager, localcluster.Kueue}
		Eventually(func(g Gomega) {
			var left []job
			for _, j := range waiting {
				n, err := j.running(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				if n < j.pods {
					left = append(left, j)
					continue
				}
				j.complete(ctx)
				if len(restarts) > 0 {
					restart(restarts[0])
					restarts = restarts[1:]
				}
			}
			waiting = left
			g.Expect(p.giveBack(ctx)).To(Succeed())
			g.Expect(waiting).To(BeEmpty())
		}).WithTimeout(10 * time.Minute).Should(Succeed())
		Eventually(p.restored).WithContext(ctx).Should(Equal(5))
		Expect(p.booked(ctx)).To(BeZero())
	})
})

// restart kills a process and starts it again.
func restart(name string) {
	GinkgoHelper()
	process := cluster.Process(name)
	Expect(process.Kill()).To(Succeed())
	Expect(process.Start()).To(Succeed())
}

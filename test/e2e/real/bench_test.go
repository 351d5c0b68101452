// SPDX-License-Identifier: Apache-2.0

package real

import (
	"context"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bench says that the benchmark is asked for, and nothing else.
var bench = flag.Bool("real.bench", false, "measure how long pods take to be ready, and test nothing")

// image is one of 500 MB that only one scenario has.
func image(scenario string) string { return "127.0.0.1:5000/500mb/" + scenario + ":1" }

// scenarios have a place for all pods of a pool in the end. Each returns after what happens before pods come.
var scenarios = []struct {
	name    string
	prepare func(ctx context.Context, p pool, image string)
	// atOnce is what happens when pods come, as an autoscaler would do it without any delay.
	atOnce func(ctx context.Context, p pool)
}{
	{name: "floor", prepare: func(ctx context.Context, p pool, image string) {
		p.patch(ctx, `{"spec":{"replicas":1},"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"0:20:0"}}}`)
		p.rests(ctx, 1, 0)
		p.workWith(ctx, 1, image, "60m")
		Eventually(p.running).WithContext(ctx).Should(HaveLen(1))
		p.scaleWork(ctx, 0)
		Eventually(p.pods).WithContext(ctx).Should(BeEmpty())
	}},
	{name: "no-reserve", prepare: func(ctx context.Context, p pool, image string) {
		p.patch(ctx, `{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"0:20:0"}}}`)
		p.rests(ctx, 0, 0)
		p.workWith(ctx, 0, image, "60m")
	}, atOnce: func(ctx context.Context, p pool) { p.patch(ctx, `{"spec":{"replicas":1}}`) }},
	{name: "pause-pods", prepare: func(ctx context.Context, p pool, image string) {
		p.patch(ctx, `{"spec":{"replicas":1},"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"0:20:0"}}}`)
		p.rests(ctx, 1, 0)
		p.pause(ctx)
		p.workWith(ctx, 0, image, "60m")
	}},
	{name: "plain-reserve", prepare: func(ctx context.Context, p pool, image string) {
		p.rests(ctx, 0, 1)
		p.workWith(ctx, 0, image, "60m")
	}},
	{name: "prepared", prepare: func(ctx context.Context, p pool, image string) {
		p.rests(ctx, 0, 1)
		p.workWith(ctx, 0, image, "60m")
		p.asks(ctx, fmt.Sprintf(`[{namespace: default, workloads: [Deployment/%s]}]`, p.name))
		Eventually(p.preparers).WithContext(ctx).Should(ConsistOf(HaveSuffix("ready")))
	}},
}

// pause fills the machine of a pool with a pod that has to make room for others.
func (p pool) pause(ctx context.Context) {
	GinkgoHelper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Value: -10}
	_, err := p.kube.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	template := p.template(tiny, "900m")
	template.Labels, template.Spec.PriorityClassName = map[string]string{"app": "pause"}, p.name
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name + "-pause", Labels: template.Labels}, Spec: template.Spec}
	_, err = p.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() (bool, error) {
		is, err := p.kube.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && isReady(is), err
	}).WithContext(ctx).Should(BeTrue())
}

// benchmark is in place of the tests.
func benchmark() bool {
	return It("Pods of an image of 500 MB become ready, with a registry that sends 100 MB a second", Label("bench"), func(ctx context.Context) {
		suffer(ctx, "registry: {bandwidth: 100M, latency: 5ms}")
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(table, "scenario\tpods\tseconds\tover the floor\t")
		for _, pods := range []int{1, 10} {
			floor := 0.0
			for _, s := range scenarios {
				name := fmt.Sprintf("%s-%d", s.name, pods)
				p := newPool(ctx, name, 0, 1, small)
				s.prepare(ctx, p, image(name))
				begun := time.Now()
				if s.atOnce != nil {
					s.atOnce(ctx, p)
				}
				p.scaleWork(ctx, pods)
				Eventually(p.running).WithContext(ctx).WithPolling(20 * time.Millisecond).Should(HaveLen(pods))
				took := time.Since(begun).Seconds()
				if floor == 0 {
					floor = took
				}
				fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t\n", s.name, pods, took, took/floor)
				p.scaleWork(ctx, 0)
				p.patch(ctx, `{"spec":{"replicas":0},"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"0:20:0"}}}`)
				Eventually(p.nodes).WithContext(ctx).Should(BeEmpty())
			}
		}
		Expect(table.Flush()).To(Succeed())
	}, NodeTimeout(25*time.Minute))
}

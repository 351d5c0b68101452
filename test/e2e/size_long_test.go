// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// burst is how many pods are created at once. Each of them needs a machine.
const burst = 6

var _ = Describe("What size predicts for a burst", Label("long", "ours"), func() {
	It("is within 10 % of what pods then wait", func(ctx context.Context) {
		p := newPool(ctx, "sized", 0, withBounds("0:9:2"))
		p.rests(ctx, 0, 2, "Complete")
		setFault(ctx, "zones", p.name, "extraBootDelay: 60s")
		p.work(ctx, burst)

		var answer struct {
			Amounts []struct {
				Machines                      int
				MedianSeconds, LongestSeconds float64
			}
		}
		trace := fmt.Sprintf("time,cpu,memory,count\n%s,3,0,%d\n", time.Now().UTC().Format(time.RFC3339), burst)
		out, err := plugin(ctx, trace, "size", p.name, "-n", namespace, "-f", "-", "-o", "json", "--autoscaler=false", "--current=2", "--boot-time", strings.Join(p.slowBoots(ctx), ","))
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal([]byte(out), &answer)).To(Succeed())
		waits := p.waits(ctx)
		Expect(waits).To(HaveLen(burst))
		for _, a := range answer.Amounts {
			if a.Machines == 2 {
				Expect(waits[burst/2-1]).To(BeNumerically("~", a.MedianSeconds, 0.1*a.MedianSeconds), "median of %v", waits)
				Expect(waits[burst-1]).To(BeNumerically("~", a.LongestSeconds, 0.1*a.LongestSeconds), "longest of %v", waits)
				return
			}
		}
		Fail("no amount of 2 in " + out)
	})
})

// slowBoots are the times from the creation of each Machine until its Node was ready, for those that
// boot for longer than a second or two.
func (p pool) slowBoots(ctx context.Context) (boots []string) {
	GinkgoHelper()
	nodes := must(p.nodes(ctx))
	for _, m := range must(p.machines(ctx)) {
		for _, n := range nodes {
			for _, c := range n.Status.Conditions {
				if took := c.LastTransitionTime.Sub(m.CreationTimestamp.Time); n.Name == m.Name && c.Type == corev1.NodeReady && took > 30*time.Second {
					boots = append(boots, took.String())
				}
			}
		}
	}
	return boots
}

// waits are how many seconds the pods of work waited until they were bound, sorted.
func (p pool) waits(ctx context.Context) (seconds []float64) {
	GinkgoHelper()
	list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "work=" + p.name})
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range list.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
				seconds = append(seconds, c.LastTransitionTime.Sub(pod.CreationTimestamp.Time).Seconds())
			}
		}
	}
	slices.Sort(seconds)
	return seconds
}

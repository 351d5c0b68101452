// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
)

// delay makes raises arrive late.
func (c *cluster) delay(by time.Duration) {
	c.Control.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if r.User == "release" && r.Verb == "patch" && r.Resource == "machinedeployments" {
			return by, 0
		}
		return time.Millisecond, time.Millisecond
	})
}

var _ = Describe("A raise", func() {
	DescribeTable("is not written over what a restored backup led to, though the generation is the same", func(replicas int) { // law 6
		playApart(func(c *cluster) {
			c.grow("a", replicas, 4, "0:10")
			c.Start("release", controller(usual))
			c.patch("a", `{"spec":{"minReadySeconds":1}}`)
			backup := c.Control.Snapshot()
			c.patch("a", `{"spec":{"minReadySeconds":2}}`)
			generation := c.deployments()[0].Generation
			c.settle()
			c.delay(10 * time.Second)
			c.create(fresh(1, "picky", 1000)...)
			time.Sleep(time.Second)
			c.Control.Restore(backup)
			c.patch("a", `{"spec":{"replicas":%d}}`, replicas+3)
			Expect(c.deployments()[0].Generation).To(Equal(generation))
			written := len(c.Writes())
			time.Sleep(10 * time.Second)
			Expect(c.writes(written)).To(BeEmpty())
			Expect(c.deployments()[0].Spec.Replicas).To(BeEquivalentTo(replicas + 3))
		})
	},
		Entry("of some machines", 2),
		Entry("of none", 0),
	)

	It("is not written over a change of the accounting, though the spec is the same", func() { // law 6
		playApart(func(c *cluster) {
			c.grow("a", 3, 4, "0:10")
			c.Start("release", controller(usual))
			c.settle()
			c.delay(10 * time.Second)
			c.create(fresh(1, "p", 4000)...)
			time.Sleep(5 * time.Second)
			const changed = "4,max=10,counted=2,replicas=3"
			c.patch("a", `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AppliedExcessAnnotation, changed)
			time.Sleep(10 * time.Second)
			Expect(c.replicas()).To(Equal("a=3"))
			Expect(c.deployment("a").Annotations).To(HaveKeyWithValue(v1alpha1.AppliedExcessAnnotation, changed))
		})
	})

	DescribeTable("begins at no replicas", func(body string) {
		play(func(c *cluster) {
			c.grow("a", 0, 2, "0:10")
			_, err := c.ours.MachineV1alpha1().MachineDeployments(ns).Patch(context.Background(), "a", types.JSONPatchType, []byte(body), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			Expect(c.waiting()).To(BeZero())
		})
	},
		Entry("that are 0", `[{"op":"add","path":"/spec/replicas","value":0}]`),
		Entry("that a client left out", `[{"op":"add","path":"/spec/replicas","value":0},{"op":"remove","path":"/spec/replicas"}]`),
	)
})

var _ = Describe("A Node of the reserve", func() {
	It("is looked at again when it is no longer cordoned", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			cordon := func(cordoned bool) {
				_, err := c.core.CoreV1().Nodes().Patch(context.Background(), "a-002", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			c.settle()
			cordon(true)
			c.Start("release", controller(usual))
			c.create(fresh(1, "picky", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			cordon(false)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("is looked at again when it gets the label that a pod waits for", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.create(fresh(1, "picky", 1000, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "fast"} })...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			_, err := c.core.CoreV1().Nodes().Patch(context.Background(), "a-002", types.MergePatchType, []byte(`{"metadata":{"labels":{"disk":"fast"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})
})

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
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("The controller", func() {
	It("does not mistake a Node of another machine for the deleted Node of a reserve machine, even if the names match", func() {
		play(func(c *cluster) {
			ctx := context.Background()
			c.grow("a", 1, 1, "1:10")
			c.settle()
			_, err := c.core.CoreV1().Nodes().Create(ctx, Held(fixture.Node("reused", func(n *corev1.Node) { n.Spec.ProviderID = "sim:///successor" })), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(c.core.CoreV1().Nodes().Delete(ctx, "a-002", metav1.DeleteOptions{})).To(Succeed())
			_, err = c.ours.MachineV1alpha1().Machines(ns).Patch(ctx, "a-002", types.MergePatchType, []byte(`{"metadata":{"labels":{"node":"reused"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("release", controller(usual))
			c.create(fresh(5, "p", 1000)...)
			c.settle()
			Expect(c.waiting()).To(Equal(5))
			Expect(c.replicas()).To(Equal("a=1"))

			_, err = c.core.CoreV1().Nodes().Patch(ctx, "reused", types.MergePatchType, []byte(`{"spec":{"providerID":"sim:///a-002"}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Minute)
			Expect(c.replicas()).To(Equal("a=2"), "the id decides")
		})
	})

	It("does not wait until the scheduler has tried pods that are identical to a waiting one", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(1, "picky", 3000)...)
			time.Sleep(50 * time.Millisecond)
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.scheduler.Stop()).To(Succeed())
			c.create(fresh(1, "other", 3000)...)
			time.Sleep(time.Second)
			Expect(c.replicas()).To(Equal("a=2"), "the scheduler has not rejected this pod yet")
			c.create(fresh(2, "picky", 3000, func(p *corev1.Pod) { p.Name += "-too" })...)
			time.Sleep(20 * time.Millisecond)
			Expect(c.replicas()).To(Equal("a=4"))
		})
	})

	It("gives up on a pod that the scheduler rejects for reasons of its own, and on no other", func() { // law 5
		play(func(c *cluster) {
			c.grow("a", 1, 6, "1:20")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(1, "picky", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"), "one machine was released in vain")
			for range 3 {
				c.create(fresh(1, "p", 4000, func(p *corev1.Pod) { p.GenerateName, p.Name = "p-", "" })...)
				c.settle()
			}
			Expect(c.waiting()).To(Equal(1))
			Expect(c.replicas()).To(Equal("a=4"), "that machine, and two more for the three other pods")
		})
	})

	DescribeTable("does not count room that is about to disappear, or is promised to another pod",
		func(spoil func(c *cluster)) {
			play(func(c *cluster) {
				c.grow("a", 2, 2, "1:10")
				Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), "filler-a-002", metav1.DeleteOptions{})).To(Succeed())
				c.Start("release", controller(usual))
				c.create(fresh(1, "picky", 1000)...)
				c.settle()
				Expect(c.writes(0)).To(BeEmpty(), "a-002 has room")
				Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), "picky-0", metav1.DeleteOptions{})).To(Succeed())
				spoil(c)
				c.create(fresh(1, "picky", 2000)...)
				c.settle()
				Expect(c.writes(0)).To(HaveLen(1))
			})
		},
		Entry("named for deletion", func(c *cluster) {
			c.patch("a", `{"spec":{"replicas":1},"metadata":{"annotations":{"node.machine.sapcloud.io/trigger-deletion-by-mcm":"x~2026-01-01T00:00:00Z,a-002~2026-01-01T00:00:00Z"}}}`)
		}),
		Entry("deleted", func(c *cluster) {
			c.patch("a", `{"spec":{"replicas":1}}`)
			machines := c.ours.MachineV1alpha1().Machines(ns)
			_, err := machines.Patch(context.Background(), "a-002", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.org/stay"]}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(machines.Delete(context.Background(), "a-002", metav1.DeleteOptions{})).To(Succeed())
		}),
		Entry("promised to a pod that preempts", func(c *cluster) {
			c.create(fresh(1, "picky-first", 4000, func(p *corev1.Pod) { p.Status.NominatedNodeName = "a-002" })...)
		}),
	)

	It("reads what it needs to decide: claims, classes and DaemonSets", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.grow("b", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.disk("data", "b")
			c.daemonSet(1000)
			c.create(fresh(1, "picky", 3500, claiming("data"))...)
			c.create(fresh(1, "q", 3000, claiming("data"))...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1 b=2"), "a pod that does not fit beside the DaemonSet is ignored")
			Expect(c.waiting()).To(Equal(1))
		})
	})

	It("sets aside nothing for a pod of another namespace that names a DaemonSet as its owner", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.daemonSet(1000)
			set, err := c.core.AppsV1().DaemonSets(ns).Get(context.Background(), "daemon", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			world.Create(c.core.CoreV1().Pods("other"), Pod("daemon-1", 4000, InNamespace("other"), func(p *corev1.Pod) {
				p.UID, p.Status = "", corev1.PodStatus{}
				p.Spec.NodeName, p.Labels = "elsewhere", map[string]string{"pod-template-generation": "2"}
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}}
			}))
			c.Start("release", controller(usual))
			c.create(fresh(1, "picky", 3000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	DescribeTable("sets aside what the newest pod of the present template of a DaemonSet requests, as admission changes it",
		func(want string, generations ...string) {
			play(func(c *cluster) {
				c.grow("a", 1, 2, "1:10")
				c.daemonSet(1000)
				set, err := c.core.AppsV1().DaemonSets(ns).Get(context.Background(), "daemon", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				for i, generation := range generations {
					c.create(Pod(fmt.Sprint("daemon-", i), int64(3000-2500*i), func(p *corev1.Pod) {
						p.Spec.NodeName, p.Labels = "elsewhere", map[string]string{"pod-template-generation": generation}
						p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}}
					}))
					time.Sleep(time.Second)
				}
				c.Start("release", controller(usual))
				c.create(fresh(1, "picky", 3000)...)
				c.settle()
				Expect(c.replicas()).To(Equal(want))
			})
		},
		Entry("there is none", "a=2"),
		Entry("it requests more than the template", "a=1", "2"),
		Entry("there is only an old one of another template", "a=2", "1"),
		Entry("an older one requested more", "a=2", "2", "2"),
	)
})

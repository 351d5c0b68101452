// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
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

	DescribeTable("looks again at a pod whose volume is seen after all others", func(late string) {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.Lag(late, sim.Constantly(5*time.Minute), "release")
			c.create(Pods(1, "p", 4000, claiming("data"))...)
			c.disk("data", "a")
			time.Sleep(4 * time.Minute)
			Expect(c.replicas()).To(Equal("a=1"))
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	},
		Entry(nil, "persistentvolumeclaims"),
		Entry(nil, "persistentvolumes"),
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

// disk creates a claim that is bound to a volume of a zone.
func (c *cluster) disk(name, place string) {
	GinkgoHelper()
	ctx := context.Background()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: Zone, Operator: corev1.NodeSelectorOpIn, Values: []string{place}}},
	}}}}
	_, err := c.core.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}}
	claim.Spec.VolumeName = name
	_, err = c.core.CoreV1().PersistentVolumeClaims(ns).Create(ctx, claim, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func claiming(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeSelector = nil
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	}
}

// daemonSet takes a part of every node that is not in reserve.
func (c *cluster) daemonSet(milli int64) {
	GinkgoHelper()
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "daemon", Namespace: ns, Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}}}
	set.Spec.Template.Spec = Pod("daemon", milli).Spec
	_, err := c.core.AppsV1().DaemonSets(ns).Create(context.Background(), set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// unbound creates a claim whose volume is created where its pod runs.
func (c *cluster) unbound(name string) {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.StorageClassName = ptr.To("late")
	_, err := c.core.CoreV1().PersistentVolumeClaims(ns).Create(context.Background(), claim, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// late creates the storage class of such claims.
func (c *cluster) late() {
	GinkgoHelper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "csi.example", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	_, err := c.core.StorageV1().StorageClasses().Create(context.Background(), class, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// without leaves out kinds of those served.
func without(names ...string) []sim.Resource {
	return slices.DeleteFunc(slices.Clone(served), func(r sim.Resource) bool { return slices.Contains(names, r.Name) })
}

var _ = Describe("Where storage may not be read", func() {
	It("still serves pods, except for those whose volumes do not exist yet", func() {
		playOn(without("storageclasses", "csidrivers"), func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.unbound("data")
			c.disk("disk", "a")
			c.create(fresh(1, "picky", 4000, claiming("data"))...)
			c.create(fresh(1, "p", 4000, claiming("disk"))...)
			c.create(fresh(1, "q", 4000)...)
			c.settle()
			Expect(c.waiting()).To(Equal(1))
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	DescribeTable("a volume is created where the pod runs", func(kinds []sim.Resource, replicas string) {
		playOn(kinds, func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.late()
			c.unbound("data")
			c.create(fresh(1, "p", 4000, claiming("data"))...)
			c.settle()
			Expect(c.replicas()).To(Equal(replicas))
		})
	},
		Entry("and a machine for it is released", served, "a=2"),
		Entry("unless the needs of its driver are unknown", without("csidrivers"), "a=1"),
	)
})

var _ = Describe("A pod whose volume does not exist yet", func() {
	It("is helped when its storage class is seen after all else", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.Lag("storageclasses", sim.Constantly(5*time.Minute), "release")
			c.late()
			c.unbound("data")
			c.create(fresh(1, "p", 4000, claiming("data"))...)
			time.Sleep(4 * time.Minute)
			Expect(c.replicas()).To(Equal("a=1"))
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("keeps the room of the node for which that is being created, for as long as this takes", func() { // law 3
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.late()
			c.unbound("data")
			c.patch("a", `{"spec":{"replicas":2}}`)
			c.settle()
			_, err := c.core.CoreV1().PersistentVolumeClaims(ns).Patch(context.Background(), "data", types.MergePatchType, []byte(`{"metadata":{"annotations":{"volume.kubernetes.io/selected-node":"a-002"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("release", controller(usual))
			c.create(fresh(1, "picky-first", 3000, claiming("data"))...)
			time.Sleep(time.Minute)
			Expect(c.replicas()).To(Equal("a=2"))
			c.create(fresh(1, "picky-second", 4000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	It("is helped when the drivers have been read after all else, though there are none", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.late()
			c.unbound("data")
			c.create(fresh(1, "p", 4000, claiming("data"))...)
			c.settle()
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.Resource == "csidrivers" {
					return 10 * time.Second, 0
				}
				return 0, 0
			})
			c.Start("release", controller(usual))
			time.Sleep(9 * time.Second)
			Expect(c.replicas()).To(Equal("a=1"))
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})
})

// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
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
	"github.com/evenkeel/evenkeel/test/sim"
)

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

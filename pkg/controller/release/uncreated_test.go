// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// by has a pod made by a ReplicaSet.
func by(set *appsv1.ReplicaSet) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
}

func set(name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(name)}}
}

// stored has a pod use volumes: bound ones, that can be reached from everywhere.
func (s *story) stored(name string, source corev1.VolumeSource, change ...func(*corev1.Pod)) *story {
	p := pod(name, 1000, change...)
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
	s.Waiting = append(s.Waiting, fit.NewPod(p, &fit.Lookups{
		Claim: func(string, string) *corev1.PersistentVolumeClaim {
			return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		},
		Volume: func(string) *corev1.PersistentVolume { return &corev1.PersistentVolume{} },
	}))
	return s
}

var (
	shared = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}
	own    = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
)

// uncreated says how many pods ReplicaSets have yet to make.
func (s *story) uncreated(n int, sets ...string) *story {
	s.Uncreated = map[types.UID]int{}
	for _, name := range sets {
		s.Uncreated[types.UID(name)] = n
	}
	return s
}

var _ = DescribeTable("Pods that a ReplicaSet has yet to make",
	func(wantRaises, wantOutcomes string, wantUncreated int, s *story) {
		p := NewPlan(s.View)
		Expect(raises(p)).To(Equal(wantRaises))
		Expect(outcomes(p)).To(Equal(wantOutcomes))
		uncreated := 0
		for _, r := range p.Raises {
			uncreated += r.Uncreated
		}
		Expect(uncreated).To(Equal(wantUncreated))
		Expect(p.Memory).NotTo(HaveKey(types.UID("")))
	},
	Entry("count with one of it that waits", "a+2(a-1 a-2)", "Released:1", 7,
		tell().pool("a", 1, 5, 10).full().waits(pod("p", 1000, by(set("w")))).uncreated(7, "w")),
	Entry("count once, however many of it wait", "a+2(a-1 a-2)", "Released:3", 5,
		tell().pool("a", 1, 5, 10).full().waits(pods(3, "p", 1000, by(set("w")))...).uncreated(5, "w")),
	Entry("count for each of several", "a+3(a-1 a-2 a-3)", "Released:2", 8,
		tell().pool("a", 1, 5, 10).full().waits(pod("p", 1000, by(set("w"))), pod("q", 1000, by(set("x")))).uncreated(4, "w", "x")),
	Entry("go where there is room", "", "HasRoom:1", 0,
		tell().pool("a", 1, 5, 10).waits(pod("p", 1000, by(set("w")))).uncreated(3, "w")),
	Entry("have a machine released that those who wait do not need", "a+1(a-1)", "HasRoom:1", 1,
		tell().pool("a", 1, 5, 10).waits(pod("p", 1000, by(set("w")))).uncreated(4, "w")),
	Entry("have none released beyond max", "a+1(a-1)", "Released:1", 3,
		tell().pool("a", 1, 5, 2).full().waits(pod("p", 1000, by(set("w")))).uncreated(20, "w")),
	Entry("do not count while the scheduler has not refused one", "", "", 0,
		tell().pool("a", 1, 5, 10).full().waits(pod("p", 1000, untried, by(set("w")))).uncreated(7, "w")),
	Entry("do not count for others who wait", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 5, 10).full().waits(pod("p", 1000)).uncreated(7, "w")),
	Entry("count where they share a volume", "a+2(a-1 a-2)", "Released:1", 7,
		tell().pool("a", 1, 5, 10).full().stored("p", shared, by(set("w"))).uncreated(7, "w")),
	Entry("do not count where each has a volume of its own", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 5, 10).full().stored("p", own, by(set("w"))).uncreated(7, "w")),
)

// makes has a ReplicaSet in the cluster, which makes no pods.
func (c *cluster) makes(name string, replicas int) *appsv1.ReplicaSet {
	GinkgoHelper()
	s := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(replicas))}}
	s, err := c.core.AppsV1().ReplicaSets(ns).Create(context.Background(), s, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return s
}

// expectRoomForTwelve has one of twelve pods made first, and expects that one write makes room for all of them.
func (c *cluster) expectRoomForTwelve(owned func(*corev1.Pod)) {
	GinkgoHelper()
	pods := fresh(12, "p", 1000, owned)
	c.create(pods[0])
	time.Sleep(50 * time.Millisecond)
	Expect(c.replicas()).To(Equal("a=4"))
	Expect(c.events()).To(ContainElement(Equal("ReserveNeeded: Raised replicas from 1 to 4 for pod default/p-0 and 11 that do not exist yet, to release machines a-002, a-003, a-004")))
	c.create(pods[1:]...)
	c.settle()
	Expect(c.replicas()).To(Equal("a=4"))
	Expect(c.writes(0)).To(Equal([]string{"patch machinedeployments a"}))
}

var _ = Describe("A ReplicaSet that has not made all of its pods", func() {
	It("has room made for all of them when the first is refused, by one write", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.expectRoomForTwelve(by(c.makes("w", 12)))
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("makes others for those that are being deleted", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 5, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			set := c.makes("w", 3)
			c.create(fresh(2, "old", 1000, by(set), func(p *corev1.Pod) { p.Finalizers = []string{"example.org/stay"} })...)
			c.settle()
			c.delete("old-0")
			c.delete("old-1")
			before := c.replicas()
			c.create(fresh(1, "p", 4000, by(set))...)
			time.Sleep(time.Second)
			Expect([]string{before, c.replicas()}).To(Equal([]string{"a=2", "a=5"}))
		})
	})

	It("counts for what it has made where it makes no more", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 9, "1:20")
			c.Start("release", controller(usual))
			c.settle()
			ctx, sets := context.Background(), c.core.AppsV1().ReplicaSets(ns)
			fails := c.makes("fails", 20)
			fails.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}
			_, err := sets.UpdateStatus(ctx, fails, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			gone := c.makes("gone", 20)
			Expect(sets.Delete(ctx, "gone", metav1.DeleteOptions{})).To(Succeed())
			other := c.makes("other", 20)
			other.UID = "older"
			c.settle()
			for i, s := range []*appsv1.ReplicaSet{fails, gone, other} {
				c.create(fresh(1, s.Name, 4000, by(s))...)
				time.Sleep(time.Second)
				Expect(c.replicas()).To(Equal(fmt.Sprintf("a=%d", 2+i)), s.Name)
			}
		})
	})
})

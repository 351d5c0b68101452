// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// makes adds a ReplicaSet to the cluster, which creates no pods.
func (c *cluster) makes(name string, replicas int) *appsv1.ReplicaSet {
	GinkgoHelper()
	s := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(replicas))}}
	s, err := c.core.AppsV1().ReplicaSets(ns).Create(context.Background(), s, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return s
}

// expectRoomForTwelve creates one of twelve pods first, and expects that one write makes room for all of them.
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

var _ = Describe("A ReplicaSet that has not created all of its pods", func() {
	It("gets room for all of them when the first is rejected, with one write", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.expectRoomForTwelve(ByReplicaSet(c.makes("w", 12)))
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("gets room for all of them beside pods of another namespace that name it as their owner", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 5, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			set := c.makes("w", 3)
			for _, p := range fresh(2, "other", 1000, InNamespace("other"), ByReplicaSet(set), func(p *corev1.Pod) { p.Spec.NodeName = "elsewhere" }) {
				p.UID = ""
				world.Create(c.core.CoreV1().Pods("other"), p)
			}
			c.settle()
			c.create(fresh(1, "p", 4000, ByReplicaSet(set))...)
			time.Sleep(time.Second)
			Expect(c.replicas()).To(Equal("a=4"))
		})
	})

	It("creates others for those that are being deleted", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 5, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			set := c.makes("w", 3)
			c.create(fresh(2, "old", 1000, ByReplicaSet(set), func(p *corev1.Pod) { p.Finalizers = []string{"example.org/stay"} })...)
			c.settle()
			c.delete("old-0")
			c.delete("old-1")
			before := c.replicas()
			c.create(fresh(1, "p", 4000, ByReplicaSet(set))...)
			time.Sleep(time.Second)
			Expect([]string{before, c.replicas()}).To(Equal([]string{"a=2", "a=5"}))
		})
	})

	It("creates others for those that have failed", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 5, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			set := c.makes("w", 3)
			for _, p := range fresh(3, "evicted", 1000, ByReplicaSet(set), func(p *corev1.Pod) { p.Spec.NodeName = "elsewhere" }) {
				p = world.Create(c.core.CoreV1().Pods(ns), p)
				p.Status.Phase = corev1.PodFailed
				_, err := c.core.CoreV1().Pods(ns).UpdateStatus(context.Background(), p, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			c.settle()
			before := c.replicas()
			c.create(fresh(1, "p", 4000, ByReplicaSet(set))...)
			time.Sleep(time.Second)
			Expect([]string{before, c.replicas()}).To(Equal([]string{"a=1", "a=4"}))
		})
	})

	It("counts only for pods that it has created, if it creates no more", func() {
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
				c.create(fresh(1, s.Name, 4000, ByReplicaSet(s))...)
				time.Sleep(time.Second)
				Expect(c.replicas()).To(Equal(fmt.Sprintf("a=%d", 2+i)), s.Name)
			}
		})
	})
})

// byJob makes a Job the owner of a pod.
func byJob(job *batchv1.Job) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	}
}

// employs adds a Job to the cluster, which creates no pods.
func (c *cluster) employs(name string, parallelism int) *batchv1.Job {
	GinkgoHelper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Parallelism: ptr.To(int32(parallelism))}}
	job, err := c.core.BatchV1().Jobs(ns).Create(context.Background(), job, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return job
}

var _ = Describe("A Job that has not created all of its pods", func() {
	// known has the controller read Jobs, since a pod of one waits that it cannot help.
	known := func(c *cluster) {
		c.create(fresh(1, "picky", 9000, byJob(c.employs("first", 1)))...)
		time.Sleep(time.Second)
	}

	It("gets room for all of them when the first is rejected, with one write", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			known(c)
			c.expectRoomForTwelve(byJob(c.employs("w", 12)))
		})
	})

	It("is expected to create them as long as new ones appear, and then no more until its parallelism changes", func() {
		play(func(c *cluster) {
			var watched *Controller
			c.grow("a", 1, 9, "1:20")
			c.Start("release", controller(usual, func(seen *Controller) { watched = seen }))
			c.settle()
			known(c)
			job := c.employs("w", 3)
			expect := func(replicas string, pods ...*corev1.Pod) {
				GinkgoHelper()
				c.create(pods...)
				time.Sleep(200 * time.Millisecond)
				Expect(c.replicas()).To(Equal(replicas))
			}
			expect("a=4", fresh(1, "p", 4000, byJob(job))...)
			time.Sleep(2 * time.Second)
			Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), "p-0", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			expect("a=4", fresh(3, "other", 4000)...)
			c.settle()
			expect("a=5", fresh(1, "q", 4000, byJob(job))...) // as within a quota: the other two do not come
			job.Spec.Parallelism = ptr.To[int32](5)
			job, err := c.core.BatchV1().Jobs(ns).Update(context.Background(), job, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			expect("a=9", fresh(1, "r", 4000, byJob(job))...)
			Expect(watched.Held()).To(HaveKeyWithValue("jobs", 1))
			Expect(c.core.BatchV1().Jobs(ns).Delete(context.Background(), "w", metav1.DeleteOptions{})).To(Succeed())
			c.create(fresh(1, "last", 9000)...)
			c.settle()
			Expect(watched.Held()).To(HaveKeyWithValue("jobs", 0))
		})
	})

	It("gets room for those that are left to complete, beside those that have succeeded, when its parallelism rises", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 9, "1:20")
			c.Start("release", controller(usual))
			c.settle()
			known(c)
			ctx, jobs, pods := context.Background(), c.core.BatchV1().Jobs(ns), c.core.CoreV1().Pods(ns)
			job := c.employs("w", 1)
			for _, p := range fresh(5, "done", 4000, byJob(job), func(p *corev1.Pod) { p.Spec.NodeName = "elsewhere" }) {
				p = world.Create(pods, p)
				p.Status.Phase = corev1.PodSucceeded
				_, err := pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			job.Spec.Parallelism, job.Spec.Completions = ptr.To[int32](4), ptr.To[int32](20)
			job, err := jobs.Update(ctx, job, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			job.Status.Succeeded = 5
			_, err = jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			before := c.replicas()
			c.create(fresh(1, "p", 4000, byJob(job))...)
			time.Sleep(200 * time.Millisecond)
			Expect([]string{before, c.replicas()}).To(Equal([]string{"a=1", "a=5"}))
		})
	})

	It("counts only for pods that it has created, if Jobs cannot be read", func() {
		playOn(without("jobs"), func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "w"}}
			c.create(fresh(1, "p", 4000, byJob(job))...)
			time.Sleep(time.Minute)
			c.create(fresh(1, "q", 4000, byJob(job))...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})
})

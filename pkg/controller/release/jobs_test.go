// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release"
)

// byJob has a pod made by a Job.
func byJob(job *batchv1.Job) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	}
}

// employs has a Job in the cluster, which makes no pods.
func (c *cluster) employs(name string, parallelism int) *batchv1.Job {
	GinkgoHelper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Parallelism: ptr.To(int32(parallelism))}}
	job, err := c.core.BatchV1().Jobs(ns).Create(context.Background(), job, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return job
}

var _ = DescribeTable("A Job is to have",
	func(want int, change func(*batchv1.Job)) {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](7)}}
		change(job)
		Expect(PodsOfJob(job, "u")).To(Equal(want))
	},
	Entry("as many pods as may run at once", 7, func(*batchv1.Job) {}),
	Entry("one unless it says more", 1, func(j *batchv1.Job) { j.Spec.Parallelism = nil }),
	Entry("none if none may run", 0, func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](0) }),
	Entry("no more than may run at once, however many are to complete", 7, func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](20) }),
	Entry("no more than are to complete", 3, func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](3) }),
	Entry("no more than are left to complete", 2, func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded = ptr.To[int32](9), 7 }),
	Entry("none if more have completed than it asks for", 0, func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded = ptr.To[int32](3), 4 }),
	Entry("none once a pod has found that the work is done", 0, func(j *batchv1.Job) { j.Status.Succeeded = 1 }),
	Entry("none if it was replaced", 0, func(j *batchv1.Job) { j.UID = "other" }),
	Entry("none if it is being deleted", 0, func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} }),
	Entry("none if it is suspended", 0, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }),
	Entry("all if it is suspended no more", 7, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(false) }),
	Entry("none after a failure, since it waits", 0, func(j *batchv1.Job) { j.Status.Failed = 1 }),
	Entry("none while pods terminate, since it may wait for them", 0, func(j *batchv1.Job) { j.Status.Terminating = ptr.To[int32](1) }),
	Entry("all if none terminates", 7, func(j *batchv1.Job) { j.Status.Terminating = ptr.To[int32](0) }),
	Entry("none once it has ended", 0, func(j *batchv1.Job) { j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete}} }),
	Entry("none by another controller", 0, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }),
	Entry("all by the usual controller", 7, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To(batchv1.JobControllerName) }),
	Entry("none that are alike if they have an index", 0, func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }),
	Entry("all if it says that its pods have no index", 7, func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion) }),
)

var _ = It("A Job that does not exist is to have no pods", func() {
	Expect(PodsOfJob(nil, "u")).To(BeZero())
})

var _ = Describe("The pods that a Job has yet to create are expected", func() {
	var bursts Bursts
	job := func(parallelism int32) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "j", UID: "j"}, Spec: batchv1.JobSpec{Parallelism: &parallelism}}
	}
	expects := func(left int, at time.Duration) bool { return bursts.Expects(job(9), left, noon.Add(at)) }
	BeforeEach(func() { bursts = Bursts{} })

	It("for a second", func() {
		Expect(expects(5, 0)).To(BeTrue())
		Expect(expects(5, 700*time.Millisecond)).To(BeTrue())
		Expect(expects(5, time.Second)).To(BeTrue())
		Expect(expects(5, time.Second+1)).To(BeFalse())
	})

	It("for a second after each new one", func() {
		Expect(expects(5, 0)).To(BeTrue())
		Expect(expects(4, time.Second)).To(BeTrue())
		Expect(expects(4, 2*time.Second)).To(BeTrue())
		Expect(expects(4, 2*time.Second+1)).To(BeFalse())
	})

	It("no more after that, though another one appears", func() {
		Expect(expects(5, 0)).To(BeTrue())
		Expect(expects(4, 2*time.Second)).To(BeFalse())
		Expect(expects(3, 2*time.Second+1)).To(BeFalse())
	})

	It("again once its parallelism has changed", func() {
		Expect(expects(5, 0)).To(BeTrue())
		Expect(expects(5, 2*time.Second)).To(BeFalse())
		Expect(bursts.Expects(job(10), 6, noon.Add(2*time.Second))).To(BeTrue())
		Expect(bursts.Expects(job(10), 6, noon.Add(4*time.Second))).To(BeFalse())
	})

	It("of another Job of that name, too", func() {
		jobs := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		Expect(jobs.Add(job(9))).To(Succeed())
		Expect(expects(5, 0)).To(BeTrue())
		bursts.ForgetGone(jobs)
		Expect(bursts).To(HaveLen(1))
		other := job(9)
		other.UID = "other"
		Expect(jobs.Update(other)).To(Succeed())
		bursts.ForgetGone(jobs)
		Expect(bursts).To(BeEmpty())
	})
})

var _ = Describe("A Job that has not made all of its pods", func() {
	// known has the controller read Jobs, since a pod of one waits that it cannot help.
	known := func(c *cluster) {
		c.create(fresh(1, "picky", 9000, byJob(c.employs("first", 1)))...)
		time.Sleep(time.Second)
	}

	It("has room made for all of them when the first is refused, by one write", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			known(c)
			c.expectRoomForTwelve(byJob(c.employs("w", 12)))
		})
	})

	It("is expected to make them for as long as new ones come, and then no more until its parallelism changes", func() {
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

	It("counts for what it has made where Jobs may not be read", func() {
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

// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = DescribeTable("A Job is to have",
	func(want int, change func(*batchv1.Job)) {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](7)}}
		change(job)
		Expect(PodsOfJob(job, "u")).To(Equal(want))
	},
	Entry("as many pods as may run at once", 7, func(*batchv1.Job) {}),
	Entry("one unless parallelism is set", 1, func(j *batchv1.Job) { j.Spec.Parallelism = nil }),
	Entry("none if none may run", 0, func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](0) }),
	Entry("no more than may run at once, however many are to complete", 7, func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](20) }),
	Entry("no more than are to complete", 3, func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](3) }),
	Entry("no more than are left to complete", 2, func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded = ptr.To[int32](9), 7 }),
	Entry("none if more have completed than it asks for", 0, func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded = ptr.To[int32](3), 4 }),
	Entry("none once a pod has found that the work is done", 0, func(j *batchv1.Job) { j.Status.Succeeded = 1 }),
	Entry("none if it was replaced", 0, func(j *batchv1.Job) { j.UID = "other" }),
	Entry("none if it is being deleted", 0, func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} }),
	Entry("none if it is suspended", 0, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }),
	Entry("all if it is no longer suspended", 7, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(false) }),
	Entry("none after a failure, since it waits", 0, func(j *batchv1.Job) { j.Status.Failed = 1 }),
	Entry("none while pods terminate, since it may wait for them", 0, func(j *batchv1.Job) { j.Status.Terminating = ptr.To[int32](1) }),
	Entry("all if none terminates", 7, func(j *batchv1.Job) { j.Status.Terminating = ptr.To[int32](0) }),
	Entry("none once it has ended", 0, func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	}),
	Entry("all if it was suspended before", 7, func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}}
	}),
	Entry("none by another controller", 0, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }),
	Entry("all by the usual controller", 7, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To(batchv1.JobControllerName) }),
	Entry("none that are alike if they have an index", 0, func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }),
	Entry("all if its completion mode is NonIndexed", 7, func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion) }),
)

var _ = It("A Job that does not exist is to have no pods", func() {
	Expect(PodsOfJob(nil, "u")).To(BeZero())
})

var _ = Describe("The pods that a Job has yet to create are expected", func() {
	var bursts Bursts
	job := func(parallelism int32) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "j", UID: "j"}, Spec: batchv1.JobSpec{Parallelism: &parallelism}}
	}
	expects := func(left int, at time.Duration) bool { return bursts.Expects(job(9), left, Noon.Add(at)) }
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
		Expect(bursts.Expects(job(10), 6, Noon.Add(2*time.Second))).To(BeTrue())
		Expect(bursts.Expects(job(10), 6, Noon.Add(4*time.Second))).To(BeFalse())
	})

	It("again once it has been resumed", func() {
		startedAt := func(at time.Duration) *batchv1.Job {
			j := job(9)
			j.Status.StartTime = &metav1.Time{Time: Noon.Add(at)}
			return j
		}
		Expect(expects(5, 0)).To(BeTrue())
		Expect(bursts.Expects(startedAt(0), 5, Noon.Add(2*time.Second))).To(BeFalse(), "its status shows only now that it has been started")
		Expect(expects(5, time.Minute)).To(BeFalse(), "its status does not show yet that it has been resumed")
		Expect(bursts.Expects(startedAt(time.Minute), 5, Noon.Add(time.Minute))).To(BeTrue())
		Expect(bursts.Expects(startedAt(time.Minute), 5, Noon.Add(time.Minute+2*time.Second))).To(BeFalse())
	})

	It("no more after that, though its parallelism is written where it was one by default", func() {
		one := job(1)
		one.Spec.Parallelism = nil
		Expect(bursts.Expects(one, 1, Noon)).To(BeTrue())
		Expect(bursts.Expects(job(1), 1, Noon.Add(2*time.Second))).To(BeFalse())
	})

	It("at first, whatever its parallelism", func() {
		Expect(bursts.Expects(job(0), 1, Noon)).To(BeTrue())
		Expect(bursts.Expects(job(0), 1, Noon.Add(2*time.Second))).To(BeFalse())
	})

	It("of another Job of that name, too", func() {
		jobs := map[string]*batchv1.Job{fixture.Namespace + "/j": job(9)}
		find := func(key string) *batchv1.Job { return jobs[key] }
		Expect(expects(5, 0)).To(BeTrue())
		bursts.ForgetGone(find)
		Expect(bursts).To(HaveLen(1))
		other := job(9)
		other.UID = "other"
		jobs[fixture.Namespace+"/j"] = other
		bursts.ForgetGone(find)
		Expect(bursts).To(BeEmpty())
	})

	It("of no deleted Job, which is forgotten", func() {
		Expect(expects(5, 0)).To(BeTrue())
		bursts.ForgetGone(func(string) *batchv1.Job { return nil })
		Expect(bursts).To(BeEmpty())
	})
})

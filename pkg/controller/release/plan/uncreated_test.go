// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func set(name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: types.UID(name)}}
}

// stored has a pod use volumes: bound ones, that can be reached from everywhere.
func (s *story) stored(name string, source corev1.VolumeSource, change ...func(*corev1.Pod)) *story {
	p := Pod(name, 1000, change...)
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

// uncreated sets how many pods ReplicaSets have yet to create.
func (s *story) uncreated(n int, sets ...string) *story {
	return s.uncreatedIn(fixture.Namespace, n, sets...)
}

func (s *story) uncreatedIn(namespace string, n int, sets ...string) *story {
	s.Uncreated = map[types.UID]Uncreated{}
	for _, name := range sets {
		s.Uncreated[types.UID(name)] = Uncreated{Namespace: namespace, Count: n}
	}
	return s
}

// machineNames are those of the first machines in reserve of the pool a.
func machineNames(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("a-", i+1))
	}
	return strings.Join(names, " ")
}

var _ = DescribeTable("Pods that a ReplicaSet has yet to create",
	func(wantRaises, wantOutcomes string, wantUncreated int, s *story) {
		p := New(s.View)
		Expect(Raises(p)).To(Equal(wantRaises))
		Expect(outcomes(p)).To(Equal(wantOutcomes))
		uncreated := 0
		for _, r := range p.Raises {
			uncreated += r.Uncreated
		}
		Expect(uncreated).To(Equal(wantUncreated))
		Expect(p.Memory).NotTo(HaveKey(types.UID("")))
	},
	Entry("count with one of it that waits", "a+2(a-1 a-2)", "Released:1", 7,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(7, "w")),
	Entry("count once, however many of it wait", "a+2(a-1 a-2)", "Released:3", 5,
		tell().pool("a", 1, 5, 10).full().waits(Pods(3, "p", 1000, ByReplicaSet(set("w")))...).uncreated(5, "w")),
	Entry("count for each of several", "a+3(a-1 a-2 a-3)", "Released:2", 8,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000, ByReplicaSet(set("w"))), Pod("q", 1000, ByReplicaSet(set("x")))).uncreated(4, "w", "x")),
	Entry("go where there is room", "", "HasRoom:1", 0,
		tell().pool("a", 1, 5, 10).waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(3, "w")),
	Entry("get a machine that the waiting pods do not need", "a+1(a-1)", "HasRoom:1", 1,
		tell().pool("a", 1, 5, 10).waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(4, "w")),
	Entry("have none released beyond max", "a+1(a-1)", "Released:1", 3,
		tell().pool("a", 1, 5, 2).full().waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(20, "w")),
	Entry("do not count while the scheduler has not refused one", "", "", 0,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000, Untried, ByReplicaSet(set("w")))).uncreated(7, "w")),
	Entry("do not count for other waiting pods", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000)).uncreated(7, "w")),
	Entry("count where they share a volume", "a+2(a-1 a-2)", "Released:1", 7,
		tell().pool("a", 1, 5, 10).full().stored("p", shared, ByReplicaSet(set("w"))).uncreated(7, "w")),
	Entry("count up to a bound", fmt.Sprintf("a+46(%s)", machineNames(46)), "Released:1", MaxPods, // 110 pods each
		tell().pool("a", 1, 60, 100).full().waits(Pod("p", 10, ByReplicaSet(set("w")))).uncreated(1_000_000, "w")),
	Entry("have room that boots for replicas, one machine for each", "", "Coming:1", 0,
		tell().pool("a", 1, 0, 10, replicas(5)).pool("b", 1, 5, 10).full().waits(Pod("p", 4000, ByReplicaSet(set("w")))).uncreated(3, "w")),
	Entry("have none released if others own the machines", "a+1(a-2)", "Released:1", 0,
		tell().pool("a", 1, 2, 10, dedicated("shop", 1)).full().waits(Pod("p", 4000, ByReplicaSet(set("w")))).uncreated(1, "w")),
	Entry("count beside pods that own machines", "a+3(a-1 a-2 a-3)", "Released:2", 1,
		tell().pool("a", 1, 4, 10, dedicated("shop", 1)).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000, ByReplicaSet(set("w")))).uncreated(1, "w")),
	Entry("have none of the machines released that are for all, if they will own others", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 4, 10, dedicated("shop", 2)).full().waits(Pod("p", 4000, ofWeb)).uncreatedIn("shop", 1, "shopweb")),
	Entry("count as one of its namespace that waits, and not as one of another that names it as its owner", "a+3(a-1 a-2 a-3)", "Released:2", 4,
		tell().pool("a", 1, 9, 20).full().waits(Pod("other", 4000, InNamespace("other"), ByReplicaSet(set("w"))), Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(4, "w")),
	Entry("count with one that waits, beside one whose suitable nodes are unknown", "a+2(a-1 a-2)", "Released:1 Unclear:1", 7,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p-0", 1000, ByReplicaSet(set("w")), claimsDevice), Pod("p-1", 1000, ByReplicaSet(set("w")))).uncreated(7, "w")),
	Entry("do not count where each has a volume of its own", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 5, 10).full().stored("p", own, ByReplicaSet(set("w"))).uncreated(7, "w")),
)

var _ = DescribeTable("Where a machine has room for four pods, pods that a ReplicaSet has yet to create",
	func(wantOutcomes string, wantUncreated int, waiting ...*corev1.Pod) {
		web := Pod("web", 1000, ByReplicaSet(set("w")))
		s := tell().pool("a", 1, 1, 10).full().waits(append(waiting, web)...).uncreated(9, "w")
		p := New(s.View)
		Expect(Raises(p)).To(Equal("a+1(a-1)"))
		Expect(outcomes(p)).To(Equal(wantOutcomes))
		Expect(p.Raises[0].Uncreated).To(Equal(wantUncreated))
	},
	Entry("take what is left", "Released:2", 2, Pod("p", 1000)),
	Entry("leave it to pods that wait, of the same size", "Released:4", 0, Pod("p", 1000), Pod("q", 1000), Pod("r", 1000)),
	Entry("leave it to pods that wait, of another size", "Released:4", 0, Pod("p", 1000), Pod("q", 400), Pod("r", 1600)),
	Entry("leave it to pods that wait, all of them smaller", "Released:4", 0, Pod("p", 900), Pod("q", 900), Pod("r", 900)),
	Entry("leave it to pods that wait, all of them larger", "Released:3", 0, Pod("p", 1500), Pod("q", 1500)),
	Entry("leave it to pods that wait and are more important", "NoReserve:1 Released:2", 0,
		Pod("p", 2000, worth(5)), Pod("q", 2000, worth(5))),
	Entry("leave nothing to pods that are less important", "NoReserve:1 Released:1", 3, Pod("p", 1000, worth(-5))),
)

var _ = DescribeTable("A ReplicaSet is to have",
	func(want int, change func(*appsv1.ReplicaSet)) {
		rs := set("w")
		rs.Spec.Replicas = ptr.To[int32](7)
		change(rs)
		Expect(PodsOfReplicaSet(rs, "w")).To(Equal(want))
	},
	Entry("as many pods as its replicas", 7, func(*appsv1.ReplicaSet) {}),
	Entry("none if it was replaced", 0, func(s *appsv1.ReplicaSet) { s.UID = "other" }),
	Entry("none if it is being deleted", 0, func(s *appsv1.ReplicaSet) { s.DeletionTimestamp = &metav1.Time{Time: Noon} }),
	Entry("none if its replicas are not set", 0, func(s *appsv1.ReplicaSet) { s.Spec.Replicas = nil }),
	Entry("none if it cannot create them", 0, func(s *appsv1.ReplicaSet) {
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}
	}),
	Entry("all if it can create them again", 7, func(s *appsv1.ReplicaSet) {
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionFalse}}
	}),
	Entry("all, whatever the status of another condition", 7, func(s *appsv1.ReplicaSet) {
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: "Other", Status: corev1.ConditionTrue}}
	}),
)

var _ = It("A ReplicaSet that does not exist is to have no pods", func() {
	Expect(PodsOfReplicaSet(nil, "w")).To(BeZero())
})

var _ = DescribeTable("Pods like this one are created by",
	func(want string, pod *corev1.Pod) {
		owner := CreatorOf(pod)
		if want == "" {
			Expect(owner).To(BeNil())
			return
		}
		Expect(owner).To(HaveField("Kind", want))
	},
	Entry("its ReplicaSet", "ReplicaSet", Pod("p", 1000, ByReplicaSet(set("w")))),
	Entry("its Job", "Job", Pod("p", 1000, ownedBy("batch/v1", "Job"))),
	Entry("no controller, if the pod has no owner", "", Pod("p", 1000)),
	Entry("no controller of identical pods, if the owner is a StatefulSet", "", Pod("p", 1000, ownedBy("apps/v1", "StatefulSet"))),
	Entry("no known controller, if the owner is a Job of another API group", "", Pod("p", 1000, ownedBy("batch.example/v1", "Job"))),
)

// ownedBy has a controller of a kind own a pod.
func ownedBy(version, kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "w", UID: "w", Controller: ptr.To(true)}}
	}
}

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

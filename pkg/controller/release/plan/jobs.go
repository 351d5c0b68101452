// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// stallTime is after how much time without a new pod a Job is not expected to create more.
const stallTime = time.Second

// PodsOfJob returns how many pods a Job is to have now, without those that have succeeded. It
// returns 0 if the Job creates none soon: it was replaced, is being deleted, has ended, is
// suspended or waits after a failure, or if another controller creates its pods. It also returns 0
// for a Job whose pods have an index, because no two of them have the same labels.
func PodsOfJob(job *batchv1.Job, uid types.UID) int {
	switch {
	case job == nil || job.UID != uid || job.DeletionTimestamp != nil:
		return 0
	case ptr.Deref(job.Spec.Suspend, false) || ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName:
		return 0
	case ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.NonIndexedCompletion:
		return 0
	case slices.ContainsFunc(job.Status.Conditions, isTrue) || job.Status.Failed > 0 || ptr.Deref(job.Status.Terminating, 0) > 0:
		return 0
	}
	pods := int(ptr.Deref(job.Spec.Parallelism, 1))
	switch {
	case job.Spec.Completions != nil:
		pods = min(pods, int(*job.Spec.Completions-job.Status.Succeeded))
	case job.Status.Succeeded > 0: // its pods decide when the work is done
		return 0
	}
	return max(0, pods)
}

// isTrue reports whether a condition of a Job is true: the Job has ended, or is suspended.
func isTrue(c batchv1.JobCondition) bool { return c.Status == corev1.ConditionTrue }

// Bursts are Jobs that create pods, by UID. A Job does not show that its pods cannot be created,
// for example because of a quota, as a ReplicaSet does. So its pods are expected only as long as
// new ones appear, and then no more until its parallelism changes, or it is resumed.
type Bursts map[types.UID]burst

type burst struct {
	key         string // of the Job
	parallelism int32
	// started is when the Job was started or resumed; nil if its status does not show that.
	started *metav1.Time
	// left is how many pods are yet to be created, and since is when this was first seen.
	left  int
	since time.Time
}

// Expects reports whether the pods that a Job has yet to create will exist soon.
func (b Bursts) Expects(job *batchv1.Job, left int, now time.Time) bool {
	is := burst{job.Namespace + "/" + job.Name, ptr.Deref(job.Spec.Parallelism, 1), job.Status.StartTime, left, now}
	was, known := b[job.UID]
	if known && was.continues(is) {
		was.started = cmp.Or(was.started, is.started)
		b[job.UID] = was
		if now.Sub(was.since) > stallTime {
			return false
		}
		if was.left == left {
			return true
		}
	}
	b[job.UID] = is
	return true
}

// continues reports whether a Job still creates the pods of this burst.
func (b burst) continues(is burst) bool {
	return b.parallelism == is.parallelism && (b.started == nil || is.started == nil || b.started.Equal(is.started))
}

// ForgetGone forgets Jobs that no longer exist. find returns a Job by namespace/name, nil if there
// is none.
func (b Bursts) ForgetGone(find func(key string) *batchv1.Job) {
	for uid, one := range b {
		if job := find(one.key); job == nil || job.UID != uid {
			delete(b, uid)
		}
	}
}

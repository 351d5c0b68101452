// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// stallTime is after how much time without a new pod a Job is not expected to create more.
const stallTime = time.Second

// CreatorOf returns the ReplicaSet or Job that creates pods like this one; nil if there is none.
func CreatorOf(pod *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil
	}
	switch schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind) {
	case appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), batchv1.SchemeGroupVersion.WithKind("Job"):
		return owner
	}
	return nil
}

// PodsOfReplicaSet returns how many pods a ReplicaSet is to have. It returns 0 if the ReplicaSet
// creates none: it was replaced, is being deleted, or fails, for example because of a quota.
func PodsOfReplicaSet(set *appsv1.ReplicaSet, uid types.UID) int {
	if set == nil || set.UID != uid || set.DeletionTimestamp != nil || set.Spec.Replicas == nil {
		return 0
	}
	if slices.ContainsFunc(set.Status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
		return c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue
	}) {
		return 0
	}
	return int(*set.Spec.Replicas)
}

// uncreatedPods returns the pods that the ReplicaSets and Jobs of waiting pods have yet to create:
// the scheduler will find no node for them either. It omits pods with volumes of their own, because
// it is not known yet where these can be reached.
func (r *round) uncreatedPods(waiting []*fit.Pod) []fit.Uncreated {
	var all []fit.Uncreated
	counted := map[types.UID]bool{}
	for _, p := range waiting {
		owner := CreatorOf(p.Object)
		if owner == nil || counted[owner.UID] || p.Unclear != "" || slices.ContainsFunc(p.Object.Spec.Volumes, isPerPod) {
			continue
		}
		if u := r.Uncreated[owner.UID]; u.Namespace == p.Object.Namespace {
			counted[owner.UID] = true
			all = append(all, fit.Uncreated{Like: p, Count: min(u.Count, MaxPods)})
		}
	}
	return all
}

// isPerPod reports whether each pod has such a volume for itself.
func isPerPod(v corev1.Volume) bool { return v.Ephemeral != nil }

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

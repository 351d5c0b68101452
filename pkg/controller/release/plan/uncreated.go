// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

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

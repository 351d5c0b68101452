// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// replicaSetOf returns the ReplicaSet that creates pods like this one; nil if there is none.
func replicaSetOf(pod *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return nil
	}
	return owner
}

// countUncreated returns how many pods the ReplicaSets of waiting pods have yet to create, by UID.
// Those of a large ReplicaSet are created in several batches, and when the last ones exist, the
// machines for them can serve already.
func (c *Controller) countUncreated(waiting []*fit.Pod, all []*cachedPod) map[types.UID]int {
	uncreated := map[types.UID]int{}
	for _, p := range waiting {
		owner := replicaSetOf(p.Object)
		if owner == nil {
			continue
		}
		if _, known := uncreated[owner.UID]; !known {
			uncreated[owner.UID] = desiredPods(stores.Find[appsv1.ReplicaSet](c.stores.replicaSets, p.Object.Namespace+"/"+owner.Name), owner.UID)
		}
	}
	if len(uncreated) == 0 {
		return nil
	}
	for _, p := range all {
		if uncreated[p.controller] > 0 {
			uncreated[p.controller]--
		}
	}
	return uncreated
}

// desiredPods returns how many pods a ReplicaSet is to have. It returns 0 if the ReplicaSet creates
// none: it was replaced, is being deleted, or fails, for example because of a quota.
func desiredPods(set *appsv1.ReplicaSet, uid types.UID) int {
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

// uncreatedPods returns the pods that the ReplicaSets of waiting pods have yet to create: the
// scheduler will find no node for them either. It omits pods with volumes of their own, because it
// is not known yet where these can be reached.
func (r *round) uncreatedPods(waiting []*fit.Pod) []fit.Uncreated {
	var all []fit.Uncreated
	counted := map[types.UID]bool{}
	for _, p := range waiting {
		owner := replicaSetOf(p.Object)
		if owner == nil || counted[owner.UID] || p.Unclear != "" || slices.ContainsFunc(p.Object.Spec.Volumes, isPerPod) {
			continue
		}
		counted[owner.UID] = true
		all = append(all, fit.Uncreated{Like: p, Count: min(r.Uncreated[owner.UID], MaxPods)})
	}
	return all
}

// isPerPod reports whether each pod has such a volume for itself.
func isPerPod(v corev1.Volume) bool { return v.Ephemeral != nil }

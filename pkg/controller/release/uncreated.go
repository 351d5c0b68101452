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

// setOf is the ReplicaSet that makes pods like this one; nil where none does.
func setOf(pod *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return nil
	}
	return owner
}

// uncreated is how many pods the ReplicaSets of pods that wait have yet to create, by UID. Those of a large one are created in several
// goes, and by the time that the last are there the machines for them can serve.
func (c *Controller) uncreated(waiting []*fit.Pod, all []*corev1.Pod) map[types.UID]int {
	uncreated := map[types.UID]int{}
	for _, p := range waiting {
		owner := setOf(p.Object)
		if owner == nil {
			continue
		}
		if _, known := uncreated[owner.UID]; !known {
			uncreated[owner.UID] = wanted(stores.Find[appsv1.ReplicaSet](c.stores.replicaSets, p.Object.Namespace+"/"+owner.Name), owner.UID)
		}
	}
	if len(uncreated) == 0 {
		return nil
	}
	for _, pod := range all {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && pod.DeletionTimestamp == nil && uncreated[owner.UID] > 0 {
			uncreated[owner.UID]--
		}
	}
	return uncreated
}

// wanted is how many pods a ReplicaSet is to have; 0 where it makes none, since it is another by now, or goes, or fails to: there may
// be a quota.
func wanted(set *appsv1.ReplicaSet, uid types.UID) int {
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

// uncreated is how many pods the ReplicaSets of pods that wait have yet to create: the scheduler will find no place for them either.
// Those with volumes of their own are left out, since nobody knows yet where these can be reached.
func (r *round) uncreated(waiting []*fit.Pod) []fit.Uncreated {
	var all []fit.Uncreated
	counted := map[types.UID]bool{}
	for _, p := range waiting {
		owner := setOf(p.Object)
		if owner == nil || counted[owner.UID] || p.Unclear != "" || slices.ContainsFunc(p.Object.Spec.Volumes, isOwn) {
			continue
		}
		counted[owner.UID] = true
		all = append(all, fit.Uncreated{Like: p, Count: min(r.Uncreated[owner.UID], MaxPods)})
	}
	return all
}

// isOwn reports whether each pod has such a volume for itself.
func isOwn(v corev1.Volume) bool { return v.Ephemeral != nil }

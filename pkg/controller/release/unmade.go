// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// unmade is how many pods the ReplicaSets of pods that wait have yet to make. Those of a large one are made in several goes, and by the
// time that the last are there the machines for them can serve.
func (c *Controller) unmade(pods map[string][]*fit.Pod) map[types.UID]int {
	unmade := map[types.UID]int{}
	for _, p := range pods[""] {
		owner := setOf(p.Object)
		if owner == nil {
			continue
		}
		if _, known := unmade[owner.UID]; !known {
			unmade[owner.UID] = wanted(find[appsv1.ReplicaSet](c.stores.replicaSets, p.Object.Namespace+"/"+owner.Name), owner.UID)
		}
	}
	if len(unmade) == 0 {
		return nil
	}
	for _, there := range pods {
		for _, p := range there {
			if owner := metav1.GetControllerOfNoCopy(p.Object); owner != nil && p.Object.DeletionTimestamp == nil && unmade[owner.UID] > 0 {
				unmade[owner.UID]--
			}
		}
	}
	return unmade
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

// stripSet keeps what is read here: old ReplicaSets are many.
func stripSet(item any) (any, error) {
	set, ok := item.(*appsv1.ReplicaSet)
	if !ok {
		return item, nil
	}
	slim := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion, DeletionTimestamp: set.DeletionTimestamp,
	}}
	slim.Spec.Replicas, slim.Status.Conditions = set.Spec.Replicas, set.Status.Conditions
	return slim, nil
}

// unmade are the pods that the ReplicaSets of pods that wait have yet to make: the scheduler will find no place for them either.
// Those with volumes of their own are left out, since nobody knows yet where these can be reached.
func (r *round) unmade(waiting []*fit.Pod) []*fit.Pod {
	var all []*fit.Pod
	counted := map[types.UID]bool{}
	for _, p := range waiting {
		owner := setOf(p.Object)
		if owner == nil || counted[owner.UID] || p.Unclear != "" || slices.ContainsFunc(p.Object.Spec.Volumes, isOwn) {
			continue
		}
		counted[owner.UID] = true
		all = append(all, slices.Repeat([]*fit.Pod{p.Another()}, r.Unmade[owner.UID])...)
	}
	return all
}

// isOwn says that each pod has such a volume for itself.
func isOwn(v corev1.Volume) bool { return v.Ephemeral != nil }

// isUnmade says that a pod has not been made yet.
func isUnmade(p *fit.Pod) bool { return p.Object.Name == "" }

// SPDX-License-Identifier: Apache-2.0

package release

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// groupsOf returns the groups of waiting pods, as far as they are known.
func (c *Controller) groupsOf(waiting []*fit.Pod, all []*cachedPod) map[string]plan.PodGroup {
	names := map[string]bool{}
	for _, p := range waiting {
		if name := plan.GroupName(p); name != "" {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	if !c.groups.want() {
		return nil
	}
	bound := map[string]int{}
	for _, p := range all {
		if name := plan.GroupName(p.Pod); name != "" && p.needsRoom() {
			bound[name]++
		}
	}
	groups, store := make(map[string]plan.PodGroup, len(names)), c.informers.PodGroups().GetIndexer()
	for name := range names {
		if group := stores.Find[schedulingv1alpha2.PodGroup](store, name); group != nil {
			groups[name] = plan.PodGroupOf(group, bound[name])
		}
	}
	return groups
}

// recordShortages says what groups lack, each time that it changes.
func (c *Controller) recordShortages(all []plan.Shortage) {
	said := map[string]string{}
	for _, s := range all {
		group := stores.Find[schedulingv1alpha2.PodGroup](c.informers.PodGroups().GetIndexer(), s.Group)
		if group == nil {
			continue
		}
		said[s.Group] = s.String()
		if c.said[s.Group] != said[s.Group] {
			c.groupRecorder.Event(groupReference(group), corev1.EventTypeNormal, "ReserveTooSmall", said[s.Group])
		}
	}
	c.said = said
}

// groupReference refers to a PodGroup, whose kind the cache does not keep.
func groupReference(g *schedulingv1alpha2.PodGroup) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: schedulingv1alpha2.SchemeGroupVersion.String(), Kind: "PodGroup",
		Namespace: g.Namespace, Name: g.Name, UID: g.UID, ResourceVersion: g.ResourceVersion,
	}
}

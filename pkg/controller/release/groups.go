// SPDX-License-Identifier: Apache-2.0

package release

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// groupsOf returns the groups of waiting pods, as far as they are known.
func (c *Controller) groupsOf(waiting []*fit.Pod, all []*cachedPod) map[string]plan.PodGroup {
	members := map[string]*fit.Pod{}
	for _, p := range waiting {
		if name := plan.GroupName(p); name != "" {
			members[name] = oldest(members[name], p)
		}
	}
	if len(members) == 0 {
		return nil
	}
	bound, succeeded := map[string]int{}, map[string]int{}
	for _, p := range all {
		if name := plan.GroupName(p.Pod); name == "" {
			continue
		} else if p.needsRoom() {
			bound[name]++
		} else if p.from.Status.Phase == corev1.PodSucceeded {
			succeeded[name]++
		}
	}
	groups := make(map[string]plan.PodGroup, len(members))
	for name, p := range members {
		if p.Group() == "" {
			groups[name] = plan.PodGroupOfKueue(p, bound[name]+succeeded[name])
		} else if group := c.podGroup(name); group != nil {
			groups[name] = plan.PodGroupOf(group, bound[name])
		}
	}
	return groups
}

// podGroup returns a PodGroup; nil if it does not exist or is not known yet.
func (c *Controller) podGroup(name string) *schedulingv1alpha2.PodGroup {
	if !c.groups.want() {
		return nil
	}
	return stores.Find[schedulingv1alpha2.PodGroup](c.informers.PodGroups().GetIndexer(), name)
}

// oldest returns the older one of two pods, of which the first may be nil.
func oldest(a, b *fit.Pod) *fit.Pod {
	if a == nil || b.Object.CreationTimestamp.Before(&a.Object.CreationTimestamp) {
		return b
	}
	return a
}

// recordShortages says what groups lack, each time that it changes.
func (c *Controller) recordShortages(all []plan.Shortage) {
	said := map[string]string{}
	for _, s := range all {
		on := c.referenceTo(s)
		if on == nil {
			continue
		}
		said[s.Group] = s.String()
		if c.said[s.Group] != said[s.Group] {
			c.groupRecorder.Event(on, corev1.EventTypeNormal, "ReserveTooSmall", said[s.Group])
		}
	}
	c.said = said
}

// referenceTo refers to the PodGroup that lacks machines, or to a pod of a group of Kueue. The cache does
// not keep their kinds. It returns nil if the PodGroup is gone.
func (c *Controller) referenceTo(s plan.Shortage) *corev1.ObjectReference {
	if s.Member.Spec.SchedulingGroup == nil {
		return reference(corev1.SchemeGroupVersion.String(), "Pod", s.Member)
	}
	group := c.podGroup(s.Group)
	if group == nil {
		return nil
	}
	return reference(schedulingv1alpha2.SchemeGroupVersion.String(), "PodGroup", group)
}

func reference(apiVersion, kind string, o metav1.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
}

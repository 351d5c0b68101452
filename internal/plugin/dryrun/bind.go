// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// bindPods binds each pod that lost its machine to the serving machine with the fewest pods that
// has room. If no machine has room, the pod waits.
func (w *world) bindPods(d *machine.MachineDeployment) (moved bool) {
	waiting := w.homeless(d)
	if len(waiting) == 0 {
		return false
	}
	places := w.places(d)
	for _, pod := range sorted(waiting) {
		if best := bestFor(pod, places); best != nil {
			best.addPod(pod)
			w.bindPod(pod, best.name)
			moved = true
			continue
		}
		if !rejectedByScheduler(pod) {
			pod = pod.DeepCopy()
			pod.Status.Phase, pod.Status.NominatedNodeName = corev1.PodPending, ""
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(w.now),
			}}
			w.pods[keyOf(pod)] = pod
			moved = true
		}
	}
	return moved
}

// homeless returns the pods whose machine, one of the MachineDeployment's, is gone.
func (w *world) homeless(d *machine.MachineDeployment) []*corev1.Pod {
	sets := map[string]bool{}
	for _, set := range w.sets.ownedBy(d.UID) {
		sets[string(set.UID)] = true
	}
	var all []*corev1.Pod
	for _, pod := range w.pods {
		if from := pod.Annotations[evictedFrom]; pod.Spec.NodeName == "" && from != "" && sets[from] {
			all = append(all, pod)
		}
	}
	return all
}

// rejectedByScheduler reports whether the scheduler has found no room for a pod.
func rejectedByScheduler(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

func (w *world) bindPod(pod *corev1.Pod, node string) {
	pod, at := pod.DeepCopy(), metav1.NewTime(w.now)
	pod.Spec.NodeName, pod.Status.Phase, pod.Status.StartTime = node, corev1.PodRunning, &at
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at}}
	w.pods[keyOf(pod)] = pod
}

// spot is a serving machine with the room that is left.
type spot struct {
	name string
	pods int
	free corev1.ResourceList
}

// places returns the machines of a MachineDeployment that pods can move to.
func (w *world) places(d *machine.MachineDeployment) map[string]*spot {
	all := map[string]*spot{}
	for _, m := range w.snapshot(d).Machines {
		if m.Ready() && !pool.BeingDeleted(m.Object) && !m.Marked() && m.Node != nil && !m.Node.Spec.Unschedulable {
			all[m.Node.Name] = &spot{name: m.Node.Name, free: maps.Clone(m.Node.Status.Allocatable)}
		}
	}
	for _, pod := range w.pods {
		if s := all[pod.Spec.NodeName]; s != nil && !pool.Finished(pod) {
			s.addPod(pod)
		}
	}
	return all
}

func (s *spot) addPod(pod *corev1.Pod) {
	if pool.IsWorkload(pod) {
		s.pods++
	}
	for name, amount := range requests(pod) {
		if left, known := s.free[name]; known {
			left.Sub(amount)
			s.free[name] = left
		}
	}
}

func requests(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

// bestFor returns the place with the fewest pods that has room; among equals, the first by name.
func bestFor(pod *corev1.Pod, places map[string]*spot) (best *spot) {
	wanted := requests(pod)
	for _, name := range slices.Sorted(maps.Keys(places)) {
		s := places[name]
		room := true
		for name, amount := range wanted {
			left, known := s.free[name]
			room = room && known && left.Cmp(amount) >= 0
		}
		if room && (best == nil || s.pods < best.pods) {
			best = s
		}
	}
	return best
}

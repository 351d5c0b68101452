// SPDX-License-Identifier: Apache-2.0

package release

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// podChanged reads a pod at once, so that decisions find it in the cache. It starts a decision if
// the pod waits, also if the scheduler has not tried it yet but a similar pod waits.
func (c *Controller) podChanged(was, is any) {
	before, _ := was.(*corev1.Pod)
	after, _ := is.(*corev1.Pod)
	if after == nil {
		if before != nil {
			c.podCache.forget(before)
		}
		c.somethingChanged(was, is)
		return
	}
	c.podCache.addPod(after)
	if after.Status.NominatedNodeName != "" && after.Spec.NodeName == "" {
		c.loop.AddAfter(queueKey, c.settings.Patience)
	}
	if counts, tried := c.settings.Evaluate(c.withoutVoid(after)); tried || counts && c.tried.Load().contains(c.podCache.podFor(after)) {
		c.loop.AddAfter(queueKey, c.gatherTimeFor(after))
		return
	}
	if before == nil || affectsOthers(before, after) {
		c.somethingChanged(was, is)
	}
}

// affectsOthers reports whether a change of a pod may change where others can run: its place, its
// requests, which may change while it runs, or its labels. Topology spread does not count a pod that
// is being deleted.
func affectsOthers(was, is *corev1.Pod) bool {
	return was.Status.Phase != is.Status.Phase || was.Status.NominatedNodeName != is.Status.NominatedNodeName ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) || !maps.Equal(was.Labels, is.Labels) ||
		!equality.Semantic.DeepEqual(&was.Spec, &is.Spec)
}

// gatherTimeFor is how long a decision about a pod that begins to wait is delayed. The first pod of a
// ReplicaSet or a Job need not wait for the others: the decision knows how many there will be.
func (c *Controller) gatherTimeFor(pod *corev1.Pod) time.Duration {
	if c.tried.Load() == nil && plan.CreatorOf(pod) != nil {
		return 0
	}
	return gatherTime
}

// deploymentChanged forgets a MachineDeployment that no longer exists.
func (c *Controller) deploymentChanged(was, is any) {
	if gone, ok := was.(*v1alpha1.MachineDeployment); ok && is == nil {
		c.metrics.forget(gone.Namespace + "/" + gone.Name)
	}
	c.somethingChanged(was, is)
}

// nodeChanged ignores the many changes of a Node's status that do not matter here.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	if before != nil && after != nil && before.Spec.Unschedulable == after.Spec.Unschedulable && before.Spec.ProviderID == after.Spec.ProviderID &&
		equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) && maps.Equal(before.Labels, after.Labels) &&
		equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) && pool.NodeReady(before) == pool.NodeReady(after) {
		return
	}
	c.somethingChanged(was, is)
}

// specChanged ignores changes of the status. Each kind is watched on its own, so that a MachineSet
// may be seen after its machines. An object that was created again may have the same generation.
func (c *Controller) specChanged(was, is any) {
	before, _ := was.(metav1.Object)
	after, _ := is.(metav1.Object)
	if before == nil || after == nil || before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) {
		c.somethingChanged(was, is)
	}
}

// somethingChanged starts a decision if pods wait.
func (c *Controller) somethingChanged(any, any) {
	if c.tried.Load() != nil {
		c.loop.AddAfter(queueKey, otherEventsDelay)
	}
}

// shapes are the shapes of pods; see fit.Pod.Shape.
type shapes map[string]bool

// contains is false for nil, too.
func (s *shapes) contains(p *fit.Pod) bool { return s != nil && (*s)[p.Shape()] }

// triedShapes returns the shapes of pods that the scheduler has found no node for.
func triedShapes(v plan.View) *shapes {
	all := shapes{}
	for _, p := range v.Waiting {
		if _, tried := v.Settings.Evaluate(p.Object); tried {
			all[p.Shape()] = true
		}
	}
	return &all
}

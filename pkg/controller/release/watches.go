// SPDX-License-Identifier: Apache-2.0

package release

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// podChanged reads a pod at once, so that a decision finds it read, and has pods that wait looked at: also one that the scheduler has
// not come to yet, where it is like one that waits.
func (c *Controller) podChanged(was, is any) {
	before, _ := was.(*corev1.Pod)
	after, _ := is.(*corev1.Pod)
	if after == nil {
		if before != nil {
			c.reading.forget(before)
		}
		c.somethingChanged(was, is)
		return
	}
	c.reading.note(after)
	if counts, tried := c.settings.counts(after); tried || counts && c.tried.Load().has(c.reading.of(after)) {
		c.loop.AddAfter(everything, max(gather, time.Duration(c.took.Load())))
		return
	}
	if before == nil || before.Spec.NodeName != after.Spec.NodeName || before.Status.Phase != after.Status.Phase ||
		before.Status.NominatedNodeName != after.Status.NominatedNodeName {
		c.somethingChanged(was, is)
	}
}

// deploymentChanged forgets a MachineDeployment that is gone.
func (c *Controller) deploymentChanged(was, is any) {
	if gone, ok := was.(*v1alpha1.MachineDeployment); ok && is == nil {
		c.metrics.forget(gone.Namespace + "/" + gone.Name)
	}
	c.somethingChanged(was, is)
}

// nodeChanged leaves out the many changes of status that mean nothing here.
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

// somethingChanged matters only while somebody waits.
func (c *Controller) somethingChanged(any, any) {
	if c.tried.Load() != nil {
		c.loop.AddAfter(everything, ponder)
	}
}

// handler tells of what was and what is; one of them is nil where an object comes or goes.
func handler(changed func(was, is any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(is any) { changed(nil, is) },
		UpdateFunc: changed,
		DeleteFunc: func(was any) {
			if gone, ok := was.(cache.DeletedFinalStateUnknown); ok {
				was = gone.Obj
			}
			changed(was, nil)
		},
	}
}

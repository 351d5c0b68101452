// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"cmp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// gatherTime is how long changes are gathered that are not urgent: when many pods are bound or many
// machines boot at once, other components need the CPU more.
const gatherTime = 100 * time.Millisecond

// ResyncAll syncs all MachineDeployments: when the target cluster stops or resumes responding, or
// when it becomes known where reserves are counted.
func (c *Controller) ResyncAll() {
	for _, key := range c.stores.deployments.ListKeys() {
		c.loop.Add(key)
	}
}

// deploymentChanged causes a sync at once, unless only the status of a MachineDeployment has changed:
// machine-controller-manager and this controller write it often.
func (c *Controller) deploymentChanged(was, is any) {
	before, _ := was.(*v1alpha1.MachineDeployment)
	after, _ := is.(*v1alpha1.MachineDeployment)
	if before != nil && after != nil && before.UID == after.UID {
		c.states.noteNames(before, after, c.clock.Now(), c.latest.inReserve)
	}
	if hasReplicas(before) != hasReplicas(after) {
		c.syncEmpty(cmp.Or(before, after).Namespace)
	}
	d := cmp.Or(after, before)
	if d == nil {
		return
	}
	c.add(keyOf(d), !pool.OnlyStatusDiffers(before, after))
	c.states.notify(keyOf(d))
}

func hasReplicas(d *v1alpha1.MachineDeployment) bool { return d != nil && d.Spec.Replicas > 0 }

// syncEmpty syncs the MachineDeployments of a namespace that have no replicas: whether these have a
// reserve depends on the replicas of the others, see [Controller.allLeaving].
func (c *Controller) syncEmpty(namespace string) {
	for d := range stores.All[*v1alpha1.MachineDeployment](c.stores.deployments) {
		if d.Namespace == namespace && !hasReplicas(d) {
			c.loop.Add(keyOf(d))
		}
	}
}

func (c *Controller) setChanged(was, is any) {
	for _, item := range []any{was, is} {
		if set, ok := item.(*mcm.MachineSet); ok {
			if key, found := keyOfSet(set); found {
				c.add(key, was == nil || is == nil)
			}
		}
	}
}

func (c *Controller) machineChanged(was, is any) {
	for _, item := range []any{was, is} {
		if m, ok := item.(*mcm.Machine); ok {
			if key, found := c.stores.deploymentOf(m); found {
				if is == nil && pool.Marked(m) {
					c.states.noteDeparture(key, m.Name, c.clock.Now())
				}
				c.add(key, was == nil || is == nil)
			}
		}
	}
}

// classChanged syncs the MachineDeployments whose machines are of a class: an excess in resources
// depends on the capacity of a machine.
func (c *Controller) classChanged(was, is any) {
	for _, item := range []any{is, was} {
		class, ok := item.(*mcm.MachineClass)
		if !ok {
			continue
		}
		for d := range stores.All[*v1alpha1.MachineDeployment](c.stores.deployments) {
			if d.Namespace == class.Namespace && d.Spec.Template.Spec.Class.Name == class.Name {
				c.add(keyOf(d), false)
			}
		}
		return
	}
}

// add queues a key at once if a change is urgent, and otherwise together with what changes until then.
func (c *Controller) add(key string, urgent bool) {
	if urgent {
		c.loop.Add(key)
		return
	}
	c.loop.AddAfter(key, gatherTime)
}

// nodeAnnotations are the annotations of a Node that this controller reads.
var nodeAnnotations = []string{
	v1alpha1.ReserveAnnotation, v1alpha1.ScaleDownDisabledAnnotation, plan.KeptByRollout, machineutils.LastAppliedALTAnnotation,
}

// nodeChanged ignores the many changes of a Node's status that do not matter here. A Node that is new is
// urgent, and one that loses the taint or an annotation of the reserve: pods may be bound to it.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	differs := func(key string) bool { return before.Annotations[key] != after.Annotations[key] }
	if before != nil && after != nil && slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, fit.SameTaint) &&
		!slices.ContainsFunc(nodeAnnotations, differs) && pool.NodeReady(before) == pool.NodeReady(after) && before.Spec.ProviderID == after.Spec.ProviderID && before.Spec.Unschedulable == after.Spec.Unschedulable &&
		equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) {
		return
	}
	urgent := before == nil || after == nil ||
		pool.HasReserveTaint(before.Spec.Taints) && (!pool.HasReserveTaint(after.Spec.Taints) || slices.ContainsFunc(nodeAnnotations, differs))
	for _, node := range []*corev1.Node{before, after} {
		if node == nil {
			continue
		}
		for _, key := range c.stores.deploymentsOfNode(node.Name) {
			c.add(key, urgent)
		}
	}
}

// podChanged causes a sync if a machine may have become busy or empty, or if its pods may be
// evicted now.
func (c *Controller) podChanged(was, is any) {
	before, _ := was.(*corev1.Pod)
	after, _ := is.(*corev1.Pod)
	from, to := busyNode(before), busyNode(after)
	if from == to && (to == "" || c.pin(before) == c.pin(after)) {
		return
	}
	for _, node := range []string{from, to} {
		if node == "" {
			continue
		}
		for _, key := range c.stores.deploymentsOfNode(node) {
			c.add(key, false)
		}
	}
}

// pin returns why a pod must not be evicted, as far as that does not depend on budgets.
func (c *Controller) pin(pod *corev1.Pod) string {
	return pool.NewEvictor(c.settings.Eviction, nil, "", c.clock.Now()).WhyNot(pod)
}

// busyNode returns the Node that a pod makes busy; empty if the pod does not count.
func busyNode(pod *corev1.Pod) string {
	if pod == nil || !pool.IsWorkload(pod) {
		return ""
	}
	return pod.Spec.NodeName
}

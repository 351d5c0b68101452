// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// waits says that the scheduler has failed to find a place for some pod.
func (c *Controller) waits() bool {
	return slices.ContainsFunc(indexed[*corev1.Pod](c.stores.pods, byNode, ""), func(p *corev1.Pod) bool {
		_, tried := c.settings.counts(p)
		return tried
	})
}

// observe gathers what a decision rests on.
func (c *Controller) observe(now time.Time) View {
	v := View{Now: now, Settings: c.settings, Memory: c.memory, Daemons: c.daemons()}
	pods := c.places()
	v.Waiting, v.Unmade = pods[""], c.unmade(pods)
	slices.SortFunc(v.Waiting, func(a, b *fit.Pod) int {
		return cmp.Or(a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time), cmp.Compare(a.Name(), b.Name()))
	})
	for _, node := range list[*corev1.Node](c.stores.nodes.List()) {
		v.Nodes = append(v.Nodes, Node{Object: node, Pods: pods[node.Name]})
	}
	slices.SortFunc(v.Nodes, func(a, b Node) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	v.Pools = c.pools(now)
	return v
}

// places has the pods by Node, and those without one. They are all read at once: one that is bound meanwhile would count
// twice, where it waits and where it runs.
func (c *Controller) places() map[string][]*fit.Pod {
	all := map[string][]*fit.Pod{}
	for _, pod := range list[*corev1.Pod](c.stores.pods.List()) {
		if node, lives := placeOf(pod); lives {
			all[node] = append(all[node], c.reading.of(pod))
		}
	}
	return all
}

// pools are the MachineDeployments that take part: such as have bounds that can be read.
func (c *Controller) pools(now time.Time) []Pool {
	var pools []Pool
	for _, d := range list[*v1alpha1.MachineDeployment](c.stores.deployments.List()) {
		d = c.latest.Newest(d)
		bounds, err := v1alpha1.ParseBounds(d.Annotations[v1alpha1.BoundsAnnotation])
		if err != nil || d.DeletionTimestamp != nil {
			continue
		}
		pools = append(pools, c.materialOf(d, bounds).pool(now))
	}
	slices.SortFunc(pools, func(a, b Pool) int { return cmp.Compare(a.Key, b.Key) })
	return pools
}

// daemons are what the DaemonSets of the cluster would run on a new node.
func (c *Controller) daemons() []Daemon {
	var all []Daemon
	for _, set := range list[*appsv1.DaemonSet](c.stores.daemons.List()) {
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = set.Namespace, set.Name
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: set.Name, UID: set.UID}}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, daemonTolerations...)
		all = append(all, Daemon{Owner: set.UID, Pod: fit.NewPod(pod, nil)})
	}
	slices.SortFunc(all, func(a, b Daemon) int { return cmp.Compare(a.Pod.Name(), b.Pod.Name()) })
	return all
}

// daemonTolerations are what every pod of a DaemonSet is given.
var daemonTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

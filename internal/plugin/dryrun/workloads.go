// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/evenkeel/evenkeel/internal/requeue"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer"
	balancerplan "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/release"
	releaseplan "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

func (w *world) lookAtBalancers(ctx context.Context) error {
	w.plans.balancer = map[string]balancerPlan{}
	if len(w.balancers) == 0 {
		return nil
	}
	if !w.still.seesWorkloads() {
		w.addNote("Balancers are omitted: the pods or autoscalers of their targets could not be read")
		return nil
	}
	objects, err := w.balancerObjects()
	if err != nil {
		return err
	}
	if err := w.shares.SetObjects(objects, w.now); err != nil {
		return err
	}
	for key, b := range w.balancers {
		v, p, ok, err := w.shares.Plan(ctx, b.Namespace, b.Name)
		if err != nil {
			return err
		}
		if ok {
			w.plans.balancer[key] = balancerPlan{v, p}
		}
	}
	return nil
}

// balance carries out the writes of Balancers to their targets.
func (w *world) balance(ctx context.Context) (moved bool, again time.Duration, err error) {
	if err := w.lookAtBalancers(ctx); err != nil {
		return false, 0, err
	}
	for _, key := range slices.Sorted(maps.Keys(w.plans.balancer)) {
		v, p := w.plans.balancer[key].View, w.plans.balancer[key].Plan
		after, asks := v.After(p)
		w.balancers[key] = after
		blocked := map[string]bool{}
		for _, s := range p.Shares {
			blocked[s.Name] = s.Blocked()
		}
		for _, ask := range asks {
			w.scaleWorkload(ask, blocked[ask.Target])
			moved = true
		}
		again = requeue.Sooner(again, p.Again)
	}
	return moved, again, nil
}

func (w *world) balancerObjects() (balancer.Objects, error) {
	o := balancer.Objects{
		Balancers: w.balancers.sorted(), Pods: w.own.sorted(), Nodes: w.ownNodes.sorted(), Autoscalers: w.still.Autoscalers,
		Workloads: map[schema.GroupVersionResource][]*unstructured.Unstructured{},
	}
	for resource, objects := range w.workloads {
		o.Workloads[resource] = objects.sorted()
	}
	for _, b := range o.Balancers {
		for _, resource := range w.shares.Resources(b) {
			if resource.Group != machine.GroupName || o.Workloads[resource] != nil {
				continue
			}
			objects, err := w.untyped(resource)
			if err != nil {
				return balancer.Objects{}, err
			}
			o.Workloads[resource] = objects
		}
	}
	return o, nil
}

// untyped returns machine-controller-manager's objects as a Balancer sees them.
func (w *world) untyped(resource schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	switch resource.Resource {
	case "machinedeployments":
		return untyped("MachineDeployment", w.deployments.sorted())
	case "machinesets":
		return untyped("MachineSet", w.sets.sorted())
	case "machines":
		return untyped("Machine", w.machines.sorted())
	}
	return nil, nil
}

func untyped[T metav1.Object](kind string, objects []T) ([]*unstructured.Unstructured, error) {
	all := []*unstructured.Unstructured{}
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("convert %s %s: %w", kind, keyOf(o), err)
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(machine.SchemeGroupVersion.WithKind(kind))
		all = append(all, u)
	}
	return all, nil
}

// scaleWorkload gives a workload as many replicas as a Balancer requests.
func (w *world) scaleWorkload(ask balancerplan.Ask, blocked bool) {
	key := ask.Object.Namespace + "/" + ask.Object.Name
	switch ask.Object.Resource.GroupResource() {
	case machine.Resource("machinedeployments"):
		if d := w.deployments[key]; d != nil {
			d = d.DeepCopy()
			d.Spec.Replicas = int32(ask.To)
			w.putDeployment(d)
		}
		return
	case machine.Resource("machinesets"):
		if set := w.sets[key]; set != nil {
			set = set.DeepCopy()
			set.Spec.Replicas = int32(ask.To)
			w.sets[key] = set
		}
		return
	}
	object := w.workloads[ask.Object.Resource][key]
	if object == nil {
		return
	}
	object = object.DeepCopy()
	set := func(value int64, fields ...string) { _ = unstructured.SetNestedField(object.Object, value, fields...) } // a map at every level
	set(ask.To, "spec", "replicas")
	set(ask.To, "status", "replicas")
	if !blocked {
		set(ask.To, "status", "readyReplicas")
		set(ask.To, "status", "availableReplicas")
	}
	object.SetResourceVersion(w.version())
	w.workloads[ask.Object.Resource][key] = object
	w.resizePods(object, int(ask.To-ask.From), blocked)
}

// resizePods creates pods of a workload, or deletes some: pods that are not ready first, then the
// newest.
func (w *world) resizePods(object *unstructured.Unstructured, more int, blocked bool) {
	if more < 0 {
		pods := w.podsOf(object)
		slices.SortFunc(pods, func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(deletionRank(a), deletionRank(b)), b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		})
		for _, pod := range pods[:min(-more, len(pods))] {
			delete(w.own, keyOf(pod))
		}
	}
	template, _, _ := unstructured.NestedMap(object.Object, "spec", "template")
	model := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, model); err != nil {
		w.addNote("the template of %s %s cannot be read, so the prediction omits its pods", object.GetKind(), keyOf(object))
		return
	}
	for range w.followed(object.GetKind(), keyOf(object), more) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName() + "-new-" + w.version(), CreationTimestamp: metav1.NewTime(w.now),
			Labels: maps.Clone(model.Labels),
		}, Spec: model.Spec}
		pod.UID = types.UID(pod.Name)
		pod.Status.Phase = corev1.PodPending
		if !blocked {
			now := metav1.NewTime(w.now)
			pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}
		}
		w.own[keyOf(pod)] = pod
	}
}

// maxMade limits how many pods and machines a prediction creates in total: each takes a few KiB,
// and users can write any number of replicas.
const maxMade = 2_000

// followed returns how many more of the requested objects can be created within the limit.
func (w *world) followed(kind, key string, more int) int {
	room := max(0, maxMade-w.begun)
	if more > room {
		w.addNote("%s %s requests more replicas than plan can predict: %d pods and machines in total", kind, key, maxMade)
	}
	more = max(0, min(more, room))
	w.begun += more
	return more
}

// deletionRank puts pods that are not ready first.
func deletionRank(pod *corev1.Pod) int {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return 1
		}
	}
	return 0
}

// podsOf returns the live pods that a workload selects.
func (w *world) podsOf(object *unstructured.Unstructured) []*corev1.Pod {
	raw, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	parsed := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, parsed); err != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(parsed)
	if err != nil || selector.Empty() {
		return nil
	}
	var all []*corev1.Pod
	for _, pod := range w.own {
		if pod.Namespace == object.GetNamespace() && pod.DeletionTimestamp == nil && selector.Matches(labels.Set(pod.Labels)) {
			all = append(all, pod)
		}
	}
	return all
}

func (w *world) lookAtPods() error {
	if w.release == nil {
		return nil
	}
	err := w.release.SetObjects(release.Objects{
		Deployments: w.deployments.sorted(), Sets: w.sets.sorted(), Machines: w.machines.sorted(), MachineClasses: w.still.Classes,
		Pods: w.pods.sorted(), Nodes: w.nodes.sorted(), Claims: w.still.Claims, Volumes: w.still.Volumes,
		Classes: w.still.storageClasses(), Drivers: w.still.Drivers, Daemons: w.still.Daemons, ReplicaSets: w.still.ReplicaSets, Jobs: w.still.Jobs, PodGroups: w.still.PodGroups,
		Slices: w.still.Slices, DeviceClasses: w.still.DeviceClasses, DeviceClaims: w.still.DeviceClaims, ClaimTemplates: w.still.ClaimTemplates,
	}, w.now)
	if err != nil {
		return err
	}
	w.plans.release = w.release.Plan()
	return nil
}

// releaseForPods carries out the releases for waiting pods and binds them.
func (w *world) releaseForPods(context.Context) (moved bool, again time.Duration, err error) {
	if err := w.lookAtPods(); err != nil {
		return false, 0, err
	}
	for _, r := range w.plans.release.Raises {
		w.putDeployment(r.After(w.deployments[r.Pool.Key]))
		w.bindTo(r)
		moved = true
	}
	return moved, 0, nil
}

// bindTo binds the pods of a raise to the machines that are released for them.
func (w *world) bindTo(r releaseplan.Raise) {
	for i, key := range r.For {
		pod := w.pods[key]
		if pod == nil || len(r.Machines) == 0 {
			continue
		}
		if name := r.Pool.NodeOf[r.Machines[i*len(r.Machines)/len(r.For)]]; name != "" {
			w.bindPod(pod, name)
		}
	}
}

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

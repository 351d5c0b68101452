// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// errBehind ends a sync: a cache does not show our last write yet, or is still filling. Its next
// event causes the next sync.
var errBehind = errors.New("a cache is behind")

// observe builds the view of a Balancer. wait is the time until the next sync for changes that no
// watch reports.
func (c *Controller) observe(ctx context.Context, b *v1alpha1.Balancer) (v plan.View, wait time.Duration, err error) {
	v = plan.View{Now: c.clock.Now(), Back: c.cluster.Back(), Balancer: b}
	v.Rival, v.Contested = c.olderRival(b)
	var seen []look
	for _, spec := range b.Spec.Targets {
		t, l, again, err := c.target(ctx, b, spec)
		if err != nil {
			return plan.View{}, 0, err
		}
		wait = requeue.Sooner(wait, again)
		v.Targets, seen = append(v.Targets, t), append(seen, l)
	}
	own, err := metav1.LabelSelectorAsSelector(&b.Spec.Selector)
	if err != nil || own.Empty() {
		own = labels.Nothing()
	}
	c.lookAround(b, own, v.Targets, seen, &v)
	v.Autoscaler = c.autoscaled(b, own)
	return v, wait, nil
}

// look defines how the replicas of a target are selected; the zero value selects none.
type look struct {
	pods, machines labels.Selector
	from           *kindCache
}

// target observes one target. A problem with it becomes a Hold; only a cache that is behind is an
// error.
func (c *Controller) target(ctx context.Context, b *v1alpha1.Balancer, spec v1alpha1.BalancerTarget) (plan.Target, look, time.Duration, error) {
	t := plan.Target{Spec: spec}
	resource, hold, again := c.resource(ctx, spec.ScaleTargetRef)
	if t.Hold = hold; hold != (plan.Hold{}) {
		return t, look{}, again, nil
	}
	object, found, late, err := c.cachedObject(ctx, resource, b.Namespace, spec.ScaleTargetRef.Name)
	switch {
	case err != nil:
		return t, look{}, 0, err
	case late:
		t.Hold = polling("OutOfReach", fmt.Sprintf("%s cannot be watched: allow the controller to list and watch them", resource.GroupResource()))
		return t, look{}, 0, nil
	case !found:
		t.Absent = true
		t.Hold = polling("NotFound", fmt.Sprintf("%s %s does not exist: create it, or remove the target", spec.ScaleTargetRef.Kind, spec.ScaleTargetRef.Name))
		return t, look{}, 0, nil
	}
	t.Object = plan.Object{Resource: resource, Namespace: b.Namespace, Name: object.GetName(), Version: object.GetResourceVersion()}
	return c.inspect(ctx, t, object)
}

// inspect reads a target's object.
func (c *Controller) inspect(ctx context.Context, t plan.Target, object *unstructured.Unstructured) (plan.Target, look, time.Duration, error) {
	s, err := c.scaleOf(ctx, t.Object.Resource, object)
	if err != nil {
		t.Hold = polling("OutOfReach", err.Error())
		return t, look{}, kindMissing, nil
	}
	t.Known, t.Current, t.Object.Version = true, max(0, s.replicas), s.version
	t.Settling, t.Capped, t.AnyMayGo = settling(object), capped(t.Object.Resource, object), isParallel(t.Object.Resource, object)
	t.Hold = c.otherWriter(t, object)
	if what, again := c.refusals.holdOff(t.Object.ID(), c.clock.Now()); what != "" {
		t.Hold = plan.Hold{Phase: v1alpha1.PhaseReplicaCountWrites, Reason: reasonRefused, Message: what}
		return c.countReplicas(ctx, t, s, object, again)
	}
	return c.countReplicas(ctx, t, s, object, 0)
}

// countReplicas counts the replicas with the observer of the target.
func (c *Controller) countReplicas(ctx context.Context, t plan.Target, s scale, object *unstructured.Unstructured, again time.Duration) (plan.Target, look, time.Duration, error) {
	var l look
	o, err := observer(t, s)
	switch {
	case err != nil:
	case o == v1alpha1.PodsObserver:
		l.pods, err = labels.Parse(s.selector)
	case o == v1alpha1.MachinesObserver:
		t.AnyMayGo, t.Machines = true, true
		if l.machines, err = machineSelector(object); err != nil {
			break
		}
		l.from = c.watches.cacheFor(ctx, t.Object.Resource.GroupVersion().WithResource("machines"))
		if ready, late := l.from.isReady(c.clock.Now()); !ready {
			if !late {
				return t, l, 0, errBehind
			}
			err = errors.New("machines cannot be watched: allow the controller to list and watch them")
		}
	default:
		t.Counted, t.Counts = true, s.counts
	}
	if isEmptySelector(l.pods) || isEmptySelector(l.machines) {
		err = errors.New("its selector is empty and would match all pods: give the workload a selector, or set the target's observer to Status")
	}
	if err != nil {
		l = look{}
		t.Counted, t.Counts = true, s.counts
		if t.Hold == (plan.Hold{}) {
			t.Hold = plan.Hold{Phase: v1alpha1.PhasePodListing, Reason: "NotObservable", Message: err.Error()}
		}
	}
	return t, l, again, nil
}

func isEmptySelector(s labels.Selector) bool { return s != nil && s.Empty() }

// lookAround fills in the replicas of all targets, and records which events matter for this
// Balancer.
func (c *Controller) lookAround(b *v1alpha1.Balancer, own labels.Selector, targets []plan.Target, looks []look, v *plan.View) {
	interests := []labels.Selector{own}
	var pods []labels.Selector
	for i, l := range looks {
		switch t := &targets[i]; {
		case l.pods != nil:
			interests, pods = append(interests, l.pods), append(pods, l.pods)
			strange := ""
			for _, pod := range selected[*cachedPod](c.pods, b.Namespace, l.pods) {
				if pod.counts {
					t.Replicas = append(t.Replicas, pod.replica.OnNode(c.readinessOf(pod.node)))
					t.NoCPU, t.NoMemory = t.NoCPU || !pod.requestsCPU, t.NoMemory || !pod.requestsMemory
					if !own.Matches(labels.Set(pod.Labels)) && (strange == "" || pod.Name < strange) {
						strange = pod.Name
					}
				}
			}
			if strange != "" && t.Hold == (plan.Hold{}) {
				t.Hold = plan.Hold{Phase: v1alpha1.PhasePodLabelsChecking, Reason: "LabelsDiffer",
					Message: "spec.selector does not match some of its pods: add the labels of spec.selector to its pod template"}
			}
		case l.machines != nil:
			interests = append(interests, l.machines)
			for _, machine := range selected[*unstructured.Unstructured](l.from.informer.GetIndexer(), b.Namespace, l.machines) {
				if r, ok := plan.MachineReplica(machine); ok {
					t.Replicas = append(t.Replicas, r)
				}
			}
		}
	}
	c.interests.setSelectors(b.Namespace, b.Name, interests)
	if v.Foreign, v.Shared = c.strays(b.Namespace, own, pods); slices.ContainsFunc(targets, unseen) {
		v.Foreign = 0 // they may belong to a target whose pods are unknown
	}
}

func unseen(t plan.Target) bool { return !t.Known || t.Counted }

// strays counts pods that an autoscaler would see although they belong to no target, and pods that
// belong to several targets.
func (c *Controller) strays(namespace string, own labels.Selector, targets []labels.Selector) (foreign, shared int) {
	for _, pod := range selected[*cachedPod](c.pods, namespace, own) {
		if !pod.counts {
			continue
		}
		n := 0
		for _, selector := range targets {
			if selector.Matches(labels.Set(pod.Labels)) {
				n++
			}
		}
		switch {
		case n == 0:
			foreign++
		case n > 1:
			shared++
		}
	}
	return foreign, shared
}

// resource returns the resource of a target, or why there is none.
func (c *Controller) resource(ctx context.Context, ref v1alpha1.ScaleTargetReference) (schema.GroupVersionResource, plan.Hold, time.Duration) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if gvk.Version == "" {
		gvk.Version = "v1"
	}
	if !c.allowed[gvk.GroupKind()] {
		return schema.GroupVersionResource{}, polling("KindNotAllowed", fmt.Sprintf("this controller is not allowed to scale %s: use another workload, or allow the kind with --balancer-kinds", gvk.GroupKind())), 0
	}
	resource, err := c.kinds.resourceFor(ctx, gvk)
	switch {
	case errors.Is(err, errNoScale):
		return resource, polling("NotScalable", fmt.Sprintf("%s has no scale subresource: use another workload", gvk.GroupKind())), kindsLast
	case errors.Is(err, errNoKind):
		return resource, polling("NoSuchKind", fmt.Sprintf("the cluster does not serve %s: correct apiVersion and kind", gvk)), kindMissing
	case err != nil:
		return resource, polling("OutOfReach", err.Error()), kindMissing
	}
	return resource, plan.Hold{}, 0
}

// cachedObject finds an object in the cache of its resource. late reports that the cache does not
// fill.
func (c *Controller) cachedObject(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (object *unstructured.Unstructured, found, late bool, err error) {
	k := c.watches.cacheFor(ctx, resource)
	if ready, late := k.isReady(c.clock.Now()); !ready {
		if late {
			return nil, false, true, nil
		}
		return nil, false, false, errBehind
	}
	item, found, err := k.informer.GetIndexer().GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return nil, false, false, err
	}
	object, ok := item.(*unstructured.Unstructured)
	if ok && !k.written.UpToDate(object) {
		return nil, false, false, errBehind
	}
	return object, ok && object.GetDeletionTimestamp() == nil, false, nil
}

func polling(reason, message string) plan.Hold {
	return plan.Hold{Phase: v1alpha1.PhaseScaleSubresource, Reason: reason, Message: message}
}

// settling reports whether the workload's controller has yet to observe the latest spec.
func settling(object *unstructured.Unstructured) bool {
	observed, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	return err == nil && found && observed < object.GetGeneration()
}

// isParallel reports whether a workload is a StatefulSet that deletes pods by their ordinals alone.
// Others delete no pod while one that stays is not ready.
func isParallel(resource schema.GroupVersionResource, object *unstructured.Unstructured) bool {
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "podManagementPolicy")
	return resource.Group == appsv1.GroupName && policy == string(appsv1.ParallelPodManagement)
}

// capped reports whether machine-controller-manager has frozen a machine workload: then it creates
// no machines for it. A paused one can still be scaled.
func capped(resource schema.GroupVersionResource, object *unstructured.Unstructured) bool {
	return resource.Group == machineGroup && frozen(object)
}

// conditionFrozen is the type of a condition of machine-controller-manager.
const conditionFrozen = "Frozen"

func frozen(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == conditionFrozen && c["status"] == "True" {
			return true
		}
	}
	return false
}

// byLabel indexes objects by each of their labels and by their namespace, so that a selector reads
// only objects that are likely to match.
const byLabel = "label"

func indexByLabel(item any) ([]string, error) {
	object, err := meta.Accessor(item)
	if err != nil {
		return nil, err
	}
	keys := append(make([]string, 0, 1+len(object.GetLabels())), namespaceKey(object.GetNamespace()))
	for name, value := range object.GetLabels() {
		keys = append(keys, labelKey(object.GetNamespace(), name, value))
	}
	return keys, nil
}

func namespaceKey(namespace string) string { return namespace + "/" }

func labelKey(namespace, name, value string) string { return namespace + "/" + name + "=" + value }

// selected returns the objects of a namespace that match a selector.
func selected[T metav1.Object](index cache.Indexer, namespace string, selector labels.Selector) []T {
	var found []T
	for _, item := range candidates(index, namespace, selector) {
		object, ok := item.(T)
		if ok && object.GetNamespace() == namespace && selector.Matches(labels.Set(object.GetLabels())) {
			found = append(found, object)
		}
	}
	return found
}

// candidates returns all objects with one of the labels that the selector requires, the rarest of
// them. If the selector requires no label with a given value, it returns all objects of the
// namespace.
func candidates(index cache.Indexer, namespace string, selector labels.Selector) []any {
	best, count := namespaceKey(namespace), -1
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if r.Operator() != selection.Equals && r.Operator() != selection.In || r.Values().Len() != 1 {
			continue
		}
		key := labelKey(namespace, r.Key(), r.Values().UnsortedList()[0])
		keys, err := index.IndexKeys(byLabel, key)
		if err == nil && (count < 0 || len(keys) < count) {
			best, count = key, len(keys)
		}
	}
	items, _ := index.ByIndex(byLabel, best)
	return items
}

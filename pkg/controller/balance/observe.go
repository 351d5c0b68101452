// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/storage"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// stores are the caches. Those of the target cluster are nil where there is none.
type stores struct {
	deployments, sets, machines, classes cache.Indexer
	nodes, pods, budgets                 cache.Indexer
	storage                              storage.Stores
}

// observe gathers the view. current is false while a cache does not show all that we wrote.
func (c *Controller) observe() (v View, current bool) {
	v = View{Now: c.clock.Now(), Settings: c.options.Settings, Garden: c.garden.look(), Memory: c.memory}
	c.written.Keep(func(name string) bool {
		return found[v1alpha1.MachineDeployment](c.stores.deployments, c.options.Namespace+"/"+name) != nil
	})
	machines, sets := c.machines()
	moving := false
	for _, d := range listed[v1alpha1.MachineDeployment](c.stores.deployments) {
		if !c.written.Seen(d.Name, d.ResourceVersion) {
			return View{}, false
		}
		m := Member{Object: d, Machines: machines[d.Name], Rollout: spread(sets[d.Name]), NoSet: len(sets[d.Name]) == 0}
		v.Members = append(v.Members, m)
		z := read(m, v.Settings)
		moving = moving || z.balanced() || z.move != nil
	}
	slices.SortFunc(v.Members, func(a, b Member) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	c.moving.Store(moving)
	c.templates.fill(v.Members, c.stores, v.Now, v.Settings.Similar)
	switch {
	case !moving:
	case c.stores.nodes == nil:
		v.Unreachable = "there is no target cluster"
	default:
		if err := c.options.Target.Err(c.stores.nodes, c.stores.pods, c.stores.budgets); err != nil {
			v.Unreachable = err.Error()
		}
		c.lookAround(&v)
	}
	return v, true
}

// listed are the objects of a cache.
func listed[T any](store cache.Indexer) []*T {
	if store == nil {
		return nil
	}
	items := store.List()
	all := make([]*T, 0, len(items))
	for _, item := range items {
		if o, ok := item.(*T); ok {
			all = append(all, o)
		}
	}
	return all
}

// found is an object of a cache by its key, nil where there is none.
func found[T any](store cache.Indexer, key string) *T {
	if store == nil {
		return nil
	}
	item, _, _ := store.GetByKey(key)
	o, _ := item.(*T)
	return o
}

// spread reports whether more than one MachineSet is in use.
func spread(sets []*mcm.MachineSet) bool {
	staying := map[string]int{}
	for _, set := range sets {
		staying[set.Name] = int(set.Status.Replicas)
	}
	return pool.Spread(sets, staying)
}

// machines are those of each MachineDeployment, by its name, sorted by theirs, and its MachineSets.
func (c *Controller) machines() (machines map[string][]Machine, sets map[string][]*mcm.MachineSet) {
	machines, sets = map[string][]Machine{}, map[string][]*mcm.MachineSet{}
	owners := map[string]string{}
	for _, set := range listed[mcm.MachineSet](c.stores.sets) {
		if owner := metav1.GetControllerOf(set); owner != nil {
			owners[set.Name] = owner.Name
			sets[owner.Name] = append(sets[owner.Name], set)
		}
	}
	for _, m := range listed[mcm.Machine](c.stores.machines) {
		if set := metav1.GetControllerOf(m); set != nil {
			owner := owners[set.Name]
			machines[owner] = append(machines[owner], Machine{Object: m})
		}
	}
	for _, all := range machines {
		slices.SortFunc(all, func(a, b Machine) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	}
	return machines, sets
}

// lookAround fills in pods, and where they are. That is much to read, and only done while somebody grows, is uneven or
// has a move under way.
func (c *Controller) lookAround(v *View) {
	if !stirring(*v) {
		return
	}
	lookups := c.stores.storage.Lookups()
	pods := map[string][]*fit.Pod{}
	for _, pod := range listed[corev1.Pod](c.stores.pods) {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		case pod.Spec.NodeName != "":
			pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], fit.NewPod(pod, lookups))
		case waits(pod):
			v.Waiting = append(v.Waiting, fit.NewPod(pod, lookups))
		}
	}
	for _, node := range listed[corev1.Node](c.stores.nodes) {
		v.Nodes = append(v.Nodes, fit.Node{Object: node, Pods: pods[node.Name]})
	}
	slices.SortFunc(v.Waiting, func(a, b *fit.Pod) int { return cmp.Compare(a.Name(), b.Name()) })
	slices.SortFunc(v.Nodes, func(a, b fit.Node) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	for i := range v.Members {
		for j := range v.Members[i].Machines {
			m := &v.Members[i].Machines[j]
			m.Pods = slices.DeleteFunc(slices.Clone(pods[m.Object.Labels[mcm.NodeLabelKey]]), func(p *fit.Pod) bool { return stayAtHome(p.Object) })
		}
	}
	v.Budgets = budgets(c.stores)
}

// waits says that a pod found no node, and is not about to get one.
func waits(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.NominatedNodeName != "" {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// stayAtHome says that a pod is not moved with its machine: it is a DaemonSet's or a mirror pod.
func stayAtHome(pod *corev1.Pod) bool {
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

func budgets(s stores) []Budget {
	var all []Budget
	for _, b := range listed[policyv1.PodDisruptionBudget](s.budgets) {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil {
			all = append(all, Budget{Namespace: b.Namespace, Name: b.Name, Selector: selector, Allowed: int(b.Status.DisruptionsAllowed)})
		}
	}
	slices.SortFunc(all, func(a, b Budget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

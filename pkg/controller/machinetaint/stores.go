// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"errors"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// Indices of the stores.
const (
	byOwner = "owner" // the uid of the controlling owner
	byNode  = "node"  // the name of the Node
	// byReadiness has one value, unreadyNode, for the Nodes that are not ready.
	byReadiness = "readiness"
	unreadyNode = "unready"
)

// stores are what is known of both clusters. Those of the target cluster are nil where there is none.
type stores struct {
	deployments, sets, machines, classes cache.Indexer
	nodes, pods                          cache.Indexer
	// seen are those of machine-controller-manager's controllers, which write into the specs there: only metadata, status
	// and replicas may be read.
	seenMachines, seenSets cache.Indexer
}

// attach reads and listens to the shared informers.
func (c *Controller) attach(i Informers) error {
	own := cache.Indexers{byOwner: indexByOwner}
	machines := cache.Indexers{byOwner: indexByOwner, byNode: indexByNodeLabel}
	m := i.Machine
	all := []subscription{
		{m.MachineDeployments().Informer(), nil, nil, c.deploymentChanged, &c.stores.deployments},
		{m.MachineSets().Informer(), own, nil, c.setChanged, &c.stores.sets},
		{m.Machines().Informer(), machines, nil, c.machineChanged, &c.stores.machines},
		{m.MachineClasses().Informer(), nil, nil, nil, &c.stores.classes},
		{i.Seen.Machines().Informer(), own, nil, c.seenMachineChanged, &c.stores.seenMachines},
		{i.Seen.MachineSets().Informer(), own, nil, c.seenSetChanged, &c.stores.seenSets},
	}
	if i.Nodes != nil {
		all = append(all,
			subscription{i.Nodes.Informer(), cache.Indexers{byReadiness: indexByReadiness}, stripNode, c.nodeChanged, &c.stores.nodes},
			subscription{i.Pods.Informer(), cache.Indexers{byNode: indexByNodeName}, c.stripPod, c.podChanged, &c.stores.pods})
	}
	var errs []error
	for _, s := range all {
		errs = append(errs, s.attach())
		c.filled = append(c.filled, s.informer.HasSyncedChecker())
		if s.store != &c.stores.seenMachines && s.store != &c.stores.seenSets {
			c.raw = append(c.raw, s.informer.HasSyncedChecker())
		}
	}
	return errors.Join(errs...)
}

// subscription is what is wanted of one informer.
type subscription struct {
	informer  cache.SharedIndexInformer
	indexers  cache.Indexers
	transform cache.TransformFunc
	changed   func(was, is any)
	store     *cache.Indexer
}

func (s subscription) attach() error {
	*s.store = s.informer.GetIndexer()
	errs := []error{s.informer.AddIndexers(s.indexers)}
	if s.transform != nil {
		errs = append(errs, s.informer.SetTransform(s.transform))
	}
	if s.changed != nil {
		_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(is any) { s.changed(nil, is) },
			UpdateFunc: s.changed,
			DeleteFunc: func(was any) {
				if gone, ok := was.(cache.DeletedFinalStateUnknown); ok {
					was = gone.Obj
				}
				s.changed(was, nil)
			},
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func indexByOwner(item any) ([]string, error) {
	object, err := meta.Accessor(item)
	if err != nil {
		return nil, nil
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

func indexByNodeLabel(item any) ([]string, error) {
	m, ok := item.(*mcm.Machine)
	if !ok || m.Labels[mcm.NodeLabelKey] == "" {
		return nil, nil
	}
	return []string{m.Labels[mcm.NodeLabelKey]}, nil
}

func indexByReadiness(item any) ([]string, error) {
	if node, ok := item.(*corev1.Node); ok && signs.Unready(node) {
		return []string{unreadyNode}, nil
	}
	return nil, nil
}

func indexByNodeName(item any) ([]string, error) {
	pod, ok := item.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return nil, nil
	}
	return []string{pod.Spec.NodeName}, nil
}

// owned returns what an object controls, sorted by name.
func owned[T metav1.Object](store cache.Indexer, owner metav1.Object) []T {
	items, _ := store.ByIndex(byOwner, string(owner.GetUID())) // the index is there
	all := make([]T, 0, len(items))
	for _, item := range items {
		if object, ok := item.(T); ok && object.GetNamespace() == owner.GetNamespace() {
			all = append(all, object)
		}
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

func find[T any](store cache.Indexer, key string) (T, bool) {
	var none T
	item, found, err := store.GetByKey(key)
	if err != nil || !found {
		return none, false
	}
	object, ok := item.(T)
	return object, ok
}

func (s stores) deployment(key string) (*v1alpha1.MachineDeployment, bool) {
	return find[*v1alpha1.MachineDeployment](s.deployments, key)
}

// deploymentOf finds the key of the MachineDeployment of a Machine by way of its MachineSet.
func (s stores) deploymentOf(m *mcm.Machine) (string, bool) {
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil || owner.Kind != "MachineSet" {
		return "", false
	}
	set, found := find[*mcm.MachineSet](s.sets, m.Namespace+"/"+owner.Name)
	if !found {
		return "", false
	}
	return keyOfSet(set)
}

func keyOfSet(set *mcm.MachineSet) (string, bool) {
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil || owner.Kind != "MachineDeployment" {
		return "", false
	}
	return set.Namespace + "/" + owner.Name, true
}

// deploymentsOfNode finds the keys of the MachineDeployments whose Machines name a Node. More than one may: see [signs.IsNodeOf].
func (s stores) deploymentsOfNode(name string) (keys []string) {
	items, _ := s.machines.ByIndex(byNode, name) // the index is there
	for _, item := range items {
		if m, ok := item.(*mcm.Machine); ok {
			if key, found := s.deploymentOf(m); found {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

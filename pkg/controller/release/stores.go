// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/storage"
)

// byNode is the index of pods by the name of the Node that they are on, or have been promised a place on; empty where they wait.
const byNode = stores.ByNode

// caches are what is known of both clusters.
type caches struct {
	deployments, sets, machines, machineClasses cache.Indexer
	pods, nodes, daemons, replicaSets           cache.Indexer
	storage                                     storage.Stores
}

// attach reads and listens to the shared informers.
func (c *Controller) attach(i Informers) error {
	m, s := i.Machines, &c.stores
	core := i.Target.Core().V1()
	var errs []error
	for _, a := range []struct {
		informer  cache.SharedIndexInformer
		store     *cache.Indexer
		indexers  cache.Indexers
		transform cache.TransformFunc
		changed   func(was, is any)
	}{
		{m.MachineDeployments().Informer(), &s.deployments, nil, stripMachine, c.deploymentChanged},
		{m.MachineSets().Informer(), &s.sets, stores.Owned(), stripMachine, nil},
		{m.Machines().Informer(), &s.machines, stores.Machines(), stripMachine, c.somethingChanged},
		{m.MachineClasses().Informer(), &s.machineClasses, nil, stripMachine, nil},
		{core.Pods().Informer(), &s.pods, cache.Indexers{byNode: indexByNode}, stripPod, c.podChanged},
		{core.Nodes().Informer(), &s.nodes, nil, stripNode, c.nodeChanged},
		{core.PersistentVolumeClaims().Informer(), &s.storage.Claims, nil, storage.Strip, c.somethingChanged},
		{core.PersistentVolumes().Informer(), &s.storage.Volumes, nil, storage.Strip, c.somethingChanged},
		{i.Target.Apps().V1().DaemonSets().Informer(), &s.daemons, nil, stripDaemonSet, nil},
	} {
		*a.store = a.informer.GetIndexer()
		errs = append(errs, a.informer.AddIndexers(a.indexers))
		errs = append(errs, a.informer.SetTransform(a.transform))
		if a.changed != nil {
			_, err := a.informer.AddEventHandler(handler(a.changed))
			errs = append(errs, err)
		}
		c.filled = append(c.filled, a.informer.HasSyncedChecker())
	}
	c.source = &stores.Source{Kinds: stores.Kinds{Sets: s.sets, Machines: s.machines, Classes: s.machineClasses, Nodes: s.nodes, Pods: s.pods}}
	errs = append(errs, s.storage.Follow(i.Target, c.rights))
	// Nobody is to wait for these: in some clusters we may not read them, and do without.
	replicaSets := i.Target.Apps().V1().ReplicaSets().Informer()
	s.replicaSets = replicaSets.GetIndexer()
	errs = append(errs, replicaSets.SetTransform(stripSet))
	return errors.Join(errs...)
}

func indexByNode(item any) ([]string, error) {
	if pod, ok := item.(*corev1.Pod); ok {
		if node, lives := placeOf(pod); lives {
			return []string{node}, nil
		}
	}
	return nil, nil
}

// placeOf is the Node that a pod is on, or has been promised a place on; empty where it waits. One that has ended needs none.
func placeOf(pod *corev1.Pod) (node string, lives bool) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return "", false
	}
	return cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName), true
}

// list returns all objects of a kind, or those that an index has under a value.
func list[T any](items []any) []T {
	all := make([]T, 0, len(items))
	for _, item := range items {
		if object, ok := item.(T); ok {
			all = append(all, object)
		}
	}
	return all
}

func indexed[T any](store cache.Indexer, index, value string) []T {
	items, _ := store.ByIndex(index, value) // the index is there
	return list[T](items)
}

// find returns nil where there is no such object.
func find[T any](store cache.Indexer, key string) *T {
	item, _, _ := store.GetByKey(key) // fails for no key
	object, _ := item.(*T)
	return object
}

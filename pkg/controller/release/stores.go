// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
)

// caches are what is known of both clusters.
type caches struct {
	deployments, sets, machines, machineClasses cache.Indexer
	pods, nodes, daemons, replicaSets           cache.Indexer
	storage                                     target.Storage
}

// attach reads and listens to the informers.
func (c *Controller) attach(i Informers) error {
	s := &c.stores
	all := []struct {
		informer cache.SharedIndexInformer
		store    *cache.Indexer
		changed  func(was, is any)
	}{
		{i.Machines.Deployments(), &s.deployments, c.deploymentChanged},
		{i.Machines.Sets(), &s.sets, nil},
		{i.Machines.Machines(), &s.machines, c.somethingChanged},
		{i.Machines.Classes(), &s.machineClasses, nil},
		{i.Target.Pods(), &s.pods, c.podChanged},
		{i.Target.Nodes(), &s.nodes, c.nodeChanged},
		{i.Target.Claims(), &s.storage.Claims, c.somethingChanged},
		{i.Target.Volumes(), &s.storage.Volumes, c.somethingChanged},
		{i.Target.DaemonSets(), &s.daemons, nil},
	}
	for _, a := range all {
		*a.store = a.informer.GetIndexer()
		c.filled = append(c.filled, a.informer.HasSyncedChecker())
	}
	s.storage = i.Target.Storage()
	s.replicaSets = i.Target.ReplicaSets().GetIndexer() // not waited for: some clusters do not let us read them
	c.source = &stores.Source{Kinds: stores.Kinds{Sets: s.sets, Machines: s.machines, Classes: s.machineClasses, Nodes: s.nodes, Pods: s.pods}}
	// Handlers come last: they look into the stores, and are called at once by informers that run already.
	var errs []error
	for _, a := range all {
		if a.changed != nil {
			_, err := a.informer.AddEventHandler(handler(a.changed))
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// placeOf is the Node that a pod is on, or has been promised a place on; empty where it waits. One that has ended needs none.
func placeOf(pod *corev1.Pod) (node string, lives bool) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return "", false
	}
	return cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName), true
}

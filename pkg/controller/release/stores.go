// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"

	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
)

// caches of both clusters.
type caches struct {
	deployments, sets, machines, machineClasses cache.Indexer
	pods, nodes, daemons, replicaSets           cache.Indexer
	jobs                                        cache.Indexer // nil until a pod of one has waited
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
		{i.Machines.Sets(), &s.sets, c.specChanged},
		{i.Machines.Machines(), &s.machines, c.somethingChanged},
		{i.Machines.Classes(), &s.machineClasses, c.somethingChanged},
		{i.Target.Pods(), &s.pods, c.podChanged},
		{i.Target.Nodes(), &s.nodes, c.nodeChanged},
		{i.Target.Claims(), &s.storage.Claims, c.somethingChanged},
		{i.Target.Volumes(), &s.storage.Volumes, c.somethingChanged},
		{i.Target.DaemonSets(), &s.daemons, c.specChanged},
	}
	for _, a := range all {
		*a.store = a.informer.GetIndexer()
		c.filled = append(c.filled, a.informer.HasSyncedChecker())
	}
	s.storage = i.Target.Storage()
	s.replicaSets = i.Target.ReplicaSets().GetIndexer() // not waited for: some clusters do not let us read them
	c.source = &stores.Source{Kinds: stores.Kinds{Sets: s.sets, Machines: s.machines, Classes: s.machineClasses, Nodes: s.nodes}}
	// Handlers come last: they use the stores, and informers that run already call them at once.
	var errs []error
	for _, a := range all {
		_, err := a.informer.AddEventHandler(handlers.OnChange(a.changed))
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.listenToStorage(i.Target))...)
}

// listenToStorage listens to what decides where a volume can be created. It is not waited for: the
// process may lack the right to read it.
func (c *Controller) listenToStorage(i *target.Informers) error {
	var errs []error
	for _, informer := range []cache.SharedIndexInformer{i.StorageClasses(), i.Drivers()} {
		c.optional = append(c.optional, informer.HasSyncedChecker())
		_, err := informer.AddEventHandler(handlers.OnChange(c.somethingChanged))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

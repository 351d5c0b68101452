// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"errors"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// caches of both clusters. Those of the target cluster are nil if there is none.
type caches struct {
	deployments, sets, machines, classes cache.Indexer
	nodes, pods, budgets                 cache.Indexer
	// budgetsUnknown returns why budgets are not known; empty if they are.
	budgetsUnknown func() string
	// Those that machine-controller-manager's controllers see. These controllers write into the
	// specs there, so only metadata, status and replicas may be read.
	seenDeployments, seenMachines, seenSets cache.Indexer
}

// attach reads and listens to the informers.
func (c *Controller) attach(i Informers) error {
	m := i.Machine
	all := []subscription{
		{m.Deployments(), nil, c.deploymentChanged, &c.stores.deployments},
		{m.Sets(), nil, c.setChanged, &c.stores.sets},
		{m.Machines(), nil, c.machineChanged, &c.stores.machines},
		{m.Classes(), nil, c.classChanged, &c.stores.classes},
		{i.Seen.MachineDeployments().Informer(), nil, nil, &c.stores.seenDeployments},
		{i.Seen.Machines().Informer(), stores.OwnerIndex(), c.seenMachineChanged, &c.stores.seenMachines},
		{i.Seen.MachineSets().Informer(), stores.OwnerIndex(), c.seenSetChanged, &c.stores.seenSets},
	}
	if i.Target != nil {
		all = append(all,
			subscription{i.Target.Nodes(), nil, c.nodeChanged, &c.stores.nodes},
			subscription{i.Target.Pods(), nil, c.podChanged, &c.stores.pods})
		c.stores.budgets, c.stores.budgetsUnknown = i.Target.Budgets().GetIndexer(), i.Target.BudgetsUnknown
	}
	var errs []error
	for _, s := range all {
		errs = append(errs, s.addIndexers())
		c.filled = append(c.filled, s.informer.HasSyncedChecker())
		if s.store != &c.stores.seenDeployments && s.store != &c.stores.seenMachines && s.store != &c.stores.seenSets && s.store != &c.stores.pods {
			c.ownStores = append(c.ownStores, s.informer.HasSyncedChecker())
		}
	}
	c.latest = newLatest(&c.stores, c.clock)
	c.guards = &guards{latest: c.latest, states: c.states, clock: c.clock, syncAfter: func(key string, after time.Duration) { c.loop.AddAfter(key, after) }}
	// Handlers come last: they use the stores, and informers that run already call them at once.
	for _, s := range all {
		errs = append(errs, s.listen())
	}
	return errors.Join(errs...)
}

// subscription is what the controller needs of one informer.
type subscription struct {
	informer cache.SharedIndexInformer
	indexers cache.Indexers // nil to add none
	changed  func(was, is any)
	store    *cache.Indexer
}

func (s subscription) addIndexers() error {
	*s.store = s.informer.GetIndexer()
	if s.indexers == nil {
		return nil
	}
	return s.informer.AddIndexers(s.indexers)
}

func (s subscription) listen() error {
	if s.changed == nil {
		return nil
	}
	_, err := s.informer.AddEventHandler(handlers.OnChange(s.changed))
	return err
}

// ownedBy returns what an object controls.
func ownedBy[T metav1.Object](store cache.Indexer, owner metav1.Object) []T {
	return stores.Indexed[T](store, stores.ByOwner, string(owner.GetUID()))
}

func (s caches) deployment(key string) (*v1alpha1.MachineDeployment, bool) {
	d := stores.Find[v1alpha1.MachineDeployment](s.deployments, key)
	return d, d != nil
}

// deploymentOf finds the key of the MachineDeployment of a Machine through its MachineSet.
func (s caches) deploymentOf(m *mcm.Machine) (string, bool) {
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil || owner.Kind != "MachineSet" {
		return "", false
	}
	set := stores.Find[mcm.MachineSet](s.sets, m.Namespace+"/"+owner.Name)
	if set == nil {
		return "", false
	}
	return keyOfSet(set)
}

// keyOf returns the key of an object in stores and queues.
func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func keyOfSet(set *mcm.MachineSet) (string, bool) {
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil || owner.Kind != "MachineDeployment" {
		return "", false
	}
	return set.Namespace + "/" + owner.Name, true
}

// deploymentsOfNode finds the keys of the MachineDeployments whose Machines have this Node name.
// There may be more than one: see [pool.IsNodeOf].
func (s caches) deploymentsOfNode(name string) (keys []string) {
	for _, m := range stores.Indexed[*mcm.Machine](s.machines, stores.ByNode, name) {
		if key, found := s.deploymentOf(m); found {
			keys = append(keys, key)
		}
	}
	return keys
}

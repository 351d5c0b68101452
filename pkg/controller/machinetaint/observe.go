// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"maps"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// observe builds the view of a MachineDeployment. It is false if there is nothing to decide: the
// MachineDeployment is gone or being deleted, or the store does not show our last write yet, and
// its event causes the next sync. If a store is behind, Machines and Nodes are used as the API
// server returned them. Most MachineDeployments of most clusters have no reserve, and every change
// of theirs comes here: for them, only what shows that is read.
func (c *Controller) observe(key string) (View, bool) {
	shown, found := c.stores.deployment(key)
	if !found || shown.DeletionTimestamp != nil {
		c.forget(key)
		c.forgetReduction(key)
		return View{}, false
	}
	d := c.externalUpdates.Newest(shown)
	if !c.written.UpToDate(d) || c.behindSeen(key, d) {
		return View{}, false
	}
	if d == shown {
		c.noteStored(d)
	}
	v := View{Now: c.clock.Now(), Settings: c.settings, Deployment: d, Accounting: c.settings.accountingOf(d)}
	v.Memory, v.Pruned = c.memory(key)
	s := pool.Outline(d, &c.source, v.Now)
	if v.Machines = withoutPriorities(s.Machines); hasNoReserve(v, desiredReserve(v)) {
		return v, true
	}
	s.Complete(&c.source)
	v.Machines = c.withPriorities(s.Machines)
	v.CurrentSet, v.Rollout, v.Allocatable = s.Rollout.Set, s.Rollout.Replacing, s.Allocatable
	v.SetReplicas, v.MaxSetReplicas, v.Behind = c.compareSeen(d, v.Machines)
	v.Unreachable, v.Unhealthy = c.unreachable(), c.unhealthy()
	v.AllLeaving = c.allLeaving(d, s.Machines)
	return v, true
}

func withoutPriorities(machines []pool.Machine) []Machine {
	all := make([]Machine, len(machines))
	for i, m := range machines {
		all[i].Machine = m
	}
	return all
}

// behindSeen reports whether machine-controller-manager has seen a later version of a
// MachineDeployment: it may have acted on that, and the machines that it deletes for lower replicas
// must not be replaced. The event of that version causes the next sync.
func (c *Controller) behindSeen(key string, d *v1alpha1.MachineDeployment) bool {
	return c.laterSeen(key, d) != nil
}

// laterSeen returns the later version of a MachineDeployment that machine-controller-manager has
// seen, nil if there is none.
func (c *Controller) laterSeen(key string, d *v1alpha1.MachineDeployment) *mcm.MachineDeployment {
	seen := stores.Find[mcm.MachineDeployment](c.stores.seenDeployments, key)
	if seen == nil {
		return nil
	}
	if order, err := resourceversion.CompareResourceVersion(d.ResourceVersion, seen.ResourceVersion); err != nil || order >= 0 {
		return nil
	}
	return seen
}

// withPriorities adds the priorities that machine-controller-manager's store shows.
func (c *Controller) withPriorities(machines []pool.Machine) []Machine {
	all := withoutPriorities(machines)
	for i, m := range all {
		shown := m.Object
		if seen := stores.Find[mcm.Machine](c.stores.seenMachines, shown.Namespace+"/"+shown.Name); seen != nil {
			shown = seen
		}
		all[i].SeenPriority = signs.Priority(shown)
	}
	return all
}

// memory returns what is remembered of a MachineDeployment, and whether the API server drops
// spec.excessReplicas.
func (c *Controller) memory(key string) (m Memory, pruned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reductionOf(key, 0) // forgets
	return c.memories[key], c.pruned
}

// noteStored records what the store shows of a MachineDeployment that this controller wrote.
func (c *Controller) noteStored(d *v1alpha1.MachineDeployment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.Spec.ExcessReplicas != nil {
		c.pruned = false
	}
}

// unreachable returns why the target cluster does not respond, or that its caches have yet to show
// what happened meanwhile.
func (c *Controller) unreachable() string {
	if c.stores.nodes == nil {
		return ""
	}
	if err := c.cluster.Err(c.stores.nodes, c.stores.pods); err != nil {
		return err.Error()
	}
	return ""
}

// unhealthy reports whether many Nodes of the target cluster are not ready, whatever they belong
// to.
func (c *Controller) unhealthy() bool {
	if c.stores.nodes == nil {
		return false
	}
	unready, _ := c.stores.nodes.IndexKeys(target.ByReadiness, target.Unready) // the index is there
	return signs.Unhealthy(len(unready), len(c.stores.nodes.ListKeys()))
}

// compareSeen compares with what machine-controller-manager has seen.
func (c *Controller) compareSeen(d *v1alpha1.MachineDeployment, machines []Machine) (wanted, asked int, behind bool) {
	there := map[types.UID]bool{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, set := range ownedBy[*mcm.MachineSet](c.stores.seenSets, d) {
		least, most := c.replicasOf(set)
		wanted, asked = wanted+least, asked+most
		for _, m := range ownedBy[*mcm.Machine](c.stores.seenMachines, set) {
			there[m.UID] = pool.BeingDeleted(m)
		}
	}
	here := map[types.UID]bool{}
	for _, m := range machines {
		here[m.Object.UID] = pool.BeingDeleted(m.Object)
	}
	return wanted, asked, !maps.Equal(there, here)
}

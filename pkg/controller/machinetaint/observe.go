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

// observe gathers the view of a MachineDeployment. It is false where there is nothing to decide: it is gone or going,
// or the store does not yet show what we wrote of it, and its event will bring the next look. Machines and Nodes are taken
// as we were answered where the store is behind that. Most MachineDeployments of most clusters have no reserve, and every
// change of theirs comes here: for them no more is gathered than shows that.
func (c *Controller) observe(key string) (View, bool) {
	shown, found := c.stores.deployment(key)
	if !found || shown.DeletionTimestamp != nil {
		c.forget(key)
		c.forgetReduction(key)
		return View{}, false
	}
	d := c.told.Newest(shown)
	if !c.written.Seen(d) || c.behindSeen(key, d) {
		return View{}, false
	}
	if d == shown {
		c.settle(d)
	}
	v := View{Now: c.clock.Now(), Settings: c.settings, Deployment: d, Accounting: c.settings.accounting(d)}
	v.Memory, v.Pruned = c.memory(key)
	s := pool.Outline(d, &c.source, v.Now)
	if v.Machines = withoutPriorities(s.Machines); idle(v, wishOf(v)) {
		return v, true
	}
	s.Complete(&c.source)
	v.Machines = c.withPriorities(s.Machines)
	v.CurrentSet, v.Rollout, v.Allocatable = s.Rollout.Set, s.Rollout.Replacing, s.Allocatable
	v.Wanted, v.Asked, v.Behind = c.seen(d, v.Machines)
	v.Unreachable, v.Unhealthy = c.unreachable(), c.unhealthy()
	v.Asleep = c.asleep(d, s.Machines)
	return v, true
}

func withoutPriorities(machines []pool.Machine) []Machine {
	all := make([]Machine, len(machines))
	for i, m := range machines {
		all[i].Machine = m
	}
	return all
}

// behindSeen reports whether machine-controller-manager has seen a later version of a MachineDeployment: it may have acted on that, and
// the machines that it deletes for lower replicas are not to be replaced. The event of that version brings the next look.
func (c *Controller) behindSeen(key string, d *v1alpha1.MachineDeployment) bool {
	seen := stores.Find[mcm.MachineDeployment](c.stores.seenDeployments, key)
	if seen == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(d.ResourceVersion, seen.ResourceVersion)
	return err == nil && order < 0
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

// memory is what is known of a MachineDeployment, and whether the API server drops spec.excessReplicas.
func (c *Controller) memory(key string) (m Memory, pruned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reduced(key, 0) // forgets
	return c.memories[key], c.pruned
}

// settle takes note of what the store shows of a MachineDeployment that we wrote.
func (c *Controller) settle(d *v1alpha1.MachineDeployment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.Spec.ExcessReplicas != nil {
		c.pruned = false
	}
}

// unreachable says in which way the target cluster does not answer, or has yet to show what happened meanwhile.
func (c *Controller) unreachable() string {
	if c.stores.nodes == nil {
		return ""
	}
	if err := c.cluster.Err(c.stores.nodes, c.stores.pods); err != nil {
		return err.Error()
	}
	return ""
}

// unhealthy reports whether many Nodes of the target cluster are not ready, whoever they belong to.
func (c *Controller) unhealthy() bool {
	if c.stores.nodes == nil {
		return false
	}
	unready, _ := c.stores.nodes.IndexKeys(target.ByReadiness, target.Unready) // the index is there
	return signs.Unhealthy(len(unready), len(c.stores.nodes.ListKeys()))
}

// seen compares with what machine-controller-manager has seen.
func (c *Controller) seen(d *v1alpha1.MachineDeployment, machines []Machine) (wanted, asked int, behind bool) {
	there := map[types.UID]bool{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, set := range owned[*mcm.MachineSet](c.stores.seenSets, d) {
		least, most := c.replicasOf(set)
		wanted, asked = wanted+least, asked+most
		for _, m := range owned[*mcm.Machine](c.stores.seenMachines, set) {
			there[m.UID] = pool.Going(m)
		}
	}
	here := map[types.UID]bool{}
	for _, m := range machines {
		here[m.Object.UID] = pool.Going(m.Object)
	}
	return wanted, asked, !maps.Equal(there, here)
}

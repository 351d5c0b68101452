// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// observe builds the view of a MachineDeployment. It is false if there is nothing to decide: the
// MachineDeployment is gone or being deleted, or the store does not show our last write yet, and
// its event causes the next sync. If a store is behind, Machines and Nodes are used as the API
// server returned them. Most MachineDeployments of most clusters have no reserve, and every change
// of theirs comes here: for them, only what shows that is read.
func (c *Controller) observe(key string) (plan.View, bool) {
	shown, found := c.stores.deployment(key)
	if !found || shown.DeletionTimestamp != nil {
		c.states.forgetDeployment(key)
		return plan.View{}, false
	}
	d := c.latest.external.Newest(shown)
	if !c.latest.deployments.UpToDate(d) || c.latest.seenLater(key, d) != nil {
		return plan.View{}, false
	}
	if d == shown && d.Spec.ExcessReplicas != nil {
		c.fieldPruned.Store(false)
	}
	if d == shown && d.Spec.ReserveWitness {
		c.witnessPruned.Store(false)
	}
	v := plan.View{Now: c.clock.Now(), Settings: c.settings, Deployment: d, Accounting: c.accountingOf(d)}
	v.Memory, v.Pruned, v.WitnessPruned = c.states.memory(d, v.Now), c.fieldPruned.Load(), c.witnessPruned.Load()
	s := pool.Outline(d, c.latest, v.Now)
	v.NamedGone = c.states.completeNames(d, s.Machines)
	if v.Machines = withoutPriorities(s.Machines); v.HasNoReserve() {
		return v, true
	}
	s.Complete(c.latest)
	v.Machines = c.withPriorities(s.Machines)
	v.CurrentSet, v.Rollout, v.Allocatable = s.Rollout.Set, s.Rollout.Replacing, s.Allocatable
	v.SetReplicas, v.MaxSetReplicas, v.Behind = c.compareSeen(d, v.Machines)
	if v.NeedsEvictions() && c.stores.nodes != nil {
		v.Evictions = c.evictions(key, v)
	}
	v.Unreachable, v.Unhealthy, v.Targetless = c.unreachable(), c.unhealthy(), c.stores.nodes == nil
	c.states.setDoubtful(key, v.Machines, v.Now)
	c.states.setOpened(key, v, c.latest)
	v.AllLeaving = c.allLeaving(d, s.Machines, v.NamedGone > 0)
	return v, true
}

// accountingOf returns where the reserve of a MachineDeployment is counted by default, empty to
// leave it where it is.
func (c *Controller) accountingOf(d *v1alpha1.MachineDeployment) pool.Accounting {
	if c.settings.Accounting == nil {
		return ""
	}
	return c.settings.Accounting(d)
}

func withoutPriorities(machines []pool.Machine) []plan.Machine {
	all := make([]plan.Machine, len(machines))
	for i, m := range machines {
		all[i].Machine = m
	}
	return all
}

// withPriorities adds the priorities that machine-controller-manager's store shows.
func (c *Controller) withPriorities(machines []pool.Machine) []plan.Machine {
	all := withoutPriorities(machines)
	for i, m := range all {
		shown := m.Object
		if seen := stores.Find[mcm.Machine](c.stores.seenMachines, shown.Namespace+"/"+shown.Name); seen != nil {
			shown = seen
		}
		all[i].SeenPriority = pool.Priority(shown)
	}
	return all
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

// evictions reads which pods decide about a surplus.
func (c *Controller) evictions(key string, v plan.View) *plan.Evictions {
	e := &plan.Evictions{BudgetsUnknown: c.stores.budgetsUnknown(), Pods: map[string][]*corev1.Pod{}}
	if err := c.cluster.Err(c.stores.budgets); e.BudgetsUnknown == "" && err != nil {
		e.BudgetsUnknown = err.Error()
	}
	namespaces, chosen := map[string]bool{}, false
	for _, m := range v.Machines {
		if m.Reserve() || m.Leaving() || m.Node == nil {
			continue
		}
		chosen = chosen || m.Going()
		e.Pods[m.Object.Name] = c.latest.Pods(m.Node.Name)
		for _, pod := range e.Pods[m.Object.Name] {
			namespaces[pod.Namespace] = true
		}
	}
	e.Budgets = pool.BudgetsOf(slices.DeleteFunc(stores.List[*policyv1.PodDisruptionBudget](c.stores.budgets), func(b *policyv1.PodDisruptionBudget) bool {
		return !namespaces[b.Namespace]
	}))
	e.Expected = c.expectedEvictions(key, chosen, v.Now)
	return e
}

// expectedEvictions returns the pods on machines of other MachineDeployments that are about to go. If
// two MachineDeployments have chosen a machine at the same time, the first by name goes on with it.
func (c *Controller) expectedEvictions(key string, chosen bool, now time.Time) (pods []*corev1.Pod) {
	for d := range stores.All[*v1alpha1.MachineDeployment](c.stores.deployments) {
		if keyOf(d) == key {
			continue
		}
		for _, m := range pool.Outline(d, c.latest, now).Machines {
			if m.Node != nil && m.Going() && (m.Leaving() || !chosen || keyOf(d) < key) {
				pods = append(pods, c.latest.Pods(m.Node.Name)...)
			}
		}
	}
	return pods
}

// unhealthy reports whether many Nodes of the target cluster are not ready, whatever they belong
// to.
func (c *Controller) unhealthy() bool {
	if c.stores.nodes == nil {
		return false
	}
	return c.settings.Unready.Exceeded(target.CountUnready(c.stores.nodes))
}

// compareSeen compares with what machine-controller-manager has seen.
func (c *Controller) compareSeen(d *v1alpha1.MachineDeployment, machines []plan.Machine) (least, most int, behind bool) {
	c.states.locked(keyOf(d), func(s *state) { least, most = s.totalReplicas(c.latest.seenSets(d), c.clock.Now()) })
	seen, here := map[types.UID]bool{}, map[types.UID]bool{}
	for _, m := range c.latest.seenMachines(d) {
		seen[m.UID] = pool.BeingDeleted(m)
	}
	for _, m := range machines {
		here[m.Object.UID] = pool.BeingDeleted(m.Object)
	}
	return least, most, !maps.Equal(seen, here)
}

// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// ReserveMark returns what holds a Machine in reserve that machine-controller-manager is about to
// create, nil if the Machine serves. It sends no request.
func (c *Controller) ReserveMark(b view.Creation) *v1alpha1.Reserve {
	d := c.newestOf(b.Deployment.String())
	if d == nil {
		return nil
	}
	workload, applied := c.numbers(b.Deployment.String(), d)
	if applied.Excess == 0 {
		return nil
	}
	now := c.clock.Now()
	var machines []reserve.Machine
	s := pool.Outline(d, &c.source.Source, now)
	for _, m := range s.Machines {
		machines = append(machines, reserve.MachineOf(m))
	}
	if reserve.ServesOnCreation(machines, inFlight(b, s.Machines), workload) {
		return nil
	}
	mark := c.settings.newMark(now)
	return &mark
}

// inFlight counts the creations in progress whose machines the store does not show.
func inFlight(b view.Creation, shown []pool.Machine) (n int) {
	known := map[string]bool{}
	for _, m := range shown {
		known[m.Object.Name] = true
	}
	for _, other := range b.InProgress {
		if other.Name == "" || !known[other.Name] {
			n++
		}
	}
	return n
}

// Superfluous returns a conflict if a MachineDeployment with an applied excess has as many machines
// as machine-controller-manager is shown, except during rollouts. Machine-controller-manager
// deletes machines that are named for deletion before it lowers the replicas of their MachineSet.
// It replaces them meanwhile, and may then freeze the MachineDeployment because it has too many
// machines.
func (c *Controller) Superfluous(b view.Creation) error {
	key := b.Deployment.String()
	d := c.newestOf(key)
	if d == nil {
		return nil
	}
	c.mu.Lock()
	excess, visible := c.memories[key].applied(d).Excess, c.memories[key].visible(d)
	c.mu.Unlock()
	if excess == 0 || c.behindSeen(key, d) {
		return nil
	}
	s := pool.Outline(d, &c.source.Source, c.clock.Now())
	staying, present := map[string]int{}, inFlight(b, s.Machines)
	for _, m := range s.Machines {
		if !pool.BeingDeleted(m.Object) {
			staying[m.Set]++
			present++
		}
	}
	if present < visible || pool.Spread(s.Sets, staying) {
		return nil
	}
	return conflictError("machines", b.Machine.GenerateName, "there are %d machines, and there are to be %d", present, visible)
}

// numbers returns R and the applied excess of a MachineDeployment.
func (c *Controller) numbers(key string, d *v1alpha1.MachineDeployment) (workload int, applied reserve.Applied) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memories[key]
	return m.workload(d), m.applied(d)
}

// newestOf returns a MachineDeployment as the store shows it, or as this process has written it
// since.
func (c *Controller) newestOf(key string) *v1alpha1.MachineDeployment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newestLocked(key)
}

func (c *Controller) newestLocked(key string) *v1alpha1.MachineDeployment {
	d, _ := c.stores.deployment(key)
	if d != nil {
		d = c.written.Newest(c.externalUpdates.Newest(d))
	}
	return d
}

// Seen reports whether the store that ReserveMark counts in shows all Machines up to a version.
func (c *Controller) Seen(version string) bool {
	return written.Reached(c.stores.machines.LastStoreSyncResourceVersion(), version)
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

// rollMachines replaces the machines of old MachineSets by those of the newest one, within the bounds of
// the strategy.
func (p *Plan) rollMachines(d *deployment) {
	d.preferOthers()
	d.protectFromScaleDown()
	if d.newest == nil {
		p.createNewest(d)
		return
	}
	d.growNewest()
	d.shrinkOld()
	p.complete(d)
}

// createNewest creates the MachineSet for the template.
func (p *Plan) createNewest(d *deployment) {
	s := d.newSet()
	s.Spec.Replicas = d.firstSize()
	p.NewSets = append(p.NewSets, s)
}

// firstSize is how many machines a new MachineSet is to have.
func (d *deployment) firstSize() int32 {
	switch strategy := d.stored.Spec.Strategy; strategy.Type {
	case mcm.RollingUpdateMachineDeploymentStrategyType:
		return min(d.replicas(), d.room(d.surge()))
	case mcm.InPlaceUpdateMachineDeploymentStrategyType:
		if strategy.InPlaceUpdate.OrchestrationType == mcm.OrchestrationTypeManual {
			return 0
		}
		return min(d.replicas(), d.room(d.resolve(strategy.InPlaceUpdate.MaxSurge, true)))
	}
	return d.replicas()
}

// room is how many machines may be created now: those that are leaving, and those that are yet to come,
// take a place.
func (d *deployment) room(surge int32) int32 {
	room := d.replicas() + surge
	for _, s := range d.sets() {
		room -= max(int32(len(s.machines)), s.Object.Spec.Replicas)
	}
	return max(room, 0)
}

// growNewest gives the newest MachineSet as many machines as there is room for.
func (d *deployment) growNewest() {
	size, r := d.newest.Object.Spec.Replicas, d.replicas()
	if size > r {
		d.resize(d.newest, r)
	} else if more := min(r-size, d.room(d.surge())); more > 0 {
		d.resize(d.newest, size+more)
	}
}

// shrinkOld takes machines from old MachineSets, the oldest first: those that are not available at once,
// others once enough machines are available.
func (d *deployment) shrinkOld() {
	least := d.replicas() - d.maxUnavailable()
	pending := d.newest.Object.Spec.Replicas - int32(d.newest.count().available)
	budget := sizes(d.sets()) - least - pending
	if budget <= 0 {
		return
	}
	active := slices.DeleteFunc(slices.Clone(d.old), func(s *set) bool { return s.Object.Spec.Replicas == 0 })
	for _, s := range active {
		if unavailable := min(budget, s.Object.Spec.Replicas-int32(s.count().available)); unavailable > 0 {
			d.resize(s, s.Object.Spec.Replicas-unavailable)
			budget -= unavailable
		}
	}
	spare := -least
	for _, s := range d.sets() {
		spare += int32(s.count().available)
	}
	for _, s := range active {
		if fewer := min(spare, budget, s.Object.Spec.Replicas); fewer > 0 {
			d.resize(s, s.Object.Spec.Replicas-fewer)
			spare, budget = spare-fewer, budget-fewer
		}
	}
}

// complete ends a rollout: it removes what told others of it, and old MachineSets.
func (p *Plan) complete(d *deployment) {
	if !d.isComplete(d.stored.Status.StockMachineDeploymentStatus) {
		return
	}
	d.unprotect()
	d.preferAgain(d.newest)
	p.cleanUp(d)
}

// cleanUp deletes the oldest of the old MachineSets that have no machines, except for as many as the
// MachineDeployment keeps as its history.
func (p *Plan) cleanUp(d *deployment) {
	limit := d.stored.Spec.RevisionHistoryLimit
	if limit == nil {
		return
	}
	staying := slices.DeleteFunc(slices.Clone(d.old), func(s *set) bool { return s.stored.DeletionTimestamp != nil })
	for _, s := range staying[:max(0, len(staying)-int(*limit))] {
		if s.Object.Spec.Replicas == 0 && len(s.machines) == 0 {
			p.SetDeletions = append(p.SetDeletions, s.stored)
		}
	}
}

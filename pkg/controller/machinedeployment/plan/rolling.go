// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// rollMachines replaces the machines of old MachineSets by those of the newest one, within the bounds of
// the strategy.
func (p *Plan) rollMachines(d *deployment) {
	if d.newest == nil {
		p.createNewest(d)
		return
	}
	d.preferOthers()
	d.protectFromScaleDown()
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

// room is how many machines may come in addition: those that are leaving, and those that are yet to come,
// take a place.
func (d *deployment) room(surge int32) int32 {
	room := d.replicas() + surge
	for _, s := range d.sets() {
		present := int32(s.present())
		room -= max(present, s.Object.Spec.Replicas) + int32(len(s.machines)) - present
	}
	return max(room, 0)
}

// growNewest gives the newest MachineSet as many machines as there is room for.
func (d *deployment) growNewest() {
	size, r := d.newest.Object.Spec.Replicas, d.replicas()
	if needed := min(r, d.neededOfNewest()); size < needed {
		size = needed
		d.resize(d.newest, size)
	}
	if size > r {
		d.resize(d.newest, r)
	} else if more := min(r-size, d.room(d.surge())); more > 0 {
		d.resize(d.newest, size+more)
	}
}

// shrinkOld takes machines from old MachineSets, the oldest first: those that do not serve at once, others
// once enough machines do.
func (d *deployment) shrinkOld() {
	budget := sizes(d.old) + d.newest.serving() - (d.replicas() - d.maxUnavailable())
	shrink := func(fewer func(*set) int32) {
		for _, s := range d.old {
			if n := min(budget, fewer(s)); n > 0 {
				d.resize(s, s.Object.Spec.Replicas-n)
				budget -= n
			}
		}
	}
	shrink(func(s *set) int32 { return s.Object.Spec.Replicas - s.serving() })
	shrink(func(s *set) int32 { return s.Object.Spec.Replicas })
}

// serving counts the machines that are available and stay, if those that are not available go first.
func (s *set) serving() (n int32) {
	if s.stored.DeletionTimestamp != nil {
		return 0
	}
	for _, m := range s.machines {
		if m.DeletionTimestamp == nil && pool.Ready(m.Status.CurrentStatus.Phase) {
			n++
		}
	}
	return min(n, s.Object.Spec.Replicas)
}

// complete ends a rollout: it removes what told others of it, and old MachineSets.
func (p *Plan) complete(d *deployment) {
	if !d.isFinished() {
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
	for _, s := range staying[:max(0, len(staying)-max(0, int(*limit)))] {
		if s.Object.Spec.Replicas == 0 && len(s.machines) == 0 {
			p.SetDeletions = append(p.SetDeletions, s.stored)
		}
	}
}

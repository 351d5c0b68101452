// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// The writes below count until a store shows them, or until they are known to have had no effect. The
// latter says nothing about an earlier write, so that one counts again.

// unknownFor is how long a write of unknown outcome counts as in progress: longer than any request
// lasts.
const unknownFor = 2 * time.Minute

// resize is a write of the replicas of a MachineSet, until the store shows it.
type resize struct {
	least, most int       // that the set asks for if it took effect, or an earlier one that is in doubt
	version     string    // that it was written with; empty while it is under way
	until       time.Time // when it is forgotten if its outcome never shows; zero while it is under way
	before      *resize   // the one before, which counts until the store shows this one
}

// removal is the deletion of a Machine that a guard allowed, until the store shows it.
type removal struct {
	done   bool      // whether it took effect
	until  time.Time // when it is forgotten if its outcome never shows; zero unless that is unknown
	before *removal  // an earlier one of the Machine with an unknown outcome; nil if there is none
}

// reduction is a write after which a MachineDeployment shows fewer machines. It is remembered for a
// while, because machine-controller-manager may have read the MachineDeployment long before it
// resizes a MachineSet.
type reduction struct {
	shown  int
	until  time.Time  // when it is forgotten; zero while it is under way
	before *reduction // the one before, which counts again if this one has no effect
}

// beginResize records a write of a MachineSet's replicas.
func (s *state) beginResize(set string, replicas int) {
	r := &resize{least: replicas, most: replicas}
	if before := s.resizes[set]; before != nil {
		if before.version == "" {
			r.least, r.most = min(r.least, before.least), max(r.most, before.most)
		}
		if before.version != "" || !before.until.IsZero() { // else both are under way
			r.before = before
		}
	}
	putEntry(&s.resizes, set, r)
}

// endResize records the outcome of a write of a MachineSet's replicas, and reports whether it is
// unknown.
func (s *state) endResize(set string, result *mcm.MachineSet, err error, now time.Time) (unknown bool) {
	r := s.resizes[set]
	switch {
	case r == nil:
	case err == nil:
		r.version, r.before = result.ResourceVersion, nil
	case !ineffective(err):
		r.until = now.Add(unknownFor)
		return true
	case r.before != nil:
		s.resizes[set] = r.before
	default:
		delete(s.resizes, set)
	}
	return false
}

// doubtFor returns how long it takes until the next write with an unknown outcome is forgotten; 0 if
// there is none.
func (s *states) doubtFor(key string, now time.Time) (wait time.Duration) {
	s.locked(key, func(one *state) {
		for _, r := range one.resizes {
			for ; r != nil; r = r.before {
				if !r.until.IsZero() {
					wait = requeue.Sooner(wait, r.until.Sub(now)+1)
				}
			}
		}
		for _, d := range one.doubts {
			wait = requeue.Sooner(wait, d.until.Sub(now)+1)
		}
		for _, d := range one.openings {
			wait = requeue.Sooner(wait, d.until.Sub(now)+1)
		}
	})
	return wait
}

// replicasOf returns the fewest and the most machines that a MachineSet may be asking for, by what
// machine-controller-manager's store shows and by the writes in progress.
func (s *state) replicasOf(set *mcm.MachineSet, now time.Time) (least, most int) {
	id, shown := keyOf(set), int(set.Spec.Replicas)
	least, most = shown, shown
	counts := false
	for r := s.resizes[id]; r != nil; r = r.before {
		if !r.isOver(set, now) {
			counts, least, most = true, min(least, r.least), max(most, r.most)
		}
	}
	if !counts {
		delete(s.resizes, id)
	}
	return least, most
}

// isOver reports whether the store shows a write, or the write is to be forgotten.
func (r *resize) isOver(set *mcm.MachineSet, now time.Time) bool {
	return r.version != "" && written.Reached(set.ResourceVersion, r.version) || passed(r.until, now)
}

// totalReplicas returns the sums of replicasOf.
func (s *state) totalReplicas(sets []*mcm.MachineSet, now time.Time) (least, most int) {
	for _, set := range sets {
		l, m := s.replicasOf(set, now)
		least, most = least+l, most+m
	}
	return least, most
}

// beginReduction records a reduction to this number of machines.
func (s *state) beginReduction(shown int) {
	s.reduction = &reduction{shown: shown, before: s.reduction}
}

// endReduction records the outcome of a reduction, and reports whether one is still remembered.
func (s *state) endReduction(err error, now time.Time) bool {
	switch {
	case s.reduction == nil:
	case ineffective(err):
		s.reduction = s.reduction.before
	default:
		s.reduction.until, s.reduction.before = now.Add(unknownFor), nil
	}
	return s.reduction != nil
}

// visible returns how many machines a MachineDeployment that shows so many now is to show, and
// whether that was reduced recently.
func (s *state) visible(shown int, now time.Time) (visible int, reduced bool) {
	r := s.reduction
	switch {
	case r == nil:
		return shown, false
	case r.until.IsZero():
		return min(shown, r.shown), true
	case passed(r.until, now):
		s.reduction = nil
		return shown, false
	}
	return shown, true
}

// endRemoval records the outcome of a deletion. The store does not show a successful one yet.
func (s *state) endRemoval(machine types.UID, err error, now time.Time) {
	r := s.removals[machine]
	switch {
	case r == nil || r.done:
	case written.Answered(err):
		*r = removal{done: true}
	case !ineffective(err):
		r.until, r.before = now.Add(unknownFor), nil
	case r.before != nil:
		s.removals[machine] = r.before
	default:
		delete(s.removals, machine)
	}
}

// isRemoved reports whether a machine is being deleted, or may be, although the store does not show
// it.
func (s *state) isRemoved(machine types.UID, now time.Time) bool {
	r := s.removals[machine]
	if r != nil && passed(r.until, now) {
		delete(s.removals, machine)
		return false
	}
	return r != nil
}

// beginRemoval records the deletion of a Machine.
func (s *state) beginRemoval(machine types.UID) {
	r, before := &removal{}, s.removals[machine]
	switch {
	case before == nil:
	case before.done:
		return // another one changes nothing
	case !before.until.IsZero():
		r.before = before
	}
	putEntry(&s.removals, machine, r)
}

// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"cmp"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// giveBack raises R for reserve machines that were named by somebody who lowered R for them (law 12). The rest of the
// round goes by the new R. One that boots does not count as serving here: it may be there because of a swap.
func (r *round) giveBack() {
	if r.counting {
		return // the reserve has taken it
	}
	room := r.tally().running - r.Replicas
	for _, m := range r.machines {
		if room > 0 && m.Named && m.Reserve && !m.Returned {
			r.plan.Returned = append(r.plan.Returned, m.Name)
			r.Replicas++
			room--
		}
	}
	r.plan.Replicas = r.Replicas
	r.fit()
	r.shown = pool.VisibleReplicas(r.Replicas, r.Applied)
}

// release lets reserve machines serve until R machines do: ready ones until R run, then also such as boot until R are
// owed (laws 2 and 3).
func (r *round) release() {
	if r.Blind {
		return
	}
	t := r.tally()
	ready := r.pick(func(m Machine) bool { return m.Reserve && m.Ready() && m.Made && !r.doomed(m, r.shown) }, r.releaseOrder)
	for _, i := range ready[:limit(r.Replicas-t.running, len(ready))] {
		why := Released
		if t.serving >= r.Replicas {
			why = Swapped
		}
		t.serving++
		r.move(i, false, why)
	}
	booting := r.pick(func(m Machine) bool { return m.Reserve && m.booting() && m.Made && !r.doomed(m, r.shown) }, r.releaseOrder)
	for _, i := range booting[:limit(r.Replicas-t.serving, len(booting))] {
		r.move(i, false, Released)
	}
}

// releaseOrder prefers machines that nobody wants to delete, then the current revision, then what is not stuck, then
// the oldest, which is the order r.machines is in.
func (r *round) releaseOrder(a, b Machine) int {
	return cmp.Or(
		compareFalseFirst(a.Priority <= PriorityVictim, b.Priority <= PriorityVictim),
		compareFalseFirst(a.Set != r.CurrentSet, b.Set != r.CurrentSet),
		compareFalseFirst(r.isStuck(a), r.isStuck(b)),
	)
}

// retire puts empty machines into reserve while more than R serve (law 4), such as boot first. It waits while
// machine-controller-manager has deletions of its own to do: they may be what makes it R.
func (r *round) retire() {
	t := r.tally()
	if t.present > r.shown || r.Blind {
		return
	}
	// Where nothing is to be deleted, A has room for all of them.
	room := t.serving - r.Replicas
	for _, i := range r.retirable() {
		ready := r.machines[i].Ready()
		if room <= 0 || ready && t.running <= r.Replicas {
			return
		}
		why := Swapped
		if ready {
			why = Retired
			t.running--
		}
		r.move(i, true, why)
		room--
	}
}

// retirable lists the machines that may be put into reserve: not ready first, then old revisions, then the newest.
func (r *round) retirable() []int {
	return r.pick(
		func(m Machine) bool {
			return !m.Reserve && !m.Busy() && !m.Sick() && m.Made && m.Priority >= PriorityVictim
		},
		func(a, b Machine) int {
			return cmp.Or(
				compareFalseFirst(a.Ready(), b.Ready()),
				compareFalseFirst(a.Set == r.CurrentSet, b.Set == r.CurrentSet),
				newestFirst(a, b),
			)
		})
}

func (r *round) move(i int, reserve bool, why Why) {
	r.machines[i].Reserve = reserve
	r.plan.Moves = append(r.plan.Moves, Move{Name: r.machines[i].Name, Reserve: reserve, Why: why})
}

func newestFirst(a, b Machine) int {
	return cmp.Or(b.Born.Compare(a.Born), cmp.Compare(b.Name, a.Name))
}

// limit is n, but neither negative nor above most.
func limit(n, most int) int { return max(0, min(n, most)) }

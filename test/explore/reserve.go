// SPDX-License-Identifier: Apache-2.0

package explore

import "slices"

// Reserve models the reserve: the machine-taint controller's plans, carried out write by write,
// beside machine-controller-manager with late stores, and users, pods and clouds that can do
// anything.
type Reserve struct {
	// Sizes are the largest numbers of machines for workload and in reserve at the beginning, and
	// that users ask for. Max is the maximum number of machines; 0 is no maximum.
	Sizes [2]int
	Max   int
	// Inclusive reports whether replicas include the reserve at the beginning. A change of that is
	// one of the faults.
	Inclusive bool
	// Faults is the maximum number of faults in one story.
	Faults int
	// Rollouts, Names, Preserve and Bounds add faults: users change the template and the bounds,
	// autoscalers name machines, machines are preserved.
	Rollouts, Names, Preserve, Bounds bool
	// Beyond lets users raise replicas that include the reserve by one beyond the maximum.
	Beyond bool
	// Reductions counts for which machines that cannot be made the applied excess is reduced.
	Reductions bool
	// From are the initial worlds; none means settled worlds of every small size.
	From []World
	// Unguarded disables a guard, to see what it prevents.
	Unguarded Guard

	plans *decisions
	sizes *resizes
}

// New returns the model with its memories.
func New(r Reserve) *Reserve {
	if r.Sizes == [2]int{} {
		r.Sizes = [2]int{2, 2}
	}
	r.plans, r.sizes = newDecisions(), &resizes{all: map[seenSets][]resize{}}
	return &r
}

// Begin returns settled worlds of every small size, with every number of busy machines.
func (r *Reserve) Begin() []World {
	if len(r.From) > 0 {
		from := slices.Clone(r.From)
		for i := range from {
			from[i].faults = uint8(r.Faults)
		}
		return from
	}
	var all []World
	for replicas := range r.Sizes[0] + 1 {
		for excess := range r.Sizes[1] + 1 {
			for busy := range replicas + 1 {
				if r.Max == 0 || replicas+excess <= r.Max {
					all = append(all, settled(replicas, excess, busy, r.Faults, r.Max, r.Inclusive))
				}
			}
		}
	}
	return all
}

// walk collects the steps from one world.
type walk struct {
	*Reserve
	from  World
	steps []Step[World]
}

// Steps returns everything that can happen next. Steps that wait for time to pass happen only if
// nothing else is left.
func (r *Reserve) Steps(w World) []Step[World] {
	k := &walk{Reserve: r, from: w, steps: make([]Step[World], 0, 16)}
	k.controllerSteps()
	k.stores()
	k.manager()
	k.cloudSteps()
	k.scalerSteps()
	if k.onlyFaultsLeft() {
		k.timeSteps()
	}
	if w.faults > 0 {
		k.disturb()
	}
	return k.steps
}

// onlyFaultsLeft reports whether only faults are left to happen.
func (k *walk) onlyFaultsLeft() bool {
	for _, step := range k.steps {
		if step.To != k.from {
			return false
		}
	}
	return true
}

// addStep adds a step that happens sooner or later. do returns the law that it breaks.
func (k *walk) addStep(what string, do func(w *World) (broken string)) {
	w := k.from
	broken := do(&w)
	w.forget()
	k.steps = append(k.steps, Step[World]{What: what, To: w, Broken: broken})
}

// addFact adds a step that is a fact for the controller.
func (k *walk) addFact(what string, do func(w *World) (broken string)) {
	k.addStep(what, func(w *World) string { w.turns = turns{}; return do(w) })
}

// addFault adds a step that need not happen.
func (k *walk) addFault(what string, do func(w *World)) {
	w := k.from
	w.faults--
	w.turns = turns{}
	do(&w)
	w.forget()
	k.steps = append(k.steps, Step[World]{What: what, To: w, Fault: true})
}

// machines calls f with each machine that meets a condition.
func (k *walk) machines(is func(m *machine) bool, f func(i int)) {
	for i := range k.from.machines {
		if m := &k.from.machines[i]; m.there && is(m) {
			f(i)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"

	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// machineSteps adds what the machine-taint controller and the cloud do with the spare machines of a
// MachineDeployment, as it is reported.
func (k *wishWalk) machineSteps(i int) {
	t := k.from.targets[i].is
	if t.leaving {
		k.addStep(makersOf+Actor(i), name(i)+" is gone.", func(w *WishWorld) string {
			w.changeTarget(i, true, func(t *target) { *t = target{} })
			return ""
		})
	}
	if !t.there || t.leaving {
		return
	}
	e, broken := t.effective(i)
	excess, rest := uint8(e.Excess), standing(e)
	report := func(what string, ready uint8, is health) {
		k.addStep(makersOf+Actor(i), fmt.Sprintf(what, name(i)), func(w *WishWorld) string {
			news := t.touched || ready > t.ready || is == cannotBeMade
			w.changeTarget(i, news, func(t *target) { t.ready, t.health = ready, is })
			return broken
		})
	}
	switch {
	case t.ready > excess:
		report("%s gives up spare machines.", excess, rest)
	case t.ready == excess && t.health != rest:
		report("%s reports its reserve.", t.ready, rest)
	case t.ready == excess:
	case !k.from.out[i] && t.ready+1 == excess:
		report("The last spare machine of %s is ready.", excess, rest)
	case !k.from.out[i]:
		report("A spare machine of %s is ready.", t.ready+1, growing)
	case t.health != growing && t.health != cannotBeMade:
		report("%s reports that its reserve grows.", t.ready, growing)
	case t.health != cannotBeMade:
		report("%s reports that machines cannot be created.", t.ready, cannotBeMade)
	}
}

// standing is the condition of a reserve with all its machines.
func standing(e reserve.EffectiveExcess) health {
	switch {
	case e.Excess < e.Wish:
		return atMax
	case e.Excess == 0:
		return noReserve
	}
	return complete
}

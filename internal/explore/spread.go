// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// spread is a plan of the controller of Reserves, as far as the model carries it out.
type spread struct {
	writes [4]wishWrite
	// broken is the law that the plan breaks.
	broken string
}

// conditions are the conditions that a MachineDeployment has.
var conditions = [...][]mcm.MachineDeploymentCondition{nil,
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionTrue, Reason: reason.Complete}},
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.Growing}},
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionFalse, Reason: reason.CannotBeMade}},
	{{Type: machineapi.ReserveReady, Status: mcm.ConditionStatus(reason.ReserveReady.Find(reason.AtMax).Status), Reason: reason.AtMax}},
}

// object returns the MachineDeployment.
func (t *target) object(i int) *machineapi.MachineDeployment {
	d := &machineapi.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name(i), Namespace: namespace, Annotations: map[string]string{
		machineapi.BoundsAnnotation: fmt.Sprintf("0:%d", t.limit)}}}
	d.Spec.Replicas, d.Spec.ExcessReplicas = baseReplicas, ptr.To(int32(t.own))
	if t.asked > 0 {
		d.Annotations[machineapi.RequestedExcessAnnotation] = machineapi.RequestedExcess{Reserve: wishNames[t.by-1], Machines: int32(t.asked)}.String()
	}
	if t.leaving {
		d.DeletionTimestamp = &metav1.Time{Time: earlier}
	}
	d.Status.ExcessReplicas, d.Status.ReadyExcessReplicas, d.Status.Conditions = int32(t.ready), int32(t.ready), conditions[t.health]
	return d
}

// object returns the Reserve.
func (r *wish) object(i int) *v1alpha1.Reserve {
	o := &v1alpha1.Reserve{ObjectMeta: metav1.ObjectMeta{Name: wishNames[i], Namespace: namespace, UID: types.UID(wishNames[i])}}
	o.Spec.Replicas = int32(r.amount)
	o.Spec.Pools.Names = []string{name(0), name(1)}[:2-i]
	for p, one := range r.parts {
		if one.listed {
			o.Status.Pools = append(o.Status.Pools, v1alpha1.ReservePoolStatus{Name: name(p), DesiredReplicas: int32(one.machines), Blocked: one.blocked})
		}
	}
	return o
}

// decide makes a plan.
func (k knownWishes) decide() *spread {
	v := reserves.View{Now: now}
	for i := range k.wishes {
		if k.wishes[i].there {
			v.Reserves = append(v.Reserves, k.wishes[i].object(i))
		}
		if k.targets[i].there {
			v.Pools = append(v.Pools, reserves.Pool{Deployment: k.targets[i].object(i)})
		}
	}
	p := reserves.NewPlan(v)
	s := &spread{}
	for _, r := range p.Requests {
		one := wishWrite{pending: true}
		one.asked, one.by = requestOf(r.Text)
		s.writes[index(r.Deployment.Name)] = one
	}
	for _, d := range p.Decisions {
		i := slices.Index(wishNames[:], d.Reserve.Name)
		if parts := partsOf(d); parts != k.wishes[i].parts {
			s.writes[2+i] = wishWrite{pending: true, parts: parts}
		}
		if s.broken == "" {
			s.broken = k.misspread(d)
		}
	}
	return s
}

// requestOf parses the annotation requested-excess.
func requestOf(text string) (asked, by uint8) {
	if text == "" {
		return 0, 0
	}
	r, err := machineapi.ParseRequestedExcess(text)
	if err != nil {
		panic(err) // plans write only what can be parsed
	}
	return uint8(r.Machines), uint8(slices.Index(wishNames[:], r.Reserve) + 1)
}

// partsOf returns what the status contains after a decision.
func partsOf(d reserves.Decision) (parts [2]part) {
	for _, p := range reserves.NewStatus(d, now).Pools {
		parts[index(p.Name)] = part{listed: true, machines: uint8(p.DesiredReplicas), blocked: p.Blocked}
	}
	return parts
}

// misspread returns the law that a decision breaks, by what is known. Ready machines hold until
// their replacements were requested and are ready.
func (k *knownWishes) misspread(d reserves.Decision) string {
	was := k.wishes[slices.Index(wishNames[:], d.Reserve.Name)].parts
	var before, asked, blocked, hadReady, hasReady int
	holds, waits := false, false
	for _, p := range d.Parts {
		i := index(p.Deployment.Name)
		t, had := &k.targets[i], int(was[i].machines)
		if p.Machines > t.room() || t.leaving {
			return fmt.Sprintf("I1: %s requests %d machines of %s, which has room for %d.", d.Reserve.Name, p.Machines, name(i), t.room())
		}
		before, asked = before+had, asked+p.Machines
		hadReady, hasReady = hadReady+min(had, int(t.ready), t.room()), hasReady+min(p.Machines, int(t.ready))
		if p.Blocked {
			blocked++
		}
		holds = holds || p.Machines > 0 && p.Machines <= had
		waits = waits || p.Machines > min(had, int(t.ready))
	}
	switch {
	case hasReady < min(hadReady, d.Desired):
		return fmt.Sprintf("R4: %s gives up ready machines: %d of %d stay, of %d that it requests.", d.Reserve.Name, hasReady, hadReady, d.Desired)
	case asked > d.Desired+blocked && !(holds && waits):
		return fmt.Sprintf("R1: %s requests %d machines instead of %d, and none of them waits for another.", d.Reserve.Name, asked, d.Desired)
	case asked > max(before, 2*d.Desired+blocked):
		return fmt.Sprintf("R1: %s requests %d machines instead of %d.", d.Reserve.Name, asked, d.Desired)
	}
	return ""
}

// room is how many spare machines a MachineDeployment may have.
func (t *target) room() int { return max(0, int(t.limit)-baseReplicas) }

// land does a write, and records the answer if it arrives. The annotation of a MachineDeployment
// stays within its max.
func (w *WishWorld) land(n int, answered bool) (broken string) {
	one := w.writes[n]
	switch {
	case w.isGone(n):
		answered = false
	case n < 2:
		t := &w.targets[n].is
		switch {
		case t.leaving:
			broken = fmt.Sprintf("I9: %s is being deleted, and its annotation is written.", name(n))
		case int(one.asked) > t.room():
			broken = fmt.Sprintf("I1: %d machines are requested of %s, which has room for %d.", one.asked, name(n), t.room())
		case one.asked == t.asked && one.by == t.by:
			broken = fmt.Sprintf("I9: The annotation of %s is written again.", name(n))
		}
		w.changeTarget(n, func(t *target) { t.asked, t.by = one.asked, one.by })
	default:
		to := w.wishes[n-2].is
		to.parts = one.parts
		w.changeWish(n-2, to)
	}
	switch {
	case !answered:
		w.fail(n)
		return broken
	case n < 2:
		w.targets[n].record()
	default:
		w.wishes[n-2].record()
	}
	w.writes[n] = wishWrite{}
	return broken
}

// machineSteps adds what the machine-taint controller and the cloud do with the spare machines of a
// MachineDeployment, as it is reported.
func (k *wishWalk) machineSteps(i int) {
	t := k.from.targets[i].is
	if t.leaving {
		k.addStep(name(i)+" is gone.", func(w *WishWorld) string {
			w.changeTarget(i, func(t *target) { *t = target{} })
			return ""
		})
	}
	if !t.there || t.leaving {
		return
	}
	e, broken := t.effective(i)
	excess, rest := uint8(e.Excess), standing(e)
	report := func(what string, ready uint8, is health) {
		k.addStep(fmt.Sprintf(what, name(i)), func(w *WishWorld) string {
			w.changeTarget(i, func(t *target) { t.ready, t.health = ready, is })
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

// effective returns how many machines a MachineDeployment keeps in reserve, and the law that the
// number breaks.
func (t *target) effective(i int) (e reserve.EffectiveExcess, broken string) {
	w, err := pool.WishesOf(t.object(i))
	if err != nil {
		return e, err.Error()
	}
	e, err = reserve.Effective(w, baseReplicas, nil)
	switch wish := min(max(int(t.own), int(t.asked)), t.room()); {
	case err != nil:
		broken = err.Error()
	case e.Excess > t.room():
		broken = fmt.Sprintf("I1: %s keeps %d machines in reserve, and has room for %d.", name(i), e.Excess, t.room())
	case e.Excess != wish:
		broken = fmt.Sprintf("R3: %s keeps %d machines in reserve instead of %d.", name(i), e.Excess, wish)
	}
	return e, broken
}

// Rest returns what is wrong with a world at rest.
func (m *Wishes) Rest(w WishWorld) string {
	var most [2]struct{ machines, by uint8 }
	for _, i := range []int{1, 0} { // in the order of their names
		r := &w.wishes[i].is
		for p, one := range r.parts {
			if r.there && w.targets[p].is.there && one.machines > most[p].machines {
				most[p].machines, most[p].by = one.machines, uint8(i+1)
			}
		}
		if wrong := w.unsettled(i); r.there && wrong != "" {
			return wrong
		}
	}
	for i := range w.targets {
		t := &w.targets[i].is
		if t.asked != most[i].machines || t.by != most[i].by {
			return fmt.Sprintf("I5: At rest, %s has the request %s instead of %s.", name(i), requestText(t.asked, t.by), requestText(most[i].machines, most[i].by))
		}
	}
	return ""
}

// unsettled returns what is wrong at rest with how a Reserve's machines are spread. Machines that
// cannot be created do not count, and others stand in for them.
func (w *WishWorld) unsettled(i int) string {
	r := &w.wishes[i].is
	usable, room, out := 0, 0, false
	var left [2]int
	for p, one := range r.parts[:2-i] {
		t := &w.targets[p].is
		if !t.there {
			continue
		}
		has, most := int(one.machines), t.room()
		left[p] = most - has
		if w.out[p] {
			out = true
			if has > int(t.ready)+1 {
				return fmt.Sprintf("R4: At rest, %s requests %d machines of %s, where %d are ready and no more can be created.", wishNames[i], has, name(p), t.ready)
			}
			has, most = min(has, int(t.ready)), min(most, int(t.ready))
		}
		usable, room = usable+has, room+most
	}
	if usable != min(int(r.amount), room) {
		return fmt.Sprintf("I5: At rest, %s gets %d machines, of %d that it requests and %d that there is room for.", wishNames[i], usable, r.amount, room)
	}
	a, b := int(r.parts[0].machines), int(r.parts[1].machines)
	if even := a-b >= -1 && a-b <= 1; i == 0 && !out && !even && (a > b && left[1] > 0 || b > a && left[0] > 0) {
		return fmt.Sprintf("R2: At rest, %s requests %d machines of a and %d of b.", wishNames[i], a, b)
	}
	return ""
}

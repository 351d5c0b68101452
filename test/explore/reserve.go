// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	nodegroupplan "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// Reserve models one MachineDeployment with its reserve: the plan of the controller, carried out
// request by request on what the controller knows, beside users, pods, autoscalers and clouds that
// can do anything.
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
	// autoscalers name machines, machines are preserved. Losses are requests that are lost, or not
	// answered, Silence is a target cluster that does not respond, and Instances one that takes over
	// while the other has yet to finish its plan.
	Rollouts, Names, Preserve, Bounds, Losses, Silence, Instances bool
	// Release adds the key that releases machines beside a sync.
	Release bool
	// Beyond lets users raise replicas that include the reserve by one beyond the maximum.
	Beyond bool
	// From are the initial worlds; none means settled worlds of every small size.
	From []World
	// Unguarded disables a guard, to see what it prevents.
	Unguarded Guard

	decisions *memo[knownPool, *decision]
}

// New returns the model with its memory.
func New(r Reserve) *Reserve {
	if r.Sizes == [2]int{} {
		r.Sizes = [2]int{2, 2}
	}
	r.decisions = &memo[knownPool, *decision]{}
	return &r
}

// Begin returns settled worlds of every small size, with every number of busy machines.
func (r *Reserve) Begin() (all []World) {
	all = slices.Clone(r.From)
	for replicas := range r.Sizes[0] + 1 {
		for excess := range r.Sizes[1] + 1 {
			for busy := range replicas + 1 {
				if len(r.From) == 0 && (r.Max == 0 || replicas+excess <= r.Max) {
					all = append(all, settled(replicas, excess, busy, r.Max, r.Inclusive))
				}
			}
		}
	}
	for i := range all {
		all[i].faults = uint8(r.Faults)
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
	k.plans()
	for who := range w.works {
		k.carryOut(who)
	}
	k.stores()
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
		if step.To != k.from && !step.Fault {
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
func (k *walk) addFact(what string, do func(w *World)) {
	k.addStep(what, func(w *World) string {
		w.turns = [slots]direction{}
		do(w)
		return ""
	})
}

// addFault adds a step that need not happen.
func (k *walk) addFault(what string, do func(w *World) (broken string)) {
	w := k.from
	w.faults--
	broken := do(&w)
	w.forget()
	k.steps = append(k.steps, Step[World]{What: what, To: w, Broken: broken, Fault: true})
}

// addEvent adds a fault that breaks no law by itself.
func (k *walk) addEvent(what string, do func(w *World)) {
	k.addFault(what, func(w *World) string { do(w); return "" })
}

// machines calls f with each machine that exists and meets a condition.
func (k *walk) machines(is func(m *machine, h *host) bool, f func(i int)) {
	for i := range k.from.machines {
		if s := &k.from.machines[i]; s.machine.is.there && is(&s.machine.is, &s.host.is) {
			f(i)
		}
	}
}

// changeMachine changes a Machine, as others than the controller do.
func (w *World) changeMachine(i int, do func(m *machine)) {
	do(&w.machines[i].machine.is)
	w.touchMachine(i, nil)
}

// stores adds that a store shows something.
func (k *walk) stores() {
	w := &k.from
	if !w.deployment.isSeen() {
		k.addFact("The controller sees the MachineDeployment.", func(w *World) { w.deployment.show() })
	}
	if w.silent.is != w.silent.seen {
		k.addFact("The controller sees whether the target cluster responds.", func(w *World) { w.silent.show() })
	}
	for s := range w.sets {
		if !w.sets[s].isSeen() {
			k.addFact("The controller sees "+setName(uint8(s))+".", func(w *World) { w.sets[s].show() })
		}
	}
	for i := range w.machines {
		s := &w.machines[i]
		if !s.machine.isSeen() {
			k.addFact("The controller sees Machine "+name(i)+".", func(w *World) {
				if w.machines[i].machine.show(); w.works[syncing] == (work{}) {
					w.forgetNames()
				}
			})
		}
		if !s.isHostSeen() && !w.silent.is {
			k.addFact("The controller sees the Node and the pods of "+name(i)+".", func(w *World) { w.machines[i].showHost() })
		}
	}
}

// cloudSteps adds the steps of the cloud: it creates machines, boots them, gives up unhealthy ones
// or sees them recover, and removes those that are leaving.
func (k *walk) cloudSteps() {
	become := func(from phase, what string, do func(s *slot)) {
		k.machines(func(m *machine, _ *host) bool { return m.phase == from }, func(i int) {
			k.addStep(name(i)+what, func(w *World) string {
				do(&w.machines[i])
				w.touchMachine(i, nil)
				return ""
			})
		})
	}
	become(unmade, " is made.", func(s *slot) {
		s.machine.is.phase, s.machine.is.failing, s.host.is.closed = pending, false, s.machine.is.marked
	})
	become(terminating, " is gone.", func(s *slot) {
		known := s.machine.seen.leaving()
		if s.machine.is, s.host.is = (machine{}), (host{}); known {
			s.machine.seen, s.host.seen = machine{}, host{}
		}
		s.repeated = false
	})
	if k.from.silent.is {
		k.addStep("The target cluster responds again.", func(w *World) string { w.silent.is = false; return "" })
		return
	}
	become(pending, " is ready.", func(s *slot) { s.machine.is.phase, s.host.is.there = running, true })
	become(unknown, " has been unhealthy for too long.", func(s *slot) { s.machine.is.phase = failed })
	become(unknown, " recovers.", func(s *slot) { s.machine.is.phase = running })
}

// timeSteps adds the times that plans wait for.
func (k *walk) timeSteps() {
	wait := func(of func(m *memory) *moment, what string) {
		if *of(&k.from.memory) == ahead {
			k.addFact(what, func(w *World) { *of(&w.memory) = passed })
		}
	}
	wait(func(m *memory) *moment { return &m.surplus }, "Patience with the surplus ends.")
	wait(func(m *memory) *moment { return &m.retry }, "The time to try again comes.")
	wait(func(m *memory) *moment { return &m.lowered }, "The time to exceed lowered replicas comes.")
	k.machines(func(m *machine, _ *host) bool { return m.preserved }, func(i int) {
		k.addStep(name(i)+" is preserved no longer.", func(w *World) string { w.changeMachine(i, func(m *machine) { m.preserved = false }); return "" })
	})
	d := &k.from.deployment.is
	for i := range slots {
		if d.named.has(i) && !d.due.has(i) {
			k.addStep("The autoscaler's server repeats the deletion of "+name(i)+".", func(w *World) string {
				w.deployment.is.due.add(i)
				w.touchDeployment(nil)
				return ""
			})
		}
	}
}

// disturb adds what users, pods, the cloud and the process itself may do, but need not.
func (k *walk) disturb() {
	k.userFaults()
	k.scalerFaults()
	k.processFaults()
	if k.from.silent.is {
		return
	}
	k.machines(func(m *machine, _ *host) bool { return m.phase == running }, func(i int) {
		k.addEvent("The Node of "+name(i)+" is not ready.", func(w *World) { w.changeMachine(i, func(m *machine) { m.phase = unknown }) })
	})
	k.machines(func(m *machine, _ *host) bool { return m.phase == unmade && !m.failing }, func(i int) {
		k.addEvent(name(i)+" cannot be made.", func(w *World) { w.changeMachine(i, func(m *machine) { m.failing = true }) })
	})
	k.machines(func(m *machine, h *host) bool { return h.busy && !m.leaving() }, func(i int) {
		k.addEvent("The pods of "+name(i)+" end.", func(w *World) { w.machines[i].host.is.busy = false })
	})
	k.machines(func(m *machine, h *host) bool { return m.phase == running && !h.closed && !h.busy }, func(i int) {
		k.addEvent("A pod is bound to "+name(i)+".", func(w *World) { w.machines[i].host.is.busy = true })
	})
}

// processFaults adds what may happen to the process, and to its connection to the target cluster.
func (k *walk) processFaults() {
	restart := func(w *World) {
		w.works[syncing], w.works[releasing], w.memory = work{}, work{}, memory{}
		w.silent.show()
		w.showAll()
	}
	k.addEvent("The process is killed, and starts again.", restart)
	if k.Instances && k.from.works[syncing] != (work{}) && k.from.works[outgoing] == (work{}) {
		k.addEvent("Another instance takes over.", func(w *World) {
			w.works[outgoing] = w.works[syncing]
			w.works[outgoing].remembers = false
			restart(w)
		})
	}
	if k.Silence && !k.from.silent.is {
		k.addEvent("The target cluster responds no longer.", func(w *World) { w.silent.is = true })
	}
}

func (k *walk) userFaults() {
	d, most := &k.from.deployment.is, k.Sizes[0]
	if d.record.counted > 0 {
		most = cmp.Or(k.Max, k.Sizes[0]+k.Sizes[1])
		if k.Beyond {
			most++
		}
	}
	k.changeNumber("A user changes replicas", 0, most, func(d *deployment) *uint8 { return &d.replicas })
	k.changeNumber("A user changes the excess", 0, k.Sizes[1], func(d *deployment) *uint8 { return &d.excess })
	if k.Inclusive {
		k.changeDeployment("A user changes the accounting.", func(d *deployment) { d.inclusive = !d.inclusive })
	}
	if k.Rollouts && k.from.sets[d.template].is.there {
		k.changeDeployment("A user changes the template.", func(d *deployment) { d.template = 1 - d.template })
	}
	if k.Bounds && k.Max > 0 {
		k.changeNumber("A user changes the maximum", 1, k.Max+1, func(d *deployment) *uint8 { return &d.max })
		k.changeDeployment("A user changes whether the bounds can be parsed.", func(d *deployment) { d.unparsed = !d.unparsed })
	}
	if k.Preserve {
		k.machines(func(m *machine, _ *host) bool { return m.phase > pending && !m.leaving() && !m.preserved }, func(i int) {
			k.addEvent("A user preserves "+name(i)+".", func(w *World) { w.changeMachine(i, func(m *machine) { m.preserved = true }) })
		})
	}
}

// changeDeployment adds a change of the MachineDeployment by a user.
func (k *walk) changeDeployment(what string, do func(d *deployment)) {
	k.addEvent(what, func(w *World) {
		do(&w.deployment.is)
		w.touchDeployment(nil)
	})
}

// changeNumber changes a number of the MachineDeployment by one, within the bounds of the search.
func (k *walk) changeNumber(what string, least, most int, of func(d *deployment) *uint8) {
	for _, by := range []int{-1, 1} {
		if n := int(*of(&k.from.deployment.is)) + by; n >= least && n <= most {
			k.changeDeployment(fmt.Sprintf("%s to %d.", what, n), func(d *deployment) { *of(d) = uint8(n) })
		}
	}
}

// scalerSteps completes what an autoscaler has begun.
func (k *walk) scalerSteps() {
	if s := k.from.scaler; s.lowers {
		k.addStep("The autoscaler lowers replicas.", func(w *World) string {
			w.scaler, w.deployment.is.replicas = scaler{}, s.to
			w.touchDeployment(nil)
			return ""
		})
	}
}

// scalerFaults adds what autoscalers may do: Gardener's lowers the priority of a machine and then
// replicas; ours, behind package nodegroup, names machines together with the replicas.
func (k *walk) scalerFaults() {
	if !k.Names || k.from.scaler.lowers || k.from.deployment.is.replicas == 0 {
		return
	}
	k.machines(func(m *machine, _ *host) bool { return m.phase > pending && !m.leaving() && !m.first && !m.preserved }, func(i int) {
		k.addEvent("An autoscaler gives "+name(i)+" priority 1.", func(w *World) {
			w.changeMachine(i, func(m *machine) { m.first = true })
			w.scaler = scaler{lowers: true, to: w.deployment.is.replicas - 1}
		})
		if next := k.from; !next.deployment.is.named.has(i) && next.nameMachine(i) {
			k.addEvent("An autoscaler names "+name(i)+" for deletion.", func(w *World) {
				w.nameMachine(i)
				w.touchDeployment(nil)
			})
		}
	})
}

// nameMachine names a machine for deletion, as the node group does, and reports whether it accepts
// that.
func (w *World) nameMachine(i int) bool {
	actual := *w
	actual.showAll()
	in := actual.known()
	v := in.view()
	var o pool.Objects
	for _, s := range v.Sets {
		o.Sets, o.Machines = append(o.Sets, s.Object), append(o.Machines, s.Machines...)
	}
	for _, n := range v.Nodes {
		o.Nodes = append(o.Nodes, n)
	}
	s := pool.Read(v.Deployment, pool.NewList(o), now)
	g, err := nodegroupplan.NewGroup(s.Deployment)
	if err != nil {
		return false
	}
	members := make([]nodegroupplan.Member, len(s.Machines))
	for n, m := range s.Machines {
		members[n] = nodegroupplan.Member{Machine: m}
	}
	c, err := nodegroupplan.NewRemoval(g, members, s.Rollout.Spread, map[string]bool{name(i): true}, now)
	if err != nil || len(c.Names) == 0 {
		return false
	}
	d, o2 := &w.deployment.is, v.Deployment
	before := o2.Annotations[v1alpha1.AppliedExcessAnnotation]
	if text, set := c.Annotations[v1alpha1.AppliedExcessAnnotation]; set && text != before {
		o2.Annotations[v1alpha1.AppliedExcessAnnotation] = text
		if d.record, err = recordOf(o2); err != nil {
			panic(err) // the node group writes only what can be parsed
		}
	}
	fewer := int(c.Replicas) < int(d.replicas)
	d.replicas = uint8(c.Replicas)
	if d.named.add(i); !fewer {
		d.due = d.named
	}
	return true
}

// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	nodegroupplan "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// Raises models who raises replicas for pods that wait: package release, and beside it an
// autoscaler that asks the node groups' server, and repeats what it asked in vain. Each pod needs a
// machine of its own. Only pods that end make room, and replicas never fall.
type Raises struct {
	// Spare is the excess, Max the maximum number of machines. One machine serves at the beginning.
	Spare, Max int
	// Alone reports whether there is no autoscaler.
	Alone bool
	// Faults is the maximum number of faults in one story, including pods that come.
	Faults int
	// Unguarded disables a guard, to see what it prevents: GuardVersion, CountFromLoop or KeepLoop.
	Unguarded Guard

	plans *memo[seenByRelease, uint8]
	turns *memo[knownCells, turn]
}

// NewRaises returns the model with its memory.
func NewRaises(m Raises) *Raises {
	m.plans, m.turns = &memo[seenByRelease, uint8]{}, &memo[knownCells, turn]{}
	return &m
}

// Begin returns a settled world, whose serving machine is busy or not.
func (m *Raises) Begin() (all []RaiseWorld) {
	for _, busy := range []bool{true, false} {
		w := RaiseWorld{replicas: 1, shown: 1, most: 1, faults: uint8(m.Faults)}
		for i := range 1 + m.Spare {
			c := cell{there: true, ready: true, marked: i > 0, busy: busy && i == 0}
			c.updateStore()
			c.updatePod()
			w.cells[i] = c
		}
		all = append(all, w)
	}
	return all
}

// Actors of this model. Each machine and each store of it has its own.
const (
	raiser Actor = 1 + iota
	scaling
	taints
	replicasStore
	podsStore
	ofCells
)

// raiseWalk collects the steps from one world.
type raiseWalk struct {
	*Raises
	from  RaiseWorld
	steps []Step[RaiseWorld]
}

// Steps returns everything that can happen next.
func (m *Raises) Steps(w RaiseWorld) []Step[RaiseWorld] {
	k := &raiseWalk{Raises: m, from: w}
	k.releaseSteps()
	if !k.Alone {
		k.scalerSteps()
	}
	k.machineSteps()
	k.storeSteps()
	if w.faults > 0 {
		k.disturb()
	}
	return k.steps
}

func (k *raiseWalk) addStep(actor Actor, what string, do func(w *RaiseWorld) (broken string)) {
	w := k.from
	broken := do(&w)
	w.most = max(w.most, w.pods(), w.shownPods())
	k.steps = append(k.steps, Step[RaiseWorld]{What: what, To: w, Broken: broken, Actor: actor})
}

func (k *raiseWalk) addFault(what string, do func(w *RaiseWorld) (broken string)) {
	w := k.from
	w.faults--
	broken := do(&w)
	w.most = max(w.most, w.pods(), w.shownPods())
	k.steps = append(k.steps, Step[RaiseWorld]{What: what, To: w, Broken: broken, Fault: true})
}

// releaseSteps adds the steps of package release: it plans, and writes.
func (k *raiseWalk) releaseSteps() {
	if k.from.raising.by > 0 {
		k.addStep(raiser, "Release raises replicas.", func(w *RaiseWorld) string { return k.write(w) })
		return
	}
	if by := k.plans.planFor(k.seenByRelease(), seenByRelease.decide); by > 0 {
		k.addStep(raiser, fmt.Sprintf("Release decides to raise replicas by %d.", by), func(w *RaiseWorld) string {
			w.raising = raising{by: by, basis: w.newest(releaser)}
			return ""
		})
	}
}

// write raises replicas, unless they have changed since.
func (k *raiseWalk) write(w *RaiseWorld) (broken string) {
	next := w.raising
	w.raising = raising{}
	switch changed := w.replicas != next.basis; {
	case !changed:
		broken = k.setReplicas(w, next.basis+next.by)
	case k.Unguarded == GuardVersion:
		broken = "I9: Release raises replicas though they have changed since."
	}
	w.known[releaser] = w.replicas // from the answer, or read if there is none
	return broken
}

// setReplicas sets replicas, and returns the law that this breaks.
func (k *raiseWalk) setReplicas(w *RaiseWorld, to uint8) string {
	w.replicas = to
	switch {
	case int(to) > k.Max:
		return fmt.Sprintf("I1: Replicas are raised to %d, and max is %d.", to, k.Max)
	case to > w.most:
		return fmt.Sprintf("N12: Replicas are raised to %d, and there were never more than %d pods.", to, w.most)
	}
	return ""
}

// scalerSteps adds the steps of an autoscaler: it begins a loop when it needs machines, looks, and
// asks the server.
func (k *raiseWalk) scalerSteps() {
	switch l := k.from.loop; {
	case l.asks:
		k.addStep(scaling, fmt.Sprintf("The autoscaler asks for %d machines.", l.need), k.askToScale)
	case l.begun:
		k.addStep(scaling, "The autoscaler looks at pods and Nodes.", func(w *RaiseWorld) string {
			if w.loop.asks, w.loop.need = true, w.needed(uint8(k.Max)); w.loop.need == 0 {
				w.loop = loop{}
			}
			return ""
		})
	case k.from.needed(uint8(k.Max)) > 0:
		k.addStep(scaling, "The autoscaler begins a loop.", func(w *RaiseWorld) string {
			w.loop = loop{begun: true, seen: w.newest(grouper), known: true}
			return ""
		})
	}
}

// askToScale is a request of the autoscaler. A write that is refused is decided again, on the
// latest version.
func (k *raiseWalk) askToScale(w *RaiseWorld) (broken string) {
	l := w.loop
	w.loop = loop{}
	seen := w.replicas
	if l.known && k.Unguarded != CountFromLoop {
		seen = min(seen, l.seen)
	}
	g, err := nodegroupplan.NewGroup(w.deployment(k.Max))
	if err != nil {
		return err.Error()
	}
	c, err := nodegroupplan.NewRaise(g, int32(seen), int32(l.need))
	if err != nil {
		return "" // the autoscaler sees the size in its next loop
	}
	if c.To != c.From {
		broken = k.setReplicas(w, uint8(c.To))
	}
	w.known[grouper] = w.replicas
	return broken
}

// knownCells is what decides about the machines.
type knownCells struct {
	replicas, limit, spare uint8
	cells                  [raiseSlots]cell
}

// decide returns what the controller of MachineDeployments does next.
func (k knownCells) decide() turn {
	w := RaiseWorld{replicas: k.replicas}
	var machines []*mcm.Machine
	var pods []*corev1.Pod
	for i := range k.cells {
		c := &k.cells[i]
		if !c.there {
			continue
		}
		m := &machine{there: true, phase: pending, marked: c.marked}
		if c.ready {
			m.phase = running
		}
		o := m.object(i, &deployment{})
		if !c.ready {
			delete(o.Labels, mcm.NodeLabelKey)
		}
		machines = append(machines, o)
		if c.busy {
			pods = append(pods, fullPod("runs-"+name(i), name(i)))
		}
	}
	d := w.deployment(int(k.limit))
	d.Spec.ExcessReplicas, d.Spec.ReserveWitness = ptr.To(int32(k.spare)), k.spare > 0
	return turnOf(d, min(int(k.spare), max(0, int(k.limit)-int(k.replicas))), machines, pods)
}

// machineSteps adds the controller of MachineDeployments, the cloud and the scheduler.
func (k *raiseWalk) machineSteps() {
	w := &k.from
	in := knownCells{replicas: w.replicas, limit: uint8(k.Max), spare: uint8(k.Spare)}
	for i, c := range w.cells {
		in.cells[i] = cell{there: c.there, marked: c.marked, ready: c.ready, busy: c.busy}
	}
	t := k.turns.planFor(in, knownCells.decide)
	if t.moved != "" {
		i := index(t.moved)
		what := map[bool]string{false: t.moved + " is released.", true: t.moved + " is put into reserve."}
		k.addStep(taints, what[t.held], func(w *RaiseWorld) string { w.cells[i].marked = t.held; return "" })
	}
	if all := int(w.count(func(*cell) bool { return true })); all < raiseSlots && t.creates {
		k.addStep(taints, "A machine is created.", func(w *RaiseWorld) string {
			w.cells[all] = cell{there: true, marked: !t.serves}
			return ""
		})
	}
	for i := range w.cells {
		switch c := &w.cells[i]; {
		case c.there && !c.ready:
			k.addStep(ofCells+Actor(i), name(i)+" is ready.", func(w *RaiseWorld) string { w.cells[i].ready = true; return "" })
		case c.ready && !c.marked && !c.busy && w.waiting > 0:
			k.addStep(ofCells+Actor(i), "A pod is bound to "+name(i)+".", func(w *RaiseWorld) string { w.bindPod(i); return "" })
		}
	}
}

// bindPod binds a waiting pod, one that release knows if there is one.
func (w *RaiseWorld) bindPod(i int) {
	if w.cells[i].busy = true; w.unseen < w.waiting {
		w.cells[i].shown.pending = true
	} else {
		w.unseen--
	}
	w.waiting--
}

// storeSteps adds that a store shows the latest version of one object.
func (k *raiseWalk) storeSteps() {
	if k.from.shown != k.from.replicas {
		k.addStep(replicasStore, "The store shows the replicas.", func(w *RaiseWorld) string { w.shown = w.replicas; return "" })
	}
	if k.from.unseen > 0 {
		k.addStep(podsStore, "The store shows a new pod.", func(w *RaiseWorld) string { w.unseen--; return "" })
	}
	for i := range k.from.cells {
		c := &k.from.cells[i]
		if !c.isLatest() {
			k.addStep(ofCells+raiseSlots+Actor(i), "The store shows machine "+name(i)+".", func(w *RaiseWorld) string { w.cells[i].updateStore(); return "" })
		}
		if c.shown.busy != c.busy || c.shown.pending {
			k.addStep(ofCells+2*raiseSlots+Actor(i), "The store shows the pod of "+name(i)+".", func(w *RaiseWorld) string { w.cells[i].updatePod(); return "" })
		}
	}
}

// disturb adds what need not happen.
func (k *raiseWalk) disturb() {
	if int(k.from.pods()) < k.Max {
		k.addFault("A pod comes.", func(w *RaiseWorld) string {
			w.waiting, w.unseen = w.waiting+1, w.unseen+1
			return ""
		})
	}
	for i := range k.from.cells {
		if k.from.cells[i].busy {
			k.addFault("The pod of "+name(i)+" ends.", func(w *RaiseWorld) string { w.cells[i].busy = false; return "" })
		}
	}
	if k.from.raising.by > 0 {
		k.addFault("The write of release is lost.", func(w *RaiseWorld) string { w.raising = raising{}; w.known[releaser] = w.replicas; return "" })
	}
	if l := k.from.loop; l.asks {
		k.addFault("The request of the autoscaler is lost.", func(w *RaiseWorld) string { w.loop = loop{}; return "" })
	}
	k.addFault("The process is killed, and starts again.", func(w *RaiseWorld) string {
		w.restart()
		if w.loop.known = false; k.Unguarded != KeepLoop {
			w.loop = loop{} // the autoscaler begins another one
		}
		return ""
	})
}

// Rest returns what is wrong with a world at rest.
func (m *Raises) Rest(w RaiseWorld) string {
	serving, spare := w.count(func(c *cell) bool { return !c.marked }), w.count(func(c *cell) bool { return c.marked })
	switch {
	case w.waiting > 0 && int(w.replicas) < m.Max && (spare > 0 || !m.Alone):
		return fmt.Sprintf("I5: At rest, %d pods wait, and replicas are %d of %d.", w.waiting, w.replicas, m.Max)
	case serving != w.replicas:
		return fmt.Sprintf("I5: At rest, %d machines serve of %d.", serving, w.replicas)
	}
	return ""
}

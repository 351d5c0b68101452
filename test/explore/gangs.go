// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	releaseplan "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// Gangs models two groups of pods that need the same reserve. The pods of a group start together, and
// each needs a machine of its own. Package release raises replicas for them, and the scheduler starts a
// group once there are machines for all its pods, whichever group they were released for.
type Gangs struct {
	// Sizes are how many pods each group has. Spare is the excess, Max the maximum number of machines.
	Sizes      [2]int
	Spare, Max int
	// Faults is the maximum number of faults in one story, including pods that come and end.
	Faults int
	// Unguarded disables a guard, to see what it prevents: GuardVersion or TogetherOnly.
	Unguarded Guard

	plans *memo[seenGangs, uint8]
	turns *memo[knownCells, turn]
}

// NewGangs returns the model with its memory.
func NewGangs(m Gangs) *Gangs {
	m.plans, m.turns = &memo[seenGangs, uint8]{}, &memo[knownCells, turn]{}
	return &m
}

// Begin returns a settled world: one machine serves, which is free or runs a pod of neither group.
func (m *Gangs) Begin() (all []GangWorld) {
	for _, runs := range []uint8{stranger, nothing} {
		w := GangWorld{replicas: 1, shown: 1, faults: uint8(m.Faults)}
		for i := range 1 + m.Spare {
			c := gangCell{there: true, ready: true, marked: i > 0}
			if i == 0 {
				c.runs = runs
			}
			c.updateStore()
			c.shown.runs = c.runs
			w.cells[i] = c
		}
		if runs == nothing {
			w.room = 1
		}
		all = append(all, w)
	}
	return all
}

// gangWalk collects the steps from one world.
type gangWalk struct {
	*Gangs
	from  GangWorld
	steps []Step[GangWorld]
}

// Steps returns everything that can happen next.
func (m *Gangs) Steps(w GangWorld) []Step[GangWorld] {
	k := &gangWalk{Gangs: m, from: w}
	k.releaseSteps()
	k.machineSteps()
	k.schedulerSteps()
	k.storeSteps()
	if w.faults > 0 {
		k.disturb()
	}
	return k.steps
}

func (k *gangWalk) addStep(actor Actor, what string, do func(w *GangWorld) (broken string)) {
	w := k.from
	broken := do(&w)
	k.steps = append(k.steps, Step[GangWorld]{What: what, To: w, Broken: broken, Actor: actor})
}

func (k *gangWalk) addFault(what string, do func(w *GangWorld)) {
	w := k.from
	w.faults--
	do(&w)
	k.steps = append(k.steps, Step[GangWorld]{What: what, To: w, Fault: true})
}

// Actors of this model beside those of Raises.
const (
	groupsStore = ofCells + 3*raiseSlots + iota
	ofGroups
)

// releaseSteps adds the steps of package release: it plans, and writes.
func (k *gangWalk) releaseSteps() {
	if k.from.raising.by > 0 {
		k.addStep(raiser, "Release raises replicas.", k.write)
		return
	}
	if by := k.plans.planFor(k.seen(), seenGangs.decide); by > 0 {
		k.addStep(raiser, fmt.Sprintf("Release decides to raise replicas by %d.", by), func(w *GangWorld) string {
			w.raising = raising{by: by, basis: w.newest()}
			return ""
		})
	}
}

// write raises replicas, unless they have changed since.
func (k *gangWalk) write(w *GangWorld) string {
	next := w.raising
	w.raising = raising{}
	changed := w.replicas != next.basis
	if changed && k.Unguarded == GuardVersion {
		return "I9: Release raises replicas though they have changed since."
	}
	if !changed {
		w.replicas = next.basis + next.by
	}
	w.known = w.replicas
	if int(w.replicas) > k.Max {
		return fmt.Sprintf("I1: Replicas are raised to %d, and max is %d.", w.replicas, k.Max)
	}
	return ""
}

// machineSteps adds the controller of MachineDeployments and the cloud.
func (k *gangWalk) machineSteps() {
	w := &k.from
	in := knownCells{replicas: w.replicas, limit: uint8(k.Max), spare: uint8(k.Spare)}
	for i, c := range w.cells {
		in.cells[i] = cell{there: c.there, marked: c.marked, ready: c.ready, busy: c.runs != nothing}
	}
	t := k.turns.planFor(in, knownCells.decide)
	if t.moved != "" {
		i := index(t.moved)
		what := map[bool]string{false: t.moved + " is released.", true: t.moved + " is put into reserve."}
		k.addStep(taints, what[t.held], func(w *GangWorld) string { w.cells[i].marked = t.held; return "" })
	}
	if all := w.count(func(*gangCell) bool { return true }); all < raiseSlots && t.creates {
		k.addStep(taints, "A machine is created.", func(w *GangWorld) string {
			w.cells[all] = gangCell{there: true, marked: !t.serves}
			return ""
		})
	}
	for i, c := range w.cells {
		if c.there && !c.ready {
			k.addStep(ofCells+Actor(i), name(i)+" is ready.", func(w *GangWorld) string { w.cells[i].ready = true; return "" })
		}
	}
}

// schedulerSteps adds that the scheduler starts a group that has machines for all its pods.
func (k *gangWalk) schedulerSteps() {
	for g := range k.Sizes {
		waits, need := int(k.from.groups[g].waiting), k.need(&k.from, g)
		if waits == 0 || !k.from.groups[g].exists || waits < need || k.from.free() < max(1, need) {
			continue
		}
		k.addStep(ofGroups+Actor(g), "Pods of "+groupName(g)+" start.", func(w *GangWorld) string {
			for i := range w.cells {
				if w.cells[i].isFree() && w.groups[g].waiting > 0 {
					w.bindPod(g, i)
				}
			}
			if w.groups[1-g].waiting > 0 {
				w.room += uint8(k.Sizes[1-g])
			}
			return ""
		})
	}
}

// need is how many pods of a group still have to start together.
func (m *Gangs) need(w *GangWorld, g int) int {
	return max(0, m.Sizes[g]-w.count(func(c *gangCell) bool { return c.runs == uint8(1+g) }))
}

// storeSteps adds that a store shows the latest version of one object.
func (k *gangWalk) storeSteps() {
	if k.from.shown != k.from.replicas {
		k.addStep(replicasStore, "The store shows the replicas.", func(w *GangWorld) string { w.shown = w.replicas; return "" })
	}
	for g, group := range k.from.groups {
		if group.unseen > 0 && group.behind == 0 {
			k.addStep(podsStore, "The store shows a new pod of "+groupName(g)+".", func(w *GangWorld) string { w.groups[g].unseen--; return "" })
		}
		if group.gone > 0 {
			k.addStep(podsStore, "The store shows that a pod of "+groupName(g)+" is gone.", func(w *GangWorld) string { w.forgetPod(g); return "" })
		}
		if group.known != group.exists {
			k.addStep(groupsStore, "The store shows PodGroup "+groupName(g)+".", func(w *GangWorld) string { w.groups[g].known = w.groups[g].exists; return "" })
		}
	}
	for i := range k.from.cells {
		c := &k.from.cells[i]
		if !c.isLatest() {
			k.addStep(ofCells+raiseSlots+Actor(i), "The store shows machine "+name(i)+".", func(w *GangWorld) string { w.cells[i].updateStore(); return "" })
		}
		if !c.showsPod() {
			k.addStep(ofCells+2*raiseSlots+Actor(i), "The store shows the pod of "+name(i)+".", func(w *GangWorld) string { w.updatePod(i); return "" })
		}
	}
}

// disturb adds what need not happen.
func (k *gangWalk) disturb() {
	for g, size := range k.Sizes {
		all := int(k.from.groups[g].waiting) + k.from.count(func(c *gangCell) bool { return c.runs == uint8(1+g) })
		if all < size {
			k.addFault(fmt.Sprintf("%d pods of %s come.", size-all, groupName(g)), func(w *GangWorld) {
				n := uint8(size - all)
				group := &w.groups[g]
				group.waiting, group.unseen, group.exists, group.behind = group.waiting+n, group.unseen+n, true, group.behind|w.before()
			})
		}
		if k.from.groups[g].waiting > 0 {
			k.addFault("The waiting pods of "+groupName(g)+" are deleted.", func(w *GangWorld) {
				gone := &w.groups[g]
				w.room += gone.waiting
				gone.waiting, gone.unseen, gone.gone = 0, 0, gone.gone+gone.waiting-gone.unseen
			})
		}
	}
	for i, c := range k.from.cells {
		if c.runs != nothing {
			k.addFault("The pod of "+name(i)+" ends.", func(w *GangWorld) { w.endPod(i) })
		}
	}
	if int(k.from.replicas) < k.Max {
		k.addFault("An autoscaler raises replicas by 1.", func(w *GangWorld) { w.replicas++; w.room++ })
	}
	if k.from.raising.by > 0 {
		k.addFault("The write of release is lost.", func(w *GangWorld) { w.raising = raising{}; w.known = w.replicas })
	}
	k.addFault("The process is killed, and starts again.", func(w *GangWorld) { w.restart() })
}

// Rest returns what is wrong with a world at rest.
func (m *Gangs) Rest(w GangWorld) string {
	spare := w.count(func(c *gangCell) bool { return c.marked && c.ready })
	left := min(spare, m.Max-int(w.replicas))
	for g := range m.Sizes {
		waits, need := int(w.groups[g].waiting), m.need(&w, g)
		if w.groups[g].exists && waits > 0 && waits >= need && w.free()+left >= max(1, need) {
			return fmt.Sprintf("I5: At rest, %d pods of %s wait, %d machines are free, and %d can be released.", waits, groupName(g), w.free(), left)
		}
	}
	if free := w.free(); free > int(w.room) {
		return fmt.Sprintf("G1: At rest, %d machines serve that no group starts on; %d are known to be free.", free, w.room)
	}
	return ""
}

// seenGangs is what package release decides from.
type seenGangs struct {
	replicas, limit uint8
	sizes, waiting  [2]uint8
	known           [2]bool
	alone           bool
	cells           [raiseSlots]gangCell
}

func (k *gangWalk) seen() seenGangs {
	in := seenGangs{replicas: k.from.newest(), limit: uint8(k.Max), alone: k.Unguarded == TogetherOnly}
	for g, group := range k.from.groups {
		in.sizes[g], in.waiting[g], in.known[g] = uint8(k.Sizes[g]), k.from.shownWaiting(g), group.known
	}
	for i := range k.from.cells {
		s := k.from.cells[i].shown
		in.cells[i] = gangCell{there: s.there, marked: s.marked, ready: s.ready, runs: s.runs}
	}
	return in
}

// decide makes a plan.
func (in seenGangs) decide() (by uint8) {
	w := RaiseWorld{replicas: in.replicas}
	for i, c := range in.cells {
		w.cells[i] = cell{there: c.there, marked: c.marked, ready: c.ready, busy: c.runs != nothing}
	}
	limit := int(in.limit)
	p := releaseplan.Pool{Key: namespace + "/pool", Replicas: int(in.replicas), Max: limit, NodeOf: map[string]string{}, Sample: fullNode("sample", false)}
	p.Reserve = w.reserveView(limit)
	v := releaseplan.View{Now: now, Settings: releaseplan.Settings{Patience: time.Hour}, Groups: map[string]releaseplan.PodGroup{}}
	var bound [2]int
	for i, c := range in.cells {
		if !c.there || !c.ready {
			continue
		}
		n := releaseplan.Node{Object: fullNode(name(i), c.marked)}
		if c.runs != nothing {
			n.Pods = append(n.Pods, fit.NewPod(fullPod("runs-"+name(i), name(i)), nil))
		}
		if g := int(c.runs) - 1; g >= 0 && g < len(bound) {
			bound[g]++
		}
		v.Nodes = append(v.Nodes, n)
		p.NodeOf[name(i)] = name(i)
	}
	for g := range in.waiting {
		if in.known[g] && !in.alone {
			v.Groups[namespace+"/"+groupName(g)] = releaseplan.PodGroup{Created: now.Add(time.Duration(g-len(in.waiting)) * time.Minute), Least: int(in.sizes[g]), Bound: bound[g]}
		}
		for i := range in.waiting[g] {
			pod := fullPod(fmt.Sprintf("%s-%d", groupName(g), i), "")
			if !in.alone {
				pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(groupName(g))}
			}
			v.Waiting = append(v.Waiting, fit.NewPod(pod, &fit.Lookups{}))
		}
	}
	v.Pools = []releaseplan.Pool{p}
	for _, r := range releaseplan.New(v).Raises {
		by += uint8(r.By)
	}
	return by
}

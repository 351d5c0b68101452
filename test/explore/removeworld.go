// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	nodegroupplan "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// overdueSeconds is how long a named machine may still exist before its deletion is repeated.
const overdueSeconds = uint8(pool.Overdue / time.Second)

// sized is a MachineDeployment with bounds. Times are seconds, of which only the order counts, and
// whether they are far apart; 0 is never.
type sized struct {
	// applied are the replicas that machine-controller-manager may act on: growth may still be to
	// be split over zones.
	replicas, applied uint8
	// named is when each machine was named for deletion, and changed when replicas were changed
	// last.
	named   [zoneSlots]uint8
	changed uint8
}

// callKind is what an autoscaler asks of the node groups' server.
type callKind uint8

const (
	noCall callKind = iota
	removal
	withdrawal
)

// call is a call in progress.
type call struct {
	kind callKind
	// machine is the number of the machine to remove, and delta how many machines are withdrawn.
	machine, delta uint8
	// decided reports whether there is a patch from base to next, lost whether an answer to it was
	// lost. specs is how often the spec has changed since, and outdated whether anything has.
	decided, lost, outdated bool
	specs                   uint8
	base, next              sized
}

// RemovalWorld is a MachineDeployment with its machines, what the node groups' server knows of
// them, and an autoscaler that asks it.
type RemovalWorld struct {
	is    sized
	units [zoneSlots]unit
	// shown and shownUnits are what the stores of the server show. answer is what the API server
	// answered to its last write or read, if the store does not show as much yet; current reports
	// whether what the server knows is the latest version.
	shown             sized
	shownUnits        [zoneSlots]unit
	answer            sized
	answered, current bool
	// recent are the machines that the server knows to have been named a short time ago.
	recent [zoneSlots]bool
	call   call
	// unneeded are the machines that the autoscaler removes, until that has been answered. counted
	// are those for which replicas have been lowered.
	unneeded, counted [zoneSlots]bool
	clock             uint8
	// excused reports whether a machine failed, and was being replaced, while it was removed: one
	// machine more may go.
	excused bool
	// owed is how many replicas there should be: replicas fall once for each machine that goes.
	owed   uint8
	faults uint8
}

// newest is what the server knows of the MachineDeployment.
func (w *RemovalWorld) newest() sized {
	if w.answered {
		return w.answer
	}
	return w.shown
}

// change makes a new version of the MachineDeployment.
func (w *RemovalWorld) change(to sized) {
	if w.call.decided {
		w.call.outdated = true
		if to.replicas != w.is.replicas {
			w.call.specs = min(w.call.specs+1, 2)
		}
	}
	w.is, w.current = to, false
}

// record remembers what the API server returned.
func (w *RemovalWorld) record() {
	w.answer, w.answered, w.current = w.is, true, true
	w.noteNames()
}

func (w *RemovalWorld) noteNames() {
	known := w.newest()
	for at, since := range known.named {
		w.recent[at] = w.recent[at] || since > 0
	}
}

// updateStore makes the store show the MachineDeployment.
func (w *RemovalWorld) updateStore() {
	w.shown, w.answer, w.answered, w.current = w.is, sized{}, false, true
	w.noteNames()
}

// restart forgets all that is only in memory, and lists everything again. The call fails.
func (w *RemovalWorld) restart() {
	w.recent = [zoneSlots]bool{}
	w.endCall(false)
	w.shownUnits = w.units
	w.updateStore()
}

// forget removes what no longer distinguishes worlds.
func (w *RemovalWorld) forget() {
	for at := zoneSlots - 1; at >= 0; at-- {
		if !w.units[at].there && !w.shownUnits[at].there && !w.isNamed(at) && int(w.call.machine) != at+1 {
			w.removeSlot(at)
		}
	}
	w.orderTimes()
}

func (w *RemovalWorld) versions() [5]*sized {
	return [...]*sized{&w.is, &w.shown, &w.answer, &w.call.base, &w.call.next}
}

func (w *RemovalWorld) isNamed(at int) bool {
	all := w.versions()
	return slices.ContainsFunc(all[:], func(s *sized) bool { return s.named[at] > 0 })
}

func (w *RemovalWorld) removeSlot(at int) {
	last := zoneSlots - 1
	closeGap := func(flags *[zoneSlots]bool) { copy(flags[at:], flags[at+1:]); flags[last] = false }
	copy(w.units[at:], w.units[at+1:])
	copy(w.shownUnits[at:], w.shownUnits[at+1:])
	w.units[last], w.shownUnits[last] = unit{}, unit{}
	closeGap(&w.recent)
	closeGap(&w.unneeded)
	closeGap(&w.counted)
	for _, s := range w.versions() {
		copy(s.named[at:], s.named[at+1:])
		s.named[last] = 0
	}
	if int(w.call.machine) > at+1 {
		w.call.machine--
	}
}

// orderTimes makes times as small as their order, and whether they are far apart, allows.
func (w *RemovalWorld) orderTimes() {
	used := [256]bool{}
	used[w.clock] = true
	for _, s := range w.versions() {
		used[s.changed] = true
		for _, t := range s.named {
			used[t] = true
		}
	}
	to, last, next := [256]uint8{}, 0, uint8(1) // one is left for the second before the first time
	for t := 1; t < len(used); t++ {
		if !used[t] {
			continue
		}
		if next++; last > 0 && t-last >= int(overdueSeconds) {
			next += overdueSeconds - 1
		}
		to[t], last = next, t
	}
	w.clock = to[w.clock]
	for _, s := range w.versions() {
		s.changed = to[s.changed]
		for at := range s.named {
			s.named[at] = to[s.named[at]]
		}
	}
}

// instant returns a time of this model, and secondsOf the reverse.
func instant(t uint8) time.Time { return now.Add(time.Duration(t) * time.Second) }

func secondsOf(t time.Time) uint8 { return uint8(t.Sub(now) / time.Second) }

// object returns the MachineDeployment with its bounds.
func (s *sized) object(least, most int) *machineapi.MachineDeployment {
	d := &machineapi.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: namespace, UID: "pool", Annotations: map[string]string{
		machineapi.BoundsAnnotation: fmt.Sprintf("%d:%d", least, most), machineapi.AppliedReplicasAnnotation: fmt.Sprint(s.applied)}}}
	d.Spec.Replicas = int32(s.replicas)
	var items []string
	for at, t := range s.named {
		if t > 0 {
			items = append(items, unitName(0, at)+"~"+instant(t).Format(time.RFC3339))
		}
	}
	if len(items) > 0 {
		d.Annotations[machineutils.TriggerDeletionByMCM] = strings.Join(items, ",")
	}
	if s.changed > 0 {
		d.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime] = instant(s.changed).Format(time.RFC3339)
	}
	return d
}

// sizedOf reads a MachineDeployment.
func sizedOf(d *machineapi.MachineDeployment) sized {
	s := sized{replicas: uint8(d.Spec.Replicas)}
	n, _ := pool.AppliedReplicas(d)
	s.applied = uint8(n)
	for text, t := range pool.Named(d) {
		s.named[unitIndex(text)] = secondsOf(t)
	}
	if t, err := time.Parse(time.RFC3339, d.Annotations[machineutils.LastDeploymentReplicaChangeByScalerTime]); err == nil {
		s.changed = secondsOf(t)
	}
	return s
}

// String describes the world in one line.
func (w RemovalWorld) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", w.is)
	if known := w.newest(); known != w.is {
		fmt.Fprintf(&b, " (known: %s)", known)
	}
	for at := range w.units {
		u, seen := &w.units[at], &w.shownUnits[at]
		if !u.there && !seen.there {
			continue
		}
		words := []string{phaseNames[u.phase]}
		add := func(condition bool, word string) {
			if condition {
				words = append(words, word)
			}
		}
		add(!u.there, "gone")
		add(u.marked, "reserve")
		add(w.unneeded[at], "unneeded")
		add(w.counted[at], "counted")
		add(!seen.there, "unseen")
		add(seen.there && *seen != *u, "seen as "+phaseNames[seen.phase])
		fmt.Fprintf(&b, " %s:[%s]", unitName(0, at), strings.Join(words, " "))
	}
	switch c := &w.call; {
	case c.decided:
		fmt.Fprintf(&b, " to write: %s", c.next)
	case c.kind == removal:
		fmt.Fprintf(&b, " asked to remove %s", unitName(0, int(c.machine)-1))
	case c.kind == withdrawal:
		fmt.Fprintf(&b, " asked to withdraw %d", c.delta)
	}
	return b.String() + fmt.Sprintf(" clock=%d owed=%d", w.clock, w.owed)
}

func (s sized) String() string {
	text := fmt.Sprintf("replicas=%d applied=%d", s.replicas, s.applied)
	for at, t := range s.named {
		if t > 0 {
			text += fmt.Sprintf(" %s named at %d", unitName(0, at), t)
		}
	}
	if s.changed > 0 {
		text += fmt.Sprintf(" changed at %d", s.changed)
	}
	return text
}

// knownGroup is what the node groups' server decides from.
type knownGroup struct {
	is     sized
	units  [zoneSlots]unit
	recent [zoneSlots]bool
	// gone reports whether the machine of the call no longer exists.
	gone  bool
	clock uint8
	call  call
}

// removePlan is a decision of the server.
type removePlan struct {
	next         sized
	idle, failed bool
}

// decide makes a decision.
func (k knownGroup) decide(m *Removals) removePlan {
	d := k.is.object(m.Min, m.Max)
	g, err := nodegroupplan.NewGroup(d)
	if err != nil {
		return removePlan{failed: true}
	}
	var c nodegroupplan.Change
	if k.call.kind == removal {
		going := map[string]bool{unitName(0, int(k.call.machine)-1): true}
		c, err = nodegroupplan.NewRemoval(g, k.members(), false, going, instant(k.clock))
	} else {
		c = nodegroupplan.NewWithdrawal(g, k.members(), -int32(k.call.delta))
	}
	return removePlan{next: changed(k.is, c, m), idle: c.IsEmpty(), failed: err != nil}
}

// changed returns a MachineDeployment after a change.
func changed(is sized, c nodegroupplan.Change, m *Removals) sized {
	d := is.object(m.Min, m.Max)
	if c.From != c.To {
		d.Spec.Replicas = c.Replicas
	}
	for key, text := range c.Annotations {
		if d.Annotations[key] = text; text == "" {
			delete(d.Annotations, key)
		}
	}
	return sizedOf(d)
}

// members returns the machines of the group, as far as the server knows them.
func (k *knownGroup) members() (all []nodegroupplan.Member) {
	for at := range k.units {
		u := &k.units[at]
		isRemoved := int(k.call.machine) == at+1
		if !u.there && !isRemoved {
			continue
		}
		n := unnamed
		if k.is.named[at] > 0 {
			n = named
		}
		one := nodegroupplan.Member{Machine: u.member(0, at, n).Machine, Gone: k.recent[at] || isRemoved && k.gone}
		all = append(all, one)
	}
	return all
}

// sizedUnits is what decides about the machines.
type sizedUnits struct {
	is     sized
	units  [zoneSlots]unit
	excess int
	bounds [2]int
}

// decide returns what the controller of MachineDeployments does next.
func (k sizedUnits) decide() turn {
	var machines []*mcm.Machine
	for at := range k.units {
		if u := &k.units[at]; u.there {
			machines = append(machines, u.object(0, at))
		}
	}
	d := k.is.object(k.bounds[0], k.bounds[1])
	d.Spec.ExcessReplicas, d.Spec.ReserveWitness = ptr.To(int32(k.excess)), k.excess > 0
	return turnOf(d, k.excess, machines, nil)
}

// machineSteps adds the controller of MachineDeployments and the cloud, the reminders of the server, and
// what splits growth over zones.
func (k *removeWalk) machineSteps() {
	w := &k.from
	var t turn
	drops := k.dropNames()
	if !drops {
		t = k.turns.planFor(sizedUnits{w.is, w.units, k.excess(w), [2]int{k.Min, k.Max}}, sizedUnits.decide)
	}
	if t.moved != "" {
		at := unitIndex(t.moved)
		what := map[bool]string{false: " is released.", true: " is put into reserve."}
		k.addStep(makers, t.moved+what[t.held], func(w *RemovalWorld) string { w.units[at].marked = t.held; return "" })
	}
	last := -1
	for at := range w.units {
		if w.units[at].there || w.shownUnits[at].there || w.isNamed(at) || int(w.call.machine) == at+1 {
			last = at
		}
	}
	for at := range w.units {
		k.unitStep(at, !drops && len(t.deletes) == 0)
	}
	if at := last + 1; at < zoneSlots && t.creates {
		k.addStep(makers, "The controller creates "+unitName(0, at)+".", func(w *RemovalWorld) string {
			w.units[at] = unit{there: true, phase: pending, marked: !t.serves, fresh: w.call.decided}
			return ""
		})
	}
	for _, name := range t.deletes {
		at := unitIndex(name)
		k.addStep(makers, "The controller deletes "+name+".", func(w *RemovalWorld) string { return k.delete(w, at) })
	}
	k.remind()
	if w.is.applied != w.is.replicas {
		k.addStep(splitter, "Growth is applied.", func(w *RemovalWorld) string {
			to := w.is
			to.applied = to.replicas
			w.change(to)
			return ""
		})
	}
}

// unitStep adds what happens to one machine. Before one is ready, a call that was decided before it
// was created ends, and the controller drops names and deletes what it has to: that takes seconds.
func (k *removeWalk) unitStep(at int, boots bool) {
	u, what := k.from.units[at], unitName(0, at)
	switch {
	case u.there && u.phase == pending && boots && !u.fresh:
		k.addStep(makers, what+" is ready.", func(w *RemovalWorld) string { w.units[at].phase = running; return "" })
	case u.there && u.phase == terminating:
		k.addStep(makers, what+" is gone.", func(w *RemovalWorld) string { w.units[at] = unit{}; return "" })
	}
}

// dropNames adds that the controller drops the names of machines that are leaving or gone, and reports whether
// there are any: a plan that sees one writes that before anything else.
func (k *removeWalk) dropNames() (any bool) {
	for at := range k.from.units {
		if k.from.is.named[at] == 0 || k.from.units[at].stays() {
			continue
		}
		any = true
		k.addStep(makers, "The controller removes the name "+unitName(0, at)+".", func(w *RemovalWorld) string {
			to := w.is
			to.named[at] = 0
			w.change(to)
			return ""
		})
	}
	return any
}

// delete deletes a machine, and returns the law that this breaks: machines that no client removed
// stay.
func (k *removeWalk) delete(w *RemovalWorld, at int) (broken string) {
	if u := &w.units[at]; u.serves() && w.is.named[at] == 0 && !w.excused {
		broken = fmt.Sprintf("N8: %s serves and is deleted, though nobody removed it.", unitName(0, at))
	}
	w.units[at].phase = terminating
	return broken
}

// remind adds that the server repeats the deletion of machines that should be gone.
func (k *removeWalk) remind() {
	known := k.from.newest()
	g, err := nodegroupplan.NewGroup(known.object(k.Min, k.Max))
	if err != nil || !k.from.current || k.Unguarded == RemindNames {
		return
	}
	there := map[string]bool{}
	for at := range k.from.shownUnits {
		if u := &k.from.shownUnits[at]; u.there && u.phase != terminating {
			there[unitName(0, at)] = true
		}
	}
	if c := nodegroupplan.NewReminder(g, there, instant(k.from.clock)); !c.IsEmpty() {
		k.addStep(serving, "The server repeats the deletion of machines.", func(w *RemovalWorld) string {
			w.change(changed(w.is, c, k.Removals))
			w.record()
			return ""
		})
	}
}

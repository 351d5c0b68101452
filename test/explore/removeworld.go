// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
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

// isDue reports whether a named machine goes even if there are not too many.
func (s *sized) isDue(at int) bool { return s.named[at] > 0 && s.named[at] <= s.changed }

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

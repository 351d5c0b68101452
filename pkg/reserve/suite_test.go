// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/test/laws"
)

// every is the share of the walk's states that are walked: the whole is -every=1.
var every = flag.Int("every", 31, "walk every n-th of the small states")

func TestMain(m *testing.M) { laws.Main(m, 2000) }

func TestReserve(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reserve")
}

// start is the beginning of every world's time.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world carries out plans as a controller does that creates and deletes machines, and answers as the machine
// controller does, one small step at a time. It is deterministic.
type world struct {
	view View
	born int
	// outage says that no machine can be created now, healthy that Unknown machines stay so, stuck names one that boots
	// for ever.
	outage, healthy bool
	stuck           string
	// log is one line per thing that happened.
	log []string
	// evicted counts evictions, waiting is how many of those pods have no machine yet.
	evicted, waiting int
	// broken is the first invariant that was broken.
	broken error
}

// old is the set that a rollout replaces.
const (
	current = "new"
	old     = "old"
)

func newWorld(r, x, a, most int) *world {
	return &world{view: View{
		Replicas: r, Wish: x, Max: most, Applied: Applied{Excess: a, Max: most},
		CurrentSet: current, Now: start, Patience: 10 * time.Minute, BootPatience: 20 * time.Minute,
		SetReplicas: pool.VisibleReplicas(r, Applied{Excess: a, Max: most}),
	}}
}

// wanted is X: what max leaves of the wish beside R.
func wanted(v View, r int) int { return max(0, min(v.Wish, v.Max-r)) }

// settled is a world at rest: r machines with a pod each, and x in reserve.
func settled(r, x, most int) *world {
	w := newWorld(r, x, max(0, min(x, most-r)), most)
	for i := range r + wanted(w.view, r) {
		m := w.add(running(i >= r))
		if i < r {
			m.Pods = 1
		}
	}
	return w
}

func running(reserve bool) Machine {
	return Machine{Registered: true, Phase: mcm.MachineRunning, HasProviderID: true, Reserve: reserve, Set: current}
}

// add puts a machine into the world, newer than all others.
func (w *world) add(m Machine) *Machine {
	m.Name = string(rune('a' + w.born%26))
	if w.born >= 26 {
		m.Name += fmt.Sprint(w.born / 26)
	}
	m.Created = start.Add(time.Duration(w.born-100) * time.Second)
	if w.born >= len(w.view.Machines) && w.view.Now.After(start) {
		m.Created = w.view.Now
	}
	w.born++
	w.view.Machines = append(w.view.Machines, m)
	return &w.view.Machines[len(w.view.Machines)-1]
}

func (w *world) machine(name string) *Machine {
	for i := range w.view.Machines {
		if w.view.Machines[i].Name == name {
			return &w.view.Machines[i]
		}
	}
	panic("no machine " + name)
}

func (w *world) note(format string, args ...any) {
	if len(w.log) < 200 {
		w.log = append(w.log, fmt.Sprintf(format, args...))
	}
}

// carryOut does what a plan says about marks and numbers.
func (w *world) carryOut(p Plan) {
	for _, move := range p.Moves {
		m := w.machine(move.Name)
		w.check(m.HasProviderID && !m.Leaving(), "law 7: %s is moved", m.Name)
		w.check(!move.Reserve || !m.Busy(), "law 4: busy %s is marked", m.Name)
		m.Reserve, m.Open = move.Reserve, move.Reserve && !m.Registered
		w.note("%s %s", move.Name, move.Why)
	}
	for _, o := range p.Owners {
		w.machine(o.Name).Owner = o.Owner
	}
	if p.Replicas > w.view.Replicas {
		w.view.NamedSpares = max(0, w.view.NamedSpares-(p.Replicas-w.view.Replicas))
		w.note("R %d -> %d", w.view.Replicas, p.Replicas)
	}
	w.view.Replicas, w.view.Applied = p.Replicas, p.Applied
	w.view.SurplusSince, w.view.Retry, w.view.Lowered = p.SurplusSince, p.Retry, p.Lowered
	w.view.SetReplicas = p.Total
}

func (w *world) check(holds bool, format string, args ...any) {
	if !holds && w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

// grow lets machines go on by one step: they are made, get ready, fail, and are gone at last.
func (w *world) grow() bool {
	moved := w.bind()
	for i := range w.view.Machines {
		m := &w.view.Machines[i]
		before := *m
		m.Registered = m.Registered || m.Ready() || m.Unhealthy()
		m.Open = m.Open && !m.Registered
		switch {
		case m.Deleted && m.Phase != mcm.MachineTerminating:
			m.Phase = mcm.MachineTerminating
		case m.Leaving() || m.Name == w.stuck:
		case m.Phase == mcm.MachineUnknown && !w.healthy:
			m.Phase = mcm.MachineFailed
		case w.outage && !m.HasProviderID:
			m.Phase, m.Failing = mcm.MachineCrashLoopBackOff, true
		case !m.HasProviderID:
			m.Phase, m.Failing, m.HasProviderID = mcm.MachinePending, false, true
		case m.Phase == mcm.MachinePending || m.Phase == mcm.MachineCrashLoopBackOff || m.Phase == "":
			m.Phase, m.Failing = mcm.MachineRunning, false
		}
		moved = moved || *m != before
	}
	return moved
}

// bind gives evicted pods to machines that serve and are empty, new ones first.
func (w *world) bind() bool {
	before := w.waiting
	for _, set := range []string{current, old} {
		for i := range w.view.Machines {
			m := &w.view.Machines[i]
			if w.waiting > 0 && m.Set == set && !m.Reserve && m.Ready() && !m.Leaving() && !m.Busy() {
				m.Pods++
				w.waiting--
			}
		}
	}
	return w.waiting != before
}

// bury removes what was terminating.
func (w *world) bury() bool {
	before := len(w.view.Machines)
	w.view.Machines = slices.DeleteFunc(w.view.Machines, func(m Machine) bool { return m.Phase == mcm.MachineTerminating })
	return len(w.view.Machines) != before
}

// pass is one step of everything. It says whether anything happened.
func (w *world) pass() bool {
	p := Decide(w.view)
	rests := p.AtRest(w.view)
	w.carryOut(p)
	moved := w.manage(p)
	moved = w.bury() || moved
	return w.grow() || moved || !rests
}

// settle runs until nothing happens any more, with time passing whenever the plan waits for it, and returns the last
// plan. It gives up after so many passes that no small world needs them.
func (w *world) settle() (Plan, bool) {
	for range 200 {
		w.view.Now = w.view.Now.Add(time.Second)
		if w.pass() {
			continue
		}
		p := Decide(w.view)
		if p.Again == 0 || w.outage {
			return p, true
		}
		w.view.Now = w.view.Now.Add(p.Again)
	}
	return Decide(w.view), false
}

// creations returns how many machines a plan lets come now, and how many of them serve.
func creations(v View, p Plan) (n, serve int) {
	present := 0
	for _, m := range v.Machines {
		if m.Phase != mcm.MachineTerminating {
			present++
		}
	}
	n = max(0, min(p.Total-present, p.Room))
	return n, min(n, p.Serve)
}

// manage creates and deletes machines as a plan says. It says whether anything happened.
func (w *world) manage(p Plan) (moved bool) {
	if n, serve := creations(w.view, p); n > 0 {
		for i := range n {
			m := w.add(Machine{Reserve: i >= serve, Set: current})
			w.note("%s born, serves %t", m.Name, !m.Reserve)
		}
		return true
	}
	staying := w.present(func(m Machine) bool { return !m.Leaving() })
	surplus := len(staying) - p.Total
	remove := func(m *Machine) {
		w.judge(m)
		w.remove(m)
		moved = true
	}
	for _, going := range p.Going {
		surplus--
		remove(w.machine(going.Name))
	}
	cut := p.Cut
	for _, m := range staying {
		if cut > 0 && surplus > 0 && !m.Reserve && !m.Leaving() {
			cut--
			surplus--
			remove(m)
		}
	}
	for _, m := range w.present(func(Machine) bool { return true }) {
		if m.Named || m.Phase == mcm.MachineFailed && !m.Protected && !m.Leaving() {
			remove(m)
		}
	}
	return moved
}

// remove deletes a machine, and evicts what runs there.
func (w *world) remove(m *Machine) {
	w.note("%s deleted", m.Name)
	m.Phase, m.Deleted = mcm.MachineTerminating, true
	w.evicted += m.Pods
	w.waiting += m.Pods
}

// present lists the machines of a kind that are not Terminating, in the order in which they go.
func (w *world) present(kind func(Machine) bool) []*Machine {
	var present []*Machine
	for i := range w.view.Machines {
		if m := &w.view.Machines[i]; m.Phase != mcm.MachineTerminating && kind(*m) {
			present = append(present, m)
		}
	}
	slices.SortStableFunc(present, deletedFirst)
	return present
}

// judge expects that no busy machine goes in favor of one in reserve, unless it is named, sick, or beyond R.
func (w *world) judge(m *Machine) {
	if !m.Busy() || m.Reserve || m.Leaving() || m.Unhealthy() {
		return
	}
	serving := 0
	for _, other := range w.view.Machines {
		if !other.Leaving() && !other.Reserve { // a sick one holds its place
			serving++
		}
	}
	w.check(serving > w.view.Replicas, "busy %s is deleted", m.Name)
}

// deletedFirst is the order in which machines go that are not in reserve.
func deletedFirst(a, b *Machine) int {
	rank := func(m *Machine) []int64 {
		kept, first := int64(0), int64(1)
		if m.Protected {
			kept = 1
		}
		if m.First {
			first = 0
		}
		phases := []mcm.MachinePhase{mcm.MachineTerminating, mcm.MachineFailed, mcm.MachineCrashLoopBackOff,
			mcm.MachineUnknown, mcm.MachinePending, mcm.MachineAvailable, mcm.MachineRunning}
		return []int64{kept, first, int64(max(0, slices.Index(phases, m.Phase))), m.Created.Unix()}
	}
	return cmp.Or(slices.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
}

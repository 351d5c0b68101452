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

// world answers a plan as machine-controller-manager and the machine controller do, one small step at a time. It is
// deterministic.
type world struct {
	view View
	born int
	// outage says that no machine can be made now, healthy that Unknown machines stay so, stuck names one that boots for
	// ever.
	outage, healthy bool
	stuck           string
	// surge is that of a rollout.
	surge int
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
		Replicas: r, Wish: x, Excess: max(0, min(x, most-r)), Max: most, Applied: Applied{Excess: a, Max: most},
		CurrentSet: current, FreezeMargin: 3, Now: start, Patience: 10 * time.Minute, BootPatience: 20 * time.Minute,
		SetReplicas: pool.VisibleReplicas(r, Applied{Excess: a, Max: most}),
	}}
}

// settled is a world at rest: r machines with a pod each, and x in reserve.
func settled(r, x, most int) *world {
	w := newWorld(r, x, max(0, min(x, most-r)), most)
	for i := range r + w.view.Excess {
		m := w.add(running(i >= r))
		if i < r {
			m.Pods = 1
		}
	}
	return w
}

func running(reserve bool) Machine {
	m := Machine{Registered: true, Phase: mcm.MachineRunning, HasProviderID: true, Reserve: reserve, Set: current, Priority: PriorityServing}
	if reserve {
		m.Priority = PriorityReserve
	}
	m.SeenPriority = m.Priority
	return m
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

// setReplicas writes R as a client does; X follows as the bounds say.
func (w *world) setReplicas(r int) {
	w.view.Replicas = r
	w.view.Excess = max(0, min(w.view.Wish, w.view.Max-r))
}

func (w *world) setWish(x int) {
	w.view.Wish = x
	w.setReplicas(w.view.Replicas)
}

// carryOut does what a plan says, all of it. Priorities are seen by the lens' store at once.
func (w *world) carryOut(p Plan) {
	for _, move := range p.Moves {
		m := w.machine(move.Name)
		w.check(m.HasProviderID && !m.Leaving(), "law 14: %s is moved", m.Name)
		w.check(!move.Reserve || !m.Busy(), "law 4: busy %s is marked", m.Name)
		m.Reserve, m.Open = move.Reserve, move.Reserve && !m.Registered
		w.note("%s %s", move.Name, move.Why)
	}
	for _, q := range p.Priorities {
		m := w.machine(q.Name)
		w.check(m.HasProviderID && !m.Leaving() && m.Priority >= PriorityVictim, "law 14, 11: %s gets priority %d", m.Name, q.Priority)
		m.Priority, m.SeenPriority = q.Priority, q.Priority
	}
	for _, o := range p.Owners {
		w.machine(o.Name).Owner = o.Owner
	}
	for _, name := range p.Returned {
		w.machine(name).Returned = true
		w.note("%s gives R back", name)
	}
	if p.Applied != w.view.Applied {
		w.note("A %d -> %d", w.view.Applied.Excess, p.Applied.Excess)
	}
	w.view.Applied, w.view.SurplusSince, w.view.Retry, w.view.Lowered = p.Applied, p.SurplusSince, p.Retry, p.Lowered
	if p.Replicas != w.view.Replicas {
		w.view.NamedGone -= max(0, min(w.view.NamedGone, p.Replicas-w.view.Replicas-len(p.Returned)))
		w.setReplicas(p.Replicas)
	}
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
		m.SeenPriority = m.Priority
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

// bind gives evicted pods to machines that serve and are empty, new ones first, as MCM's PreferNoSchedule has it.
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

// pass is plan, MCM, plan, machine controller: one step of everything. It says whether anything happened.
func (w *world) pass() bool {
	plan := NewPlan(w.view)
	rest := plan.AtRest(w.view)
	w.carryOut(plan)
	moved := w.manage()
	plan = NewPlan(w.view)
	rest = rest && plan.AtRest(w.view)
	w.carryOut(plan)
	moved = w.bury() || moved
	return w.grow() || moved || !rest
}

// settle runs until nothing happens any more, with time passing whenever the plan waits for it, and returns the last
// plan. It gives up after so many passes that no small world needs them.
func (w *world) settle() (Plan, bool) {
	for range 200 {
		w.view.Now = w.view.Now.Add(time.Second)
		if w.pass() {
			continue
		}
		plan := NewPlan(w.view)
		if plan.Again == 0 || w.outage {
			return plan, true
		}
		w.view.Now = w.view.Now.Add(plan.Again)
	}
	return NewPlan(w.view), false
}

// manage is one pass of MCM's controllers: replicas, deletions in its order, then creations. It says whether anything
// happened.
func (w *world) manage() bool {
	if w.view.Rollout {
		return w.roll()
	}
	shown := pool.VisibleReplicas(w.view.Replicas, w.view.Applied)
	moved := w.view.SetReplicas != shown
	w.view.SetReplicas = shown
	present := w.present(func(Machine) bool { return true })
	for i, m := range present {
		if i < len(present)-shown || m.Named || m.Phase == mcm.MachineFailed && !m.Preserved {
			w.judge(m)
			w.remove(m)
			moved = true
		}
	}
	for range shown - len(present) {
		w.create()
		moved = true
	}
	return moved
}

// create makes a machine as MCM does behind the lens.
func (w *world) create() {
	serves := ServesOnCreation(w.view, 0)
	m := w.add(Machine{Reserve: !serves, Set: current, Priority: PriorityServing, SeenPriority: PriorityServing})
	w.note("%s born, serves %t", m.Name, serves)
}

// remove deletes a machine, and evicts what runs there.
func (w *world) remove(m *Machine) {
	w.note("%s deleted", m.Name)
	m.Phase, m.Deleted = mcm.MachineTerminating, true
	w.evicted += m.Pods
	w.waiting += m.Pods
}

// present lists what MCM counts of a kind, in the order in which it would delete.
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

// judge holds invariant I3 against a deletion: no busy machine goes in favour of one in reserve, unless it is named,
// sick, beyond R, or the one in reserve may not go.
func (w *world) judge(m *Machine) {
	if !m.Busy() || m.Reserve || m.Named || m.Unhealthy() || m.Priority < PriorityVictim {
		return
	}
	var serving, spare int
	for _, other := range w.view.Machines {
		switch {
		case other.Deleted && other.Phase != mcm.MachineTerminating:
			// MCM goes on counting it, as one of those to stay: for some seconds, it is unknown how many are too many.
			return
		case other.Leaving() || other.Reserve && other.Preserved:
		case other.Unhealthy() && (other.Reserve || !other.Preserved):
			// A preserved one holds its place, here as in stock.
		case other.Reserve:
			spare++
		default:
			serving++
		}
	}
	w.check(serving > w.view.Replicas || spare == 0, "I3: busy %s is deleted", m.Name)
}

// deletedFirst is MCM's ActiveMachines.Less, written down a second time.
func deletedFirst(a, b *Machine) int {
	rank := func(m *Machine) []int64 {
		kept, named := int64(0), int64(1)
		if m.Preserved {
			kept = 1
		}
		if m.Named {
			named = 0
		}
		phases := []mcm.MachinePhase{mcm.MachineTerminating, mcm.MachineFailed, mcm.MachineCrashLoopBackOff,
			mcm.MachineUnknown, mcm.MachinePending, mcm.MachineAvailable, mcm.MachineRunning}
		return []int64{kept, int64(m.Priority), named, int64(max(0, slices.Index(phases, m.Phase))), m.Created.Unix()}
	}
	return cmp.Or(slices.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
}

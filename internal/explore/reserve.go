// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"sort"
	"strconv"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machineapi "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Reserve models the reserve: the machine-taint controller's plans, carried out write by write,
// beside machine-controller-manager with late stores, and users, pods and clouds that can do
// anything.
type Reserve struct {
	// Max is the maximum number of machines; 0 is no maximum.
	Max int
	// Inclusive reports whether replicas include the reserve at the beginning. A change of that is
	// one of the faults.
	Inclusive bool
	// Faults is the maximum number of faults in one story.
	Faults int
	// From are the initial worlds; none means settled worlds of every small size.
	From []World
	// Unguarded disables a guard, to see what it prevents.
	Unguarded Guard
}

// Guard is a rule of the machine-taint controller for writes of machine-controller-manager.
type Guard int

// Guards that a search shows to be necessary.
const (
	None Guard = iota
	// GuardRemove refuses deletions of machines that must stay.
	GuardRemove
	// GuardNeeded is its part about serving machines that are needed while others are in reserve.
	GuardNeeded
	// GuardEmpty checks a machine's pods again once its Node is closed.
	GuardEmpty
)

// Times that plans distinguish.
var (
	now            = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later, earlier = now.Add(time.Minute), now.Add(-time.Second)
	patience       = 10 * time.Minute
)

var phases = [...]mcm.MachinePhase{"", mcm.MachinePending, mcm.MachineRunning, mcm.MachineUnknown, mcm.MachineFailed, mcm.MachineTerminating}

// Begin returns settled worlds of every small size, with every number of busy machines.
func (r Reserve) Begin() []World {
	if len(r.From) > 0 {
		return r.From
	}
	var all []World
	for replicas := range 3 {
		for excess := range 3 {
			for busy := range replicas + 1 {
				if r.Max == 0 || replicas+excess <= r.Max {
					all = append(all, settled(replicas, excess, busy, r.Faults, r.Inclusive))
				}
			}
		}
	}
	return all
}

func (r Reserve) maxReplicas() int {
	if r.Max == 0 {
		return reserve.Unbounded
	}
	return r.Max
}

// deployment returns the MachineDeployment.
func (r Reserve) deployment(w *World) *machineapi.MachineDeployment {
	d := &machineapi.MachineDeployment{}
	d.Spec.Replicas = int32(w.replicas)
	if a := w.record; a.excess > 0 {
		text := machineapi.AppliedExcess{Machines: int32(a.excess), Counted: int32(a.counted), Replicas: int32(a.replicas)}
		if r.Max > 0 {
			text.Max = ptr.To(int32(r.Max))
		}
		d.Annotations = map[string]string{machineapi.AppliedExcessAnnotation: text.String()}
	}
	return d
}

// workload returns R. visible returns how many machines machine-controller-manager is asked for.
func (r Reserve) workload(w *World) int {
	d := r.deployment(w)
	return max(0, int(pool.Workload(d, d.Spec.Replicas)))
}

func (r Reserve) visible(w *World) uint8 { return uint8(pool.Visible(r.deployment(w))) }

// applyNumbers writes the numbers of a plan to replicas and the record.
func (r Reserve) applyNumbers(w *World, p reserve.Plan) (replicas uint8, recorded record) {
	d := r.deployment(w)
	pool.Apply(d, int32(p.Replicas), p.Applied)
	if text, set := d.Annotations[machineapi.AppliedExcessAnnotation]; set {
		a, err := machineapi.ParseAppliedExcess(text)
		if err != nil {
			panic(err) // it has just been written
		}
		recorded = record{uint8(a.Machines), uint8(a.Counted), uint8(a.Replicas)}
	}
	return uint8(d.Spec.Replicas), recorded
}

// viewOf returns the input of the controller.
func (r Reserve) viewOf(w *World) reserve.View {
	d, workload, accounting := r.deployment(w), r.workload(w), pool.Additive
	if w.inclusive {
		accounting = pool.Inclusive
	}
	v := reserve.View{
		Replicas: workload, Wish: int(w.excess), Excess: max(0, min(int(w.excess), r.maxReplicas()-workload)), Max: r.maxReplicas(), CurrentSet: "set",
		Accounting: accounting, Applied: pool.AppliedOf(d, d.Spec.Replicas),
		SetReplicas: int(min(w.asks, w.asksShown)), MaxSetReplicas: int(max(w.asks, w.asksShown)), FreezeMargin: 3,
		Now: now, Patience: patience, BootPatience: time.Hour,
		SurplusSince: w.memory.surplus.asTime(now, now.Add(-patience)), Retry: reserve.Retry{Failures: int(w.memory.failures), Until: w.memory.retry.asTime(later, earlier), Try: int(w.memory.try)},
		Lowered: reserve.Lowered{Times: int(w.memory.reductions), Until: w.memory.lowered.asTime(later, earlier)},
	}
	for i := range w.machines {
		m := &w.machines[i]
		if !m.there {
			continue
		}
		v.Machines = append(v.Machines, m.ruleMachine(i))
		v.Behind = v.Behind || !m.shown.there || m.shown.going != m.leaving()
	}
	return v
}

// asTime returns a time with the same meaning for a plan: in the future or in the past.
func (m moment) asTime(ahead, passed time.Time) time.Time {
	return [...]time.Time{{}, ahead, passed}[m]
}

func momentOf(t time.Time) moment {
	switch {
	case t.IsZero():
		return never
	case t.Before(now):
		return passed
	}
	return ahead
}

// ruleMachine returns a machine as plans see it. A machine that runs workload serves, whatever its
// mark.
func (m *machine) ruleMachine(i int) reserve.Machine {
	p := reserve.Machine{Name: name(i), Created: now.Add(time.Duration(i-slots) * time.Minute), Phase: phases[m.phase], Set: "set",
		Reserve: m.marked && !m.busy, HasProviderID: m.hasProviderID(), Registered: m.phase >= running && !m.leaving(), Failing: m.failing, Priority: int(m.priority), SeenPriority: int(m.priority), Deleted: m.leaving()}
	if m.failing {
		p.Phase = mcm.MachineCrashLoopBackOff
	}
	if m.shown.there {
		p.SeenPriority = int(m.shown.priority)
	}
	if m.busy {
		p.Pods = 1
	}
	return p
}

// Rest returns what is wrong with a world at rest.
func (r Reserve) Rest(w World) string {
	v := r.viewOf(&w)
	p := reserve.NewPlan(v)
	counted := 0
	if w.inclusive {
		counted = v.Excess
	}
	if int(w.record.counted) != counted {
		return fmt.Sprintf("At rest with %d machines of the reserve counted, of %d", w.record.counted, counted)
	}
	if s := p.Summary; s.Serving != v.Replicas || s.Reserve != v.Excess || s.Ready != v.Excess {
		return fmt.Sprintf("At rest with %d serving of %d, and %d in reserve, %d of them ready, of %d: %s", s.Serving, v.Replicas, s.Reserve, s.Ready, v.Excess, s.Message)
	}
	return ""
}

// deletedFirst sorts machines as machine-controller-manager does, by what its store shows.
func deletedFirst(w *World, among []int) []int {
	machines := make([]*mcm.Machine, len(among))
	for k, i := range among {
		m := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), CreationTimestamp: metav1.NewTime(now.Add(time.Duration(i) * time.Minute)),
			Annotations: map[string]string{machineutils.MachinePriority: strconv.Itoa(int(w.machines[i].shown.priority))}}}
		m.Status.CurrentStatus.Phase = phases[w.machines[i].shown.phase]
		machines[k] = m
	}
	sort.Sort(stock.ActiveMachines(machines))
	order := make([]int, len(machines))
	for k, m := range machines {
		order[k], _ = strconv.Atoi(m.Name)
	}
	return order
}

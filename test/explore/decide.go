// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strings"
	"sync"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// decision is a plan of the machine-taint controller, as far as the model carries it out.
type decision struct {
	replicas uint8
	record   record
	returned [slots]bool
	returns  bool
	changes  [slots]change
	memory   memory
	// bornServing reports whether a machine that is created now serves.
	bornServing bool
	// serving, reserve and ready are those of the summary.
	serving, reserve, ready int
	message                 string
	// invalid is why what the plan records cannot be parsed.
	invalid string
}

// decisions remembers plans: they are functions of what is known of a world, and most steps change
// nothing of that.
type decisions struct {
	mu  sync.RWMutex
	all map[World]*decision
}

// maxDecisions bounds the memory that decisions need.
const maxDecisions = 400_000

func newDecisions() *decisions { return &decisions{all: map[World]*decision{}} }

// planFor returns the plan for a world.
func (d *decisions) planFor(w *World) *decision {
	key := w.known()
	d.mu.RLock()
	made := d.all[key]
	d.mu.RUnlock()
	if made != nil {
		return made
	}
	made = key.decide()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) >= maxDecisions {
		clear(d.all)
	}
	d.all[key] = made
	return made
}

// known returns what a plan depends on. All else is zero.
func (w *World) known() World {
	k := World{replicas: w.replicas, excess: w.excess, max: w.max, unparsed: w.unparsed, record: w.record, inclusive: w.inclusive, template: w.template, memory: w.memory}
	for s := range w.sets {
		set := &w.sets[s]
		k.sets[s] = machineSet{there: set.there, asks: set.asks, asksSeen: set.asksSeen}
	}
	k.machines = w.machines
	for i := range k.machines {
		m := &k.machines[i]
		m.shown = shown{there: m.shown.there, going: m.shown.going, priority: m.shown.priority}
		m.chosen, m.excused, m.paid, m.change, m.due = false, false, false, change{}, false
	}
	return k
}

// snapshot reads the world as controllers do.
func (w *World) snapshot() pool.Snapshot { return pool.Read(w.deployment(), w.objects(), now) }

// view returns the input of the machine-taint controller.
func (w *World) view() keep.View {
	s := w.snapshot()
	v := keep.View{Now: now, Settings: settings, Deployment: s.Deployment, CurrentSet: s.Rollout.Set, Rollout: s.Rollout.Replacing, Memory: w.memoryOf(s.Deployment), Evictions: &keep.Evictions{}}
	for s := range w.sets {
		set := &w.sets[s]
		v.SetReplicas += int(min(set.asks, set.asksSeen))
		v.MaxSetReplicas += int(max(set.asks, set.asksSeen))
	}
	for _, m := range s.Machines {
		known := &w.machines[index(m.Object.Name)]
		one := keep.Machine{Machine: m, SeenPriority: int(known.priority)}
		if known.shown.there {
			one.SeenPriority = int(known.shown.priority)
		}
		v.Machines = append(v.Machines, one)
		v.Behind = v.Behind || !known.shown.there || known.shown.going != known.leaving()
	}
	return v
}

func index(name string) int { return int(name[0] - 'a') }

func (w *World) memoryOf(d *v1alpha1.MachineDeployment) keep.Memory {
	k := w.memory
	m := keep.Memory{
		SurplusSince: k.surplus.asTime(now, now.Add(-patience)),
		Retry:        reserve.Retry{Failures: int(k.failures), Until: k.retry.asTime(later, earlier), Try: int(k.try)},
		Lowered:      reserve.Lowered{Times: int(k.reductions), Until: k.lowered.asTime(later, earlier), Replicas: int(k.loweredTo), Wish: int(k.loweredX), Max: int(k.loweredMax), Unread: k.loweredUnread},
	}
	if k.loweredMax == 0 {
		m.Lowered.Max = pool.Unbounded
	}
	if k.known {
		m.Applied, m.UID = d.Annotations[v1alpha1.AppliedExcessAnnotation], d.UID
	}
	return m
}

// rememberedFrom returns what the controller remembers after a plan. What two plans in a row decide
// is the same for larger numbers of failures.
func rememberedFrom(p keep.Memory) memory {
	m := memory{
		known: true, surplus: momentOf(p.SurplusSince), failures: uint8(min(p.Retry.Failures, 2)), retry: momentOf(p.Retry.Until), try: uint8(p.Retry.Try),
		lowered: momentOf(p.Lowered.Until), reductions: uint8(min(p.Lowered.Times, 2)), loweredTo: uint8(p.Lowered.Replicas), loweredX: uint8(p.Lowered.Wish), loweredUnread: p.Lowered.Unread,
	}
	if p.Lowered.Max != pool.Unbounded {
		m.loweredMax = uint8(p.Lowered.Max)
	}
	return m
}

// decide makes a plan.
func (w *World) decide() *decision {
	v := w.view()
	p := keep.New(v)
	var machines []reserve.Machine
	for _, m := range v.Machines {
		machines = append(machines, reserve.MachineOf(m.Machine))
	}
	serves := reserve.ServesOnCreation(reserve.View{Machines: machines, Replicas: w.workload()}, 0)
	if p.Idle {
		return &decision{replicas: w.replicas, record: w.record, bornServing: serves, serving: w.staying(), memory: w.memory}
	}
	d := *v.Deployment
	d.Spec.Replicas += int32(p.Deployment.Replicas)
	for key, value := range p.Deployment.Annotations {
		if d.Annotations[key] = value; value == "" {
			delete(d.Annotations, key)
		}
	}
	made := &decision{bornServing: serves, replicas: uint8(d.Spec.Replicas), returns: len(p.Rule.Returned) > 0, memory: rememberedFrom(p.Memory)}
	var err error
	if made.record, err = recordOf(&d); err != nil {
		made.invalid = err.Error()
	}
	for name := range strings.SplitSeq(d.Annotations[v1alpha1.ReturnedAnnotation], ",") {
		if name != "" {
			made.returned[index(name)] = true
		}
	}
	for _, c := range p.Machines {
		if c.Mark != keep.Keep || c.Priority != 0 {
			made.changes[index(c.Name)] = change{pending: true, hold: c.Mark == keep.Hold, free: c.Mark == keep.Free, priority: uint8(c.Priority)}
		}
	}
	s := p.Rule.Summary
	made.serving, made.reserve, made.ready, made.message = s.Serving, s.Reserve, s.Ready, s.Message
	return made
}

// retireMore is the same plan, which also puts an empty machine into the reserve if there are none
// to delete.
func (d *decision) retireMore(w *World) *decision {
	if len(w.counted()) > int(w.visible()) {
		return d
	}
	more := *d
	for i := range w.machines {
		m := &w.machines[i]
		if m.there && m.phase == running && !m.marked && !m.busy && !d.changes[i].pending {
			more.changes[i] = change{pending: true, hold: true}
			break
		}
	}
	return &more
}

// staying counts the healthy machines that stay.
func (w *World) staying() (n int) {
	for i := range w.machines {
		if m := &w.machines[i]; m.there && !m.leaving() && !m.unhealthy() {
			n++
		}
	}
	return n
}

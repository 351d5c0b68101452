// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	machinepool "github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// world carries plans out on plain values, and does with machines what machine-controller-manager and the controller of MachineDeployments do
// about them, in ticks of ten seconds.
type world struct {
	View
	version, born int
	// out are members that cannot make machines. made counts those that were made.
	out  map[string]bool
	made int
	// draining is how long a machine takes to leave; the next tick ends it at the earliest.
	draining time.Duration
	// again is when the last plan asks for another look.
	again time.Duration
	// watch is called after every plan and every tick, wrote with every write.
	watch func()
	wrote func(name string, w Write)
}

const (
	tick = 10 * time.Second
	boot = time.Minute
)

func newWorld(members ...Member) *world {
	w := &world{View: view(members...), version: 1000, out: map[string]bool{}, watch: func() {}, wrote: func(string, Write) {}}
	for i := range w.Members {
		w.touch(&w.Members[i])
	}
	return w
}

func (w *world) touch(m *Member) {
	w.version++
	m.Object.ResourceVersion = strconv.Itoa(w.version)
}

// carry plans once and carries the plan out; it tells whether anything was written.
func (w *world) carry() bool {
	p := New(w.View)
	w.Memory, w.again = p.Memory, p.Again
	wrote := false
	for i, o := range p.Outcomes {
		if !o.Write.IsEmpty() {
			w.write(&w.Members[i], o.Write)
			wrote = true
		}
	}
	w.watch()
	return wrote
}

func (w *world) write(m *Member, change Write) {
	w.wrote(m.Object.Name, change)
	m.Object = m.Object.DeepCopy()
	if change.Replicas != nil {
		m.Object.Spec.Replicas = *change.Replicas
	}
	if change.Excess != nil {
		m.Object.Spec.ExcessReplicas = change.Excess
	}
	for key, value := range change.Annotations {
		if Annotate(key, value)(m); value == "" {
			delete(m.Object.Annotations, key)
		}
	}
	for i := range m.Machines {
		if m.Machines[i].Object.Name == change.Gone {
			w.drain(m, i)
			break
		}
	}
	w.touch(m)
}

// settle plans until nothing is written; it tells whether anything was.
func (w *world) settle() (wrote bool) {
	for range 100 {
		if !w.carry() {
			return wrote
		}
		wrote = true
	}
	Expect(writes(New(w.View))).To(BeEmpty(), "it writes for ever")
	return true
}

// pass lets time pass: in ticks while something happens, else until the plan asks for another look.
func (w *world) pass(d time.Duration) {
	still := false
	for end := w.Now.Add(d); w.Now.Before(end); {
		still = !w.settle() && still
		step := tick
		switch left := end.Sub(w.Now); {
		case still && w.again == 0:
			step = left
		case still:
			step = max(tick, min(w.again, left))
		}
		w.Now = w.Now.Add(step)
		before := w.machines()
		for i := range w.Members {
			w.mcm(&w.Members[i])
		}
		w.watch()
		still = w.machines() == before && !strings.Contains(before, "*")
	}
	w.settle()
}

// tick lets so many ticks pass without a plan.
func (w *world) tick(n int) {
	for range n {
		w.Now = w.Now.Add(tick)
		for i := range w.Members {
			w.mcm(&w.Members[i])
		}
	}
}

// machines are all of them, those with a star that have a next step of their own.
func (w *world) machines() string {
	return w.each(func(m Member) string {
		var all []string
		for _, x := range m.Machines {
			text := fmt.Sprint(x.Object.Name, pendingTaker(x))
			if x.Object.DeletionTimestamp != nil || x.Object.Status.CurrentStatus.Phase != mcm.MachineRunning {
				text += "*"
			}
			all = append(all, text)
		}
		return strings.Join(all, " ")
	})
}

// rest lets enough time pass for everything to end.
func (w *world) rest() { w.pass(25 * time.Minute) }

// kill removes the machines of a member that serve, or those in reserve.
func (w *world) kill(name string, reserve bool) {
	m := w.member(name)
	m.Machines = slices.DeleteFunc(m.Machines, func(x Machine) bool { return pendingTaker(x) == reserve })
}

func (w *world) member(name string) *Member {
	for i := range w.Members {
		if w.Members[i].Object.Name == name {
			return &w.Members[i]
		}
	}
	return nil
}

// pendingTaker returns the member that creates a machine for a move, nil if none does.
func pendingTaker(m Machine) bool { return m.Object.Annotations[v1alpha1.ReserveAnnotation] != "" }

func (w *world) count(name string) int { return len(w.member(name).Machines) }

// ask writes replicas as a user does.
func (w *world) ask(name string, replicas int) {
	w.set(name, func(m *Member) { m.Object.Spec.Replicas = int32(replicas) })
}

// set changes the object of a member as a user does.
func (w *world) set(name string, change Change) {
	m := w.member(name)
	m.Object = m.Object.DeepCopy()
	change(m)
	w.touch(m)
}

// each lists something of each member, as in 2/1/1.
func (w *world) each(what func(m Member) string) string {
	var words []string
	for _, m := range w.Members {
		words = append(words, what(m))
	}
	return strings.Join(words, "/")
}

func (w *world) replicas() string {
	return w.each(func(m Member) string { return fmt.Sprint(m.Object.Spec.Replicas) })
}

func (w *world) shares() string {
	return w.each(func(m Member) string {
		if text := m.Object.Annotations[v1alpha1.ShareAnnotation]; text != "" {
			return text
		}
		return "-"
	})
}

func (w *world) readyReserve() string { return w.running(true) }

func (w *world) running(reserve bool) string {
	return w.each(func(m Member) string {
		n := 0
		for _, x := range m.Machines {
			if pendingTaker(x) == reserve && x.Object.Status.CurrentStatus.Phase == mcm.MachineRunning && x.Object.DeletionTimestamp == nil {
				n++
			}
		}
		return fmt.Sprint(n)
	})
}

// put puts pods on one machine of a member.
func (w *world) put(name string, at int, pods ...*fit.Pod) {
	hold(&w.member(name).Machines[at], pods...)
}

func (w *world) moves() string {
	return w.each(func(m Member) string {
		if text := m.Object.Annotations[v1alpha1.MoveAnnotation]; text != "" {
			return text
		}
		return "-"
	})
}

// mcm makes, releases and removes machines of a member as its replicas and its share ask.
func (w *world) mcm(m *Member) {
	replicas := int(m.Object.Spec.Replicas)
	if n, err := v1alpha1.ParseAppliedReplicas(m.Object.Annotations[v1alpha1.AppliedReplicasAnnotation]); err == nil {
		replicas = int(n)
	}
	excess := 0
	if f := m.Object.Spec.ExcessReplicas; f != nil {
		excess = int(*f)
	}
	if n, err := v1alpha1.ParseShare(m.Object.Annotations[v1alpha1.ShareAnnotation]); err == nil {
		excess = int(n)
	}
	replicas, excess = min(max(0, replicas), 100), min(max(0, excess), 100) // more is requested only where that makes no sense
	var leaving []Machine
	m.Machines = slices.DeleteFunc(m.Machines, func(x Machine) bool {
		gone := x.Object.DeletionTimestamp
		if gone != nil && w.Now.Sub(gone.Time) < w.draining {
			leaving = append(leaving, x)
		}
		return gone != nil
	})
	defer func() { m.Machines = append(m.Machines, leaving...) }()
	for i := range m.Machines {
		w.grow(m, m.Machines[i].Object)
	}
	serving := 0
	for _, x := range m.Machines {
		if !pendingTaker(x) {
			serving++
		}
	}
	for i := range m.Machines {
		if x := m.Machines[i]; serving < replicas && pendingTaker(x) && x.Object.Status.CurrentStatus.Phase == mcm.MachineRunning {
			delete(m.Machines[i].Object.Annotations, v1alpha1.ReserveAnnotation)
			serving++
		}
	}
	for len(m.Machines) < replicas+excess {
		w.born++
		x := NewMachine(fmt.Sprintf("%s-n%d", m.Object.Name, w.born), bornAt(w.Now), phase(mcm.MachinePending))
		if serving >= replicas {
			inReserve(&x)
		} else {
			serving++
		}
		m.Machines = append(m.Machines, x)
		w.grow(m, x.Object)
	}
	for len(m.Machines) > replicas+excess {
		m.Machines = slices.Delete(m.Machines, w.first(m, serving > replicas), w.first(m, serving > replicas)+1)
	}
}

// first is the machine that goes first: what does not run, then the reserve, then the newest.
func (w *world) first(m *Member, serving bool) int {
	best, rank := 0, -1
	for i, x := range m.Machines {
		r := i
		if x.Object.Status.CurrentStatus.Phase != mcm.MachineRunning {
			r += 1000
		}
		if pendingTaker(x) != serving {
			r += 100
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

func (w *world) grow(m *Member, o *mcm.Machine) {
	s := &o.Status
	switch {
	case s.CurrentStatus.Phase == mcm.MachineRunning:
	case w.out[m.Object.Name]:
		x := Machine{Machine: machinepool.Machine{Object: o}}
		exhausted(&x)
	case w.Now.Sub(o.CreationTimestamp.Time) >= boot:
		s.CurrentStatus = mcm.CurrentStatus{Phase: mcm.MachineRunning, LastUpdateTime: metav1.NewTime(w.Now)}
		s.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateSuccessful, LastUpdateTime: metav1.NewTime(w.Now)}
		w.made++
	}
}

// drain lets a machine go and its pods wait.
func (w *world) drain(m *Member, i int) {
	now := metav1.NewTime(w.Now)
	m.Machines[i].Object.DeletionTimestamp = &now
	w.Waiting = append(w.Waiting, m.Machines[i].Workload...)
	m.Machines[i].Workload = nil
}

// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

const (
	running = mcm.MachineRunning
	// set is the one MachineSet.
	set = "set"
	// maxRounds limits how often the rule of the reserve decides at one instant.
	maxRounds = 100
)

// machine is one machine.
type machine struct {
	reserve.Machine
	node *corev1.Node
	room room
	// open reports whether pods can be bound to it.
	open bool
	gone bool
	// ready is when it had booted.
	ready time.Time
	// idle is since when no pod runs on it.
	idle time.Time
}

// addMachine creates a machine that boots.
func (s *simulation) addMachine(marked bool) *machine {
	s.born++
	name := fmt.Sprintf("m-%06d", s.born)
	m := &machine{node: s.newNode(name), room: roomOf(s.Machine)}
	m.Machine = reserve.Machine{
		Name: name, Created: s.now, Phase: mcm.MachinePending, Set: set, Reserve: marked, HasProviderID: true, Registered: true,
	}
	s.machines = append(s.machines, m)
	return m
}

// addReady creates a machine that has booted.
func (s *simulation) addReady(marked bool) *machine {
	m := s.addMachine(marked)
	m.Phase, m.open, m.idle, m.ready = running, !marked, s.now, s.now
	return m
}

// newNode returns a Node with the taint of the reserve, as package fit expects it of closed ones.
func (s *simulation) newNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: v1alpha1.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}},
		Status:     corev1.NodeStatus{Allocatable: s.Machine, Capacity: s.Machine},
	}
}

// create creates a machine.
func (s *simulation) create(marked bool) {
	m := s.addMachine(marked)
	boot := s.Boot[(s.born-1)%len(s.Boot)]
	s.events.plan(s.now.Add(boot), func() {
		if m.gone {
			return
		}
		m.Phase, m.ready, s.changed = running, s.now, true
		if !m.Reserve {
			s.openMachine(m)
		}
	})
}

// openMachine lets pods be bound to a machine.
func (s *simulation) openMachine(m *machine) {
	if m.gone || m.Reserve || m.open {
		return
	}
	m.open, s.freed = true, append(s.freed, m)
	s.becameIdle(m)
}

// becameIdle lets the autoscaler remove a machine that stays empty.
func (s *simulation) becameIdle(m *machine) {
	m.idle = s.now
	if s.Autoscaler == nil {
		return
	}
	since := s.now
	s.events.plan(since.Add(s.Autoscaler.Down), func() {
		if !m.gone && m.open && m.Pods == 0 && m.idle.Equal(since) && s.replicas > s.Min {
			s.replicas--
			s.remove(m)
			s.changed = true
		}
	})
}

func (s *simulation) remove(m *machine) {
	m.gone, m.open = true, false
	s.machines = slices.DeleteFunc(s.machines, func(other *machine) bool { return other == m })
}

// settle lets the rule of the reserve decide until it is at rest.
func (s *simulation) settle() {
	s.changed = false
	for range maxRounds {
		view := s.view()
		plan := reserve.Decide(view)
		s.carryOut(plan)
		if managed := s.manage(plan); !managed && plan.AtRest(view) {
			if plan.Again > 0 {
				s.events.plan(s.now.Add(plan.Again), func() { s.changed = true })
			}
			break
		}
	}
	s.marked = 0
	for _, m := range s.machines {
		if m.Reserve {
			s.marked++
		}
	}
	s.outcome.Peak = max(s.outcome.Peak, len(s.machines))
}

// view is what the rule of the reserve sees.
func (s *simulation) view() reserve.View {
	return reserve.View{
		Machines: s.seen(), Replicas: s.replicas, Wish: s.desired,
		Min: s.Min, Max: s.max(), Applied: s.applied, CurrentSet: set, SetReplicas: len(s.machines),
		Now: s.now, BootPatience: s.BootPatience, Retry: s.retry, Lowered: s.lowered,
	}
}

// excess is what the maximum leaves of the amount of the policy.
func (s *simulation) excess() int { return max(0, min(s.desired, s.max()-s.replicas)) }

func (s *simulation) seen() []reserve.Machine {
	all := make([]reserve.Machine, 0, len(s.machines))
	for _, m := range s.machines {
		all = append(all, m.Machine)
	}
	return all
}

// carryOut does what a plan says.
func (s *simulation) carryOut(plan reserve.Plan) {
	s.replicas, s.applied = plan.Replicas, plan.Applied
	s.retry, s.lowered = plan.Retry, plan.Lowered
	if len(plan.Moves) == 0 {
		return
	}
	byName := make(map[string]*machine, len(s.machines))
	for _, m := range s.machines {
		byName[m.Name] = m
	}
	for _, move := range plan.Moves {
		m := byName[move.Name]
		m.Reserve, m.open = move.Reserve, false
		if !m.Reserve && m.Ready() {
			s.events.plan(s.now.Add(s.Release), func() { s.openMachine(m) })
		}
	}
}

// manage creates and deletes machines as a plan says, and reports whether it did. Of those that serve, the
// emptiest go first.
func (s *simulation) manage(plan reserve.Plan) bool {
	n := min(plan.Total-len(s.machines), plan.Room)
	for i := range n {
		s.create(i >= plan.Serve)
	}
	if n > 0 {
		return true
	}
	going := map[string]bool{}
	for _, d := range plan.Going {
		going[d.Name] = true
	}
	serving := slices.DeleteFunc(slices.Clone(s.machines), func(m *machine) bool { return m.Reserve || going[m.Name] })
	slices.SortStableFunc(serving, func(a, b *machine) int { return cmp.Compare(a.Pods, b.Pods) })
	for _, m := range serving[:min(plan.Cut, len(serving))] {
		going[m.Name] = true
	}
	for _, m := range slices.Clone(s.machines) {
		if going[m.Name] {
			s.remove(m)
		}
	}
	return len(going) > 0
}

// reserveTaint is ignored on machines that serve, are about to serve, or are released.
var reserveTaint = []string{v1alpha1.ReserveTaintKey}

// release raises replicas by the number of ready machines in reserve that the waiting pods need,
// and reports whether it did.
func (s *simulation) release() bool {
	if s.shapes.waiting() == 0 {
		return false
	}
	spares := s.spares()
	if len(spares) == 0 {
		return false
	}
	packing := s.packWaiting(spares)
	opened := packing.Opened[0]
	if opened == 0 {
		return false
	}
	if s.observe != nil {
		pods := 0
		for _, m := range spares[:opened] {
			pods += packing.Uncreated[m.Name]
		}
		s.observe(release{at: s.now, machines: opened, missing: s.excess() - len(spares) + opened, pods: pods})
	}
	s.replicas += opened
	return true
}

// spares returns the ready machines of the reserve, in the order in which they are released. There
// are no more than replicas may be raised by.
func (s *simulation) spares() []*machine {
	ready := map[string]*machine{}
	for _, m := range s.machines {
		if m.Reserve && m.Ready() {
			ready[m.Name] = m
		}
	}
	if len(ready) == 0 {
		return nil
	}
	var spares []*machine
	for _, name := range reserve.ReleaseOrder(s.view(), s.max()) {
		if ready[name] == nil {
			break // those after it come only when it has come
		}
		spares = append(spares, ready[name])
	}
	return spares
}

// runAutoscaler is a look of the autoscaler: it raises replicas by the machines that the waiting
// pods need in addition to those that are about to serve.
func (s *simulation) runAutoscaler() {
	s.scanning = false
	n := min(s.max()-s.replicas, s.shapes.waiting())
	if n <= 0 {
		return
	}
	for len(s.templates) < n {
		s.templates = append(s.templates, &machine{node: s.newNode(fmt.Sprintf("new-%06d", len(s.templates)))})
	}
	packing := s.packWaiting(s.templates[:n])
	if opened := packing.Opened[0]; opened > 0 {
		s.replicas += opened
		s.changed = true
	}
}

// packWaiting packs the waiting pods onto machines that are about to serve, and then onto others.
func (s *simulation) packWaiting(others []*machine) fit.Packing {
	var nodes []fit.Node
	for _, m := range s.machines {
		if !m.Reserve && !m.open {
			nodes = append(nodes, fit.Node{Object: m.node, Without: reserveTaint})
		}
	}
	group := fit.Group{Name: "pool", Limit: len(others)}
	for _, m := range others {
		nodes = append(nodes, fit.Node{Object: m.node, Without: reserveTaint, Closed: true})
		group.Nodes = append(group.Nodes, m.node.Name)
	}
	var d fit.Demand
	for _, shape := range s.shapes.oldest() {
		d.Uncreated = append(d.Uncreated, fit.Uncreated{Like: shape.like, Count: shape.waiting})
	}
	return fit.Pack(fit.NewRoom(nodes), d, []fit.Group{group})
}

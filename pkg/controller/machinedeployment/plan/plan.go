// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// Finalizer keeps a MachineSet until its machines are gone.
	Finalizer = "machine.sapcloud.io/machine-controller-manager"
	// Burst is how many machines of a MachineSet are created, or deleted, at most by one plan. A
	// MachineSet that is being deleted deletes all at once.
	Burst = 100
	// recheck is after how long a MachineSet is looked at again although nothing has happened.
	recheck = 10 * time.Minute
	// soon is when the rest is decided after machines came or went: what follows from that need not wait
	// until a watch shows it.
	soon = 10 * time.Millisecond
)

// Plan is what to write, in the order in which it is written. It contains only what differs from
// what is stored, so it is empty at rest.
type Plan struct {
	// Claims come alone: while a MachineSet adopts or releases, nothing else is decided about its
	// machines.
	Claims     []Claim
	Finalizers []FinalizerChange
	Machines   []MachineChange
	Creations  []Creation
	Deletions  []Deletion
	Statuses   []StatusChange
	// Again is when to decide again although nothing has happened.
	Again time.Duration
}

// Claim adopts a machine, or releases it.
type Claim struct {
	Set     *mcm.MachineSet
	Machine *mcm.Machine
	Adopt   bool
}

// FinalizerChange adds the Finalizer to a MachineSet, or removes it.
type FinalizerChange struct {
	Set *mcm.MachineSet
	Add bool
}

// MachineChange changes a Machine, except for its status.
type MachineChange struct {
	Before, After *mcm.Machine
}

// Creation creates machines.
type Creation struct {
	Set   *mcm.MachineSet
	Count int
}

// Deletion deletes a machine.
type Deletion struct {
	Set     *mcm.MachineSet
	Machine *mcm.Machine
	Reason  Reason
}

// Reason is why a machine is deleted.
type Reason string

// The reasons.
const (
	Surplus    Reason = "Surplus"    // there are more machines than replicas
	Named      Reason = "Named"      // it was named for deletion when replicas were changed
	Failed     Reason = "Failed"     // it has failed, and nothing preserves it
	SetDeleted Reason = "SetDeleted" // its MachineSet is being deleted
)

// StatusChange replaces the status of a MachineSet.
type StatusChange struct {
	Set   *mcm.MachineSet
	After mcm.MachineSetStatus
	// Warning is reported as an event, if it is not nil.
	Warning *Failure
}

// IsEmpty reports whether there is nothing to write.
func (p Plan) IsEmpty() bool {
	return len(p.Claims)+len(p.Finalizers)+len(p.Machines)+len(p.Creations)+len(p.Deletions)+len(p.Statuses) == 0
}

// New decides about all MachineSets of a view. A MachineDeployment decides about the sizes of its
// MachineSets first, and then about each of them as about one that has no MachineDeployment.
func New(v View) Plan {
	var p Plan
	adopted := map[types.UID]bool{}
	for _, s := range sortedSets(v.Sets) {
		p.decide(v, s, adopted)
	}
	if len(p.Claims)+len(p.Creations)+len(p.Deletions) > 0 {
		p.Again = soon
	}
	return p
}

// decide adds what is to be done about a MachineSet.
func (p *Plan) decide(v View, s Set, adopted map[types.UID]bool) {
	selector, invalid := validate(s.Object)
	leaving := s.Object.DeletionTimestamp != nil
	if invalid != nil && !leaving {
		p.reportInvalid(v, s.Object, *invalid)
		return
	}
	if !leaving && !slices.Contains(s.Object.Finalizers, Finalizer) {
		p.Finalizers = append(p.Finalizers, FinalizerChange{Set: s.Object, Add: true})
	}
	claimed, claims := claim(s, selector, v.Orphans, adopted)
	if len(claims) > 0 {
		p.Claims = append(p.Claims, claims...)
		return
	}
	p.Again = requeue.Sooner(p.Again, recheck)
	one := set{View: v, Object: s.Object, machines: claimed}
	if leaving {
		p.dismantle(one)
		return
	}
	p.manage(one)
}

// set is a MachineSet with the machines that it has claimed, by name.
type set struct {
	View
	Object   *mcm.MachineSet
	machines []*mcm.Machine
}

// manage decides about a MachineSet that stays. While machines are missing, none is deleted, not even
// a failed one: it is replaced once it has gone.
func (p *Plan) manage(s set) {
	preserve := s.preservations()
	var deletions []Deletion
	if missing := s.missing(); missing <= 0 {
		deletions = s.victims(preserve)
	} else if n := s.creatable(missing); n > 0 {
		p.Creations = append(p.Creations, Creation{s.Object, n})
	}
	p.Deletions = append(p.Deletions, deletions...)
	p.Machines = append(p.Machines, s.changes(preserve, deletions)...)
	p.report(s)
	p.Again = requeue.Sooner(p.Again, s.nextExpiry())
}

// dismantle decides about a MachineSet that is being deleted: first its machines go, then its
// finalizer.
func (p *Plan) dismantle(s set) {
	if !slices.Contains(s.Object.Finalizers, Finalizer) {
		p.report(s)
		return
	}
	if len(s.machines) == 0 {
		p.Finalizers = append(p.Finalizers, FinalizerChange{Set: s.Object})
		return
	}
	for _, m := range s.machines {
		if m.DeletionTimestamp == nil {
			p.Deletions = append(p.Deletions, Deletion{s.Object, m, SetDeleted})
		}
	}
	p.report(s)
}

// nextExpiry returns when the next failed machine is not preserved any more; 0 if there is none.
func (s set) nextExpiry() (next time.Duration) {
	for _, m := range s.machines {
		if isFailed(m) && pool.Preserved(m, s.Now) {
			next = requeue.Sooner(next, m.Status.CurrentStatus.PreserveExpiryTime.Sub(s.Now))
		}
	}
	return next
}

func isFailed(m *mcm.Machine) bool { return m.Status.CurrentStatus.Phase == mcm.MachineFailed }

func sortedSets(sets []Set) []Set {
	return slices.SortedFunc(slices.Values(sets), func(a, b Set) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
}

func sortedMachines(machines []*mcm.Machine) []*mcm.Machine {
	return slices.SortedFunc(slices.Values(machines), func(a, b *mcm.Machine) int { return cmp.Compare(a.Name, b.Name) })
}

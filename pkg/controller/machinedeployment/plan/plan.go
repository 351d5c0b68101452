// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/requeue"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// Finalizer keeps a MachineDeployment until its MachineSets are gone, and a MachineSet until its
	// machines are.
	Finalizer = "machine.sapcloud.io/machine-controller-manager"
	// Burst is how many machines of a MachineSet are created, or deleted, at most by one plan. A
	// MachineSet that is being deleted deletes all at once.
	Burst = 100
	// soon is when the rest is decided after machines came or went: what follows from that need not wait
	// until a watch shows it.
	soon = 10 * time.Millisecond
)

// Plan is what to write, in the order in which it is written. It contains only what differs from
// what is stored, so it is empty at rest.
type Plan struct {
	// SetClaims and Claims come alone: while a MachineDeployment adopts or releases MachineSets, and a
	// MachineSet machines, nothing else is decided about these.
	SetClaims []SetClaim
	Claims    []Claim
	// Deployment changes the MachineDeployment, except for its status, if it is not nil.
	Deployment *DeploymentChange
	// Sets change in this order: those that shrink first, and if one of these cannot be written, no later one
	// is, so that a machine that moves is never included twice.
	Sets []SetChange
	// NewSets are to be created, with their first machines.
	NewSets      []*mcm.MachineSet
	Machines     []MachineChange
	Creations    []Creation
	Deletions    []Deletion
	SetDeletions []*mcm.MachineSet
	Nodes        []NodeChange
	Statuses     []StatusChange
	// DeploymentStatus replaces the status of the MachineDeployment, if it is not nil.
	DeploymentStatus *DeploymentStatusChange
	// Moves are the changes of the reserve among those of Machines, for events.
	Moves []machinetaint.MachineChange
	// Memory is kept for the next view of the MachineDeployment, if it is not nil.
	Memory *machinetaint.Memory
	// Again is when to decide again although nothing has happened.
	Again time.Duration
}

// SetClaim adopts a MachineSet, or releases it.
type SetClaim struct {
	Set   *mcm.MachineSet
	Adopt bool
}

// Claim adopts a machine, or releases it.
type Claim struct {
	Set     *mcm.MachineSet
	Machine *mcm.Machine
	Adopt   bool
}

// DeploymentChange changes a MachineDeployment, except for its status.
type DeploymentChange struct {
	Before, After *machine.MachineDeployment
	Events        []Event
}

// DeploymentStatusChange replaces the status of the MachineDeployment.
type DeploymentStatusChange struct {
	After  machine.MachineDeploymentStatus
	Events []Event
}

// SetChange changes a MachineSet, except for its status.
type SetChange struct {
	Before, After *mcm.MachineSet
	Events        []Event
}

// Shrinks reports whether there are to be fewer machines.
func (c SetChange) Shrinks() bool { return c.After.Spec.Replicas < c.Before.Spec.Replicas }

// MachineChange changes a Machine, except for its status.
type MachineChange struct{ Before, After *mcm.Machine }

// NodeChange changes a Node, except for its status.
type NodeChange struct {
	Before, After *corev1.Node
	// Urgent reports whether pods may wait for it: it is written beside all others, and not after them.
	Urgent bool
}

// Creation creates machines. The last ones of them, as many as Reserve says, get the mark.
type Creation struct {
	Set            *mcm.MachineSet
	Count, Reserve int
	Mark           machine.Reserve
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
	Set    *mcm.MachineSet
	After  mcm.MachineSetStatus
	Events []Event
}

// Event is reported once the change that it is about has been written. It is one of a MachineSet, or of
// the MachineDeployment if Set is nil.
type Event struct {
	Set             *mcm.MachineSet
	Type            string
	Reason, Message string
}

// IsEmpty reports whether there is nothing to write.
func (p Plan) IsEmpty() bool {
	return len(p.SetClaims)+len(p.Claims)+len(p.NewSets)+len(p.Sets)+len(p.Machines)+len(p.Creations)+len(p.Deletions)+
		len(p.SetDeletions)+len(p.Nodes)+len(p.Statuses) == 0 && p.Deployment == nil && p.DeploymentStatus == nil
}

// IsSteady reports whether there is nothing to write but statuses.
func (p Plan) IsSteady() bool {
	p.Statuses, p.DeploymentStatus = nil, nil
	return p.IsEmpty()
}

// New decides about what a view shows.
func New(v View) Plan {
	var p Plan
	adopted := map[types.UID]bool{}
	if v.Deployment != nil {
		p.decideDeployment(v.withTotal(), adopted)
	} else {
		for _, s := range sortedSets(v.Sets) {
			p.decideSet(v, s, s.Object.DeepCopy(), adopted)
		}
	}
	slices.SortStableFunc(p.Sets, func(a, b SetChange) int { return shrinkingFirst[a.Shrinks()] - shrinkingFirst[b.Shrinks()] })
	if len(p.SetClaims)+len(p.Claims)+len(p.NewSets)+len(p.Sets)+len(p.Creations)+len(p.Deletions)+len(p.Nodes) > 0 {
		p.Again = soon
	}
	return p
}

var shrinkingFirst = map[bool]int{false: 1}

// DeferNumbers leaves out the statuses in which only numbers change, which are to be written after so long.
func (p *Plan) DeferNumbers(v View, wait time.Duration) {
	n := len(p.Statuses)
	p.Statuses = slices.DeleteFunc(p.Statuses, func(c StatusChange) bool {
		was, is := c.Set.Status, c.After
		return len(c.Events) == 0 && was.ObservedGeneration == is.ObservedGeneration && slices.EqualFunc(was.Conditions, is.Conditions, sameSetCondition)
	})
	deferred := len(p.Statuses) < n
	if c := p.DeploymentStatus; c != nil {
		was, is := v.Deployment.Status, c.After
		if len(c.Events) == 0 && was.ObservedGeneration == is.ObservedGeneration && slices.EqualFunc(was.Conditions, is.Conditions, sameCondition) {
			p.DeploymentStatus, deferred = nil, true
		}
	}
	if deferred {
		p.Again = requeue.Sooner(p.Again, wait)
	}
}

func sameSetCondition(a, b mcm.MachineSetCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

func sameCondition(a, b mcm.MachineDeploymentCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// set is a MachineSet with the machines that it has claimed.
type set struct {
	View
	stored *mcm.MachineSet
	// Object is the MachineSet as it will be.
	Object *mcm.MachineSet
	// machines are as they will be, by name. Those that are changed differ from those that were looked at.
	machines []*mcm.Machine
	lookedAt map[types.UID]*mcm.Machine
	// invalid is what is wrong with its spec, if anything. Nothing is done about its machines then.
	invalid *Failure
	// frozen is the condition Frozen as it will be; nil if there is none.
	frozen *mcm.MachineSetCondition
	// guardAgain is in how long it may be frozen because of machines that take their time to go; 0 means never.
	guardAgain time.Duration
	events     []Event
	// of is its MachineDeployment; nil if it has none.
	of *deployment
}

// decideSet adds what is to be done about a MachineSet that has no MachineDeployment.
func (p *Plan) decideSet(v View, s Set, after *mcm.MachineSet, adopted map[types.UID]bool) {
	one, claimed := p.claimMachines(v, s, after, adopted)
	if claimed {
		p.manage(one)
	}
}

// claimMachines returns a MachineSet with its machines, unless it has to adopt or release machines
// first.
func (p *Plan) claimMachines(v View, s Set, after *mcm.MachineSet, adopted map[types.UID]bool) (*set, bool) {
	selector, invalid := validate(s.Object)
	leaving := s.Object.DeletionTimestamp != nil
	one := &set{View: v, stored: s.Object, Object: after, lookedAt: map[types.UID]*mcm.Machine{}}
	if invalid != nil && !leaving {
		one.invalid, one.machines = invalid, sortedMachines(s.Machines)
		return one, true
	}
	if !leaving && !slices.Contains(after.Finalizers, Finalizer) {
		after.Finalizers = append(after.Finalizers, Finalizer)
	}
	machines, claims := claim(s, selector, v.Orphans, adopted)
	if len(claims) > 0 {
		p.Claims = append(p.Claims, claims...)
		p.change(one)
		return one, false
	}
	for _, m := range machines {
		one.machines = append(one.machines, m)
		one.lookedAt[m.UID] = m
	}
	one.guard()
	return one, true
}

// manage decides about the machines of a MachineSet. While machines are missing, none is deleted, not
// even a failed one: it is replaced once it has gone.
func (p *Plan) manage(s *set) {
	if s.invalid != nil {
		p.change(s)
		p.reportInvalid(s, *s.invalid)
		return
	}
	if s.Object.DeletionTimestamp != nil {
		p.dismantle(s)
		return
	}
	preserve := s.preservations()
	var deletions []Deletion
	if missing := s.missing(); missing <= 0 {
		deletions = s.victims(preserve)
	} else if c := s.creation(missing); c.Count > 0 {
		p.Creations = append(p.Creations, c)
	}
	p.Deletions = append(p.Deletions, deletions...)
	p.Machines = append(p.Machines, s.changes(preserve, deletions)...)
	p.change(s)
	p.report(s)
	p.Again = requeue.Sooner(requeue.Sooner(p.Again, s.nextExpiry()), s.guardAgain)
}

// dismantle decides about a MachineSet that is being deleted: first its machines go, then its
// finalizer.
func (p *Plan) dismantle(s *set) {
	if !slices.Contains(s.Object.Finalizers, Finalizer) {
		p.report(s)
		return
	}
	if len(s.machines) == 0 {
		s.Object.Finalizers = slices.DeleteFunc(s.Object.Finalizers, func(f string) bool { return f == Finalizer })
		p.change(s)
		return
	}
	for _, m := range s.machines {
		if m.DeletionTimestamp == nil {
			p.Deletions = append(p.Deletions, Deletion{s.Object, m, SetDeleted})
		}
	}
	p.report(s)
}

// change adds what differs in a MachineSet.
func (p *Plan) change(s *set) {
	if was, is := s.stored.Spec.Replicas, s.Object.Spec.Replicas; was != is {
		way := map[bool]string{true: "up", false: "down"}[is > was]
		s.events = append(s.events, Event{nil, corev1.EventTypeNormal, "ScalingMachineSet", fmt.Sprintf("Scaled %s machine set %s to %d", way, s.stored.Name, is)})
	}
	if !equality.Semantic.DeepEqual(s.stored.ObjectMeta, s.Object.ObjectMeta) || !equality.Semantic.DeepEqual(s.stored.Spec, s.Object.Spec) {
		p.Sets = append(p.Sets, SetChange{s.stored, s.Object, s.events})
	}
}

// nextExpiry returns when the next failed machine is not preserved any more; 0 if there is none.
func (s *set) nextExpiry() (next time.Duration) {
	for _, m := range s.machines {
		if isFailed(m) && pool.Preserved(m, s.Now) {
			next = requeue.Sooner(next, m.Status.CurrentStatus.PreserveExpiryTime.Sub(s.Now))
		}
	}
	return next
}

func isFailed(m *mcm.Machine) bool { return m.Status.CurrentStatus.Phase == mcm.MachineFailed }

// sortedSets returns MachineSets by age, then by name.
func sortedSets(sets []Set) []Set {
	return slices.SortedFunc(slices.Values(sets), func(a, b Set) int { return byAge(a.Object, b.Object) })
}

func byAge(a, b *mcm.MachineSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func sortedMachines(machines []*mcm.Machine) []*mcm.Machine {
	return slices.SortedFunc(slices.Values(machines), func(a, b *mcm.Machine) int { return cmp.Compare(a.Name, b.Name) })
}

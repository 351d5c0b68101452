// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Plan is what to do about a View. It is carried out as apply says, and may be carried out in part.
type Plan struct {
	// Idle reports whether the MachineDeployment has no reserve and none is desired, or whether that is not known yet. Nothing is
	// written then.
	Idle bool
	// Rule is what the rule of the reserve decided.
	Rule reserve.Plan
	// Deployment is what to write to the MachineDeployment itself.
	Deployment DeploymentChange
	// Machines are in the order to write them: those that are to serve come first.
	Machines []MachineChange
	// Nodes to mark or to free, those to free first.
	Nodes []NodeChange
	// Report is what to say of it.
	Report Report
	// Memory is what the next View is to hold.
	Memory Memory
	// Again is when to look again though nothing happens; 0 is never.
	Again time.Duration
}

// frees says that machines leave the reserve.
func (p Plan) frees() bool {
	return slices.ContainsFunc(p.Machines, func(c MachineChange) bool { return c.Mark == Free })
}

// canWait says that there is nothing to do but to tell of what has been done.
func (p Plan) canWait() bool {
	acts := func(c MachineChange) bool { return c.Mark != Keep || c.Priority != 0 }
	return !slices.ContainsFunc(p.Machines, acts) && len(p.Nodes) == 0 && p.Deployment.Replicas == 0
}

// DeploymentChange is one write of a MachineDeployment.
type DeploymentChange struct {
	// Replicas to add to spec.replicas: for machines in reserve that somebody named, or because it includes the reserve.
	Replicas int
	// Field is what spec.excessReplicas is to hold, nil to leave it.
	Field *int32
	// Annotations to set; those with an empty value are to be removed.
	Annotations map[string]string
	// Restored says that the field had been wiped.
	Restored bool
	// Managed is what metadata.managedFields is to be, nil to leave it: once the field is restored, it is its owners' again.
	Managed []metav1.ManagedFieldsEntry
	// LetGo names the owner that gave the field up: it is removed, if it is there.
	LetGo string
}

func (c DeploymentChange) none() bool {
	return c.Replicas == 0 && c.Field == nil && c.LetGo == "" && c.Managed == nil && len(c.Annotations) == 0
}

// MachineChange is one write of a Machine.
type MachineChange struct {
	Name string
	// Mark says what becomes of its mark.
	Mark Marking
	// Priority it gets, 0 for that it has.
	Priority int
	// State is what it says of itself from then on, nil to leave it; see [v1alpha1.ReserveStateAnnotation].
	State *string
	Why   reserve.Why
}

// Marking is what becomes of a mark.
type Marking int

// What can become of a mark: it stays as it is, is taken off, or put on, also in place of an old one.
const (
	Keep Marking = iota
	Free
	Hold
)

// Occupied: it serves because workload runs on it, whatever its mark says.
const Occupied reserve.Why = "Occupied"

// NewPlan decides.
func NewPlan(v View) Plan {
	w := wishOf(v)
	if idle(v, w) {
		return Plan{Idle: true}
	}
	if wait := awaitsShare(v, w); wait > 0 {
		return Plan{Idle: true, Again: wait}
	}
	if text := recovered(v, w); text != "" {
		v.Memory.Applied, v.Memory.UID = text, v.Deployment.UID
		w = wishOf(v)
	}
	view := ruleView(v, w)
	p := Plan{Rule: reserve.NewPlan(view)}
	after := laid(v, view, p.Rule)
	p.Memory = Memory{
		SurplusSince: p.Rule.SurplusSince, Retry: p.Rule.Retry, Lowered: p.Rule.Lowered, Contest: w.contest,
		Applied: after.Annotations[v1alpha1.AppliedExcessAnnotation], UID: v.Deployment.UID,
	}
	p.Again = sooner(p.Rule.Again, w.contest.Until.Sub(v.Now))
	p.Machines = machineChanges(v, p.Rule)
	p.Nodes = nodeChanges(v, p.Machines)
	p.Machines = withStates(v, p.Machines, p.Nodes)
	p.Deployment = deploymentChange(v, w, after, p.Rule)
	p.Report = report(v, w, p.Rule)
	return p
}

// sooner is the shorter of two waits, of which one of 0 or less never ends.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(0, b)
	}
	return a
}

// idle says that there is nothing of a reserve here, neither wanted nor left.
func idle(v View, w wish) bool {
	d := v.Deployment
	if w.trouble != nil || w.Wish > 0 || w.field != nil || w.recorded != nil || w.letGo != "" || w.contest.Writes > 0 || reported(d) {
		return false
	}
	if v.Memory.applied(d).Excess > 0 {
		return false
	}
	for _, key := range []string{v1alpha1.AppliedExcessAnnotation, v1alpha1.WantedExcessAnnotation, v1alpha1.ExcessOwnersAnnotation, v1alpha1.ReturnedAnnotation} {
		if _, there := d.Annotations[key]; there {
			return false
		}
	}
	return !slices.ContainsFunc(v.Machines, func(m Machine) bool { return m.Marked() || m.Node != nil && nodeMarked(m.Node) })
}

// ruleView is the view as the rule of the reserve has it.
func ruleView(v View, w wish) reserve.View {
	d := v.Deployment
	view := reserve.View{
		Replicas: v.Memory.workload(d), Wish: w.Wish, Excess: w.Excess, Min: w.min, Max: w.Max, Accounting: w.accounting, Applied: v.Memory.applied(d),
		CurrentSet: v.CurrentSet, Rollout: v.Rollout, SetReplicas: v.Wanted, MaxSetReplicas: v.Asked, Behind: v.Behind,
		AllLeaving: v.Asleep && w.accounting == pool.Inclusive && d.Spec.Replicas <= 0, NodesUnknown: v.Unreachable != "", Unhealthy: v.Unhealthy, FreezeMargin: freezeMargin(v), Now: v.Now, Patience: v.Settings.SurplusPatience, BootPatience: v.Settings.BootPatience,
		SurplusSince: v.Memory.SurplusSince, Retry: v.Memory.Retry, Lowered: v.Memory.Lowered,
	}
	returned := returned(d)
	for _, m := range v.Machines {
		view.Machines = append(view.Machines, m.plain(returned))
	}
	return view
}

// machineChanges puts what the rule moves and ranks into one write for each machine.
func machineChanges(v View, rule reserve.Plan) []MachineChange {
	changes := map[string]*MachineChange{}
	of := func(name string) *MachineChange {
		if changes[name] == nil {
			changes[name] = &MachineChange{Name: name}
		}
		return changes[name]
	}
	for _, m := range v.Machines {
		switch {
		case !m.writable() || v.Unreachable != "":
		case m.Marked() && m.NonTolerating > 0:
			of(m.Object.Name).Mark, of(m.Object.Name).Why = Free, Occupied
		case m.Reserve() && !m.Busy() && m.markDiffers(v.Settings):
			of(m.Object.Name).Mark = Hold
		}
	}
	for _, move := range rule.Moves {
		c := of(move.Name)
		c.Mark, c.Why = Free, move.Why
		if move.Reserve {
			c.Mark = Hold
		}
	}
	for _, p := range rule.Priorities {
		of(p.Name).Priority = p.Priority
	}
	all := make([]MachineChange, 0, len(changes))
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		all = append(all, *changes[name])
	}
	urgent := func(c MachineChange) int {
		if c.Mark == Free {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b MachineChange) int { return urgent(a) - urgent(b) })
	return all
}

// deploymentChange gathers all that is to be written to the MachineDeployment. After is what its numbers are to be.
func deploymentChange(v View, w wish, after *v1alpha1.MachineDeployment, rule reserve.Plan) DeploymentChange {
	d := v.Deployment
	c := DeploymentChange{Replicas: int(after.Spec.Replicas - d.Spec.Replicas), Field: w.field, Restored: w.restored, Managed: w.managed, LetGo: w.letGo, Annotations: map[string]string{}}
	put := func(key, value string) {
		if d.Annotations[key] != value {
			c.Annotations[key] = value
		}
	}
	put(v1alpha1.AppliedExcessAnnotation, after.Annotations[v1alpha1.AppliedExcessAnnotation])
	put(v1alpha1.AppliedReplicasAnnotation, after.Annotations[v1alpha1.AppliedReplicasAnnotation])
	put(v1alpha1.ReturnedAnnotation, returnedText(v, rule.Returned))
	put(v1alpha1.WantedExcessAnnotation, countText(w.recorded))
	put(v1alpha1.ExcessOwnersAnnotation, v1alpha1.ExcessOwnersText(w.owners))
	return c
}

// returnedText names the machines that R was given back for, as long as they are there.
func returnedText(v View, more []string) string {
	before := returned(v.Deployment)
	var names []string
	for _, m := range v.Machines {
		if name := m.Object.Name; before[name] || slices.Contains(more, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

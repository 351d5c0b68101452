// SPDX-License-Identifier: Apache-2.0

// Package machinetaint decides what to write for the reserve of one MachineDeployment: to its
// Machines and their Nodes, to the MachineDeployment itself, and to its status. [New] decides from
// a [View]: the time, the objects, and the [Memory] of the last plan. Package reserve decides which
// machines serve. The package is pure: the same View gives the same [Plan].
//
// Laws, in addition to those of package reserve:
//
//  1. A Node has the whole mark exactly if its Machine does, and only the mark is removed. A marked
//     machine on which workload runs loses it and serves.
//  2. spec.excessReplicas means 0 once its owner removes it, is restored if a client drops it
//     unknowingly, and shows what bounds or a share determine.
//  3. Invalid settings leave the reserve as it is, and the condition describes what to write. A
//     record of the excess that a client dropped is restored first.
package machinetaint

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Plan is what to do about a View. The controller carries it out, possibly in part.
type Plan struct {
	// Idle reports whether the MachineDeployment has no reserve and none is desired, or whether that
	// is not known yet. Nothing is written then.
	Idle bool
	// Rule is the plan of the reserve rule.
	Rule reserve.Plan
	// Deployment is what to write to the MachineDeployment itself.
	Deployment DeploymentChange
	// Machines are the changes of Machines in the order to write them: those that are to serve come
	// first.
	Machines []MachineChange
	// Nodes are the changes of Nodes; releases come first.
	Nodes []NodeChange
	// Report is the content of the status.
	Report Report
	// Memory is kept for the next View.
	Memory Memory
	// Again is the time until the next sync without an event; 0 means never.
	Again time.Duration
}

// DeploymentChange is one write of a MachineDeployment.
type DeploymentChange struct {
	// Replicas is added to spec.replicas: for reserve machines that a client named, or because it
	// includes the reserve.
	Replicas int
	// Field is the new spec.excessReplicas, nil to leave it.
	Field *int32
	// Annotations to set; those with an empty value are to be removed.
	Annotations map[string]string
	// Restored reports whether the field had been removed.
	Restored bool
	// Managed is the new metadata.managedFields, nil to leave it: after the field is restored, it
	// belongs to its owners again.
	Managed []metav1.ManagedFieldsEntry
	// Removed reports whether a client removed the field, and meant 0.
	Removed bool
	// Witness is the new spec.reserveWitness, nil to leave it.
	Witness *bool
}

// MachineChange is one write of a Machine.
type MachineChange struct {
	Name string
	// Mark is the change of its mark.
	Mark Marking
	// Unranked reports whether it loses its deletion priority; see [pool.HasLeftoverPriority].
	Unranked bool
	// State is its new state, nil to leave it; see [v1alpha1.ReserveStateAnnotation].
	State *string
	// Owner is whom it is dedicated to from now on, nil to leave that.
	Owner *v1alpha1.Owner
	Why   reserve.Why
}

// Marking is a change of a mark.
type Marking int

// Keep leaves a mark as it is, Free removes it, and Hold adds one, which also replaces an old one.
const (
	Keep Marking = iota
	Free
	Hold
)

// Occupied: it serves because workload runs on it, although it has a mark.
const Occupied reserve.Why = "Occupied"

// New makes a plan. See the laws in the package comment of the controller.
func New(v View) Plan {
	w := desiredReserve(v)
	if hasNoReserve(v, w) || awaitsAccounting(v) {
		return Plan{Idle: true}
	}
	if wait := awaitsShare(v, w); wait > 0 {
		return Plan{Idle: true, Again: wait}
	}
	if text := recoveredExcess(v, w); text != "" {
		v.Memory.Applied = text
		w = desiredReserve(v)
	}
	preparation := v.preparations()
	view := ruleView(v, w, preparation)
	p := Plan{Rule: restoreFirst(v, view, reserve.Decide(view))}
	after := withNumbers(v, view, p.Rule)
	p.Memory = Memory{
		SurplusSince: p.Rule.SurplusSince, Retry: p.Rule.Retry, Lowered: p.Rule.Lowered, FieldConflict: w.fieldConflict,
		Applied: after.Annotations[v1alpha1.AppliedExcessAnnotation], Known: true,
	}
	p.Again = requeue.Sooner(requeue.Sooner(p.Rule.Again, w.fieldConflict.Until.Sub(v.Now)), recheck(v, p.Rule))
	p.Machines = machineChanges(v, p.Rule)
	p.Nodes = nodeChanges(v, p.Machines)
	p.Machines = withStates(v, p.Machines, p.Nodes)
	p.Deployment = deploymentChange(v, w, after)
	p.Report = newReport(v, w, p.Rule, preparation)
	return p
}

// HasNoReserve reports whether there is no reserve here, neither desired nor left. The view need
// not be complete for that: [pool.Outline] reads all that shows it.
func (v View) HasNoReserve() bool { return hasNoReserve(v, desiredReserve(v)) }

// hasNoReserve is HasNoReserve for what is desired.
func hasNoReserve(v View, w desired) bool {
	d := v.Deployment
	if w.problem != nil || w.Wish > 0 || w.field != nil || w.recorded != nil || w.witness != nil || w.fieldConflict.Writes > 0 || reported(d) {
		return false
	}
	if v.Memory.AppliedTo(d).Excess > 0 {
		return false
	}
	for _, key := range []string{v1alpha1.AppliedExcessAnnotation, v1alpha1.WantedExcessAnnotation, v1alpha1.ExcessOwnersAnnotation, returnedAnnotation, v1alpha1.ClaimedAnnotation} {
		if _, there := d.Annotations[key]; there {
			return false
		}
	}
	return !slices.ContainsFunc(v.Machines, func(m Machine) bool { return m.Marked() || m.Node != nil && nodeMarked(m.Node) })
}

// returnedAnnotation is what versions before 0.1 recorded of machines that clients had named. It is removed.
const returnedAnnotation = v1alpha1.AnnotationPrefix + "returned"

// restoreFirst leaves the applied excess as it is if a client has removed its record, and replicas include
// the reserve: the record is restored first. Otherwise, if the outcome of a write that changes it is
// unknown, nothing shows which replicas belong to which excess.
func restoreFirst(v View, view reserve.View, rule reserve.Plan) reserve.Plan {
	if _, there := v.Deployment.Annotations[v1alpha1.AppliedExcessAnnotation]; there || !view.Applied.Included() {
		return rule
	}
	rule.Replicas, rule.Applied = view.Replicas, view.Applied
	rule.Retry, rule.Lowered, rule.SurplusSince = view.Retry, view.Lowered, view.SurplusSince
	return rule
}

// ruleView returns the view as the reserve rule sees it.
func ruleView(v View, w desired, preparation func(Machine) Preparation) reserve.View {
	d := v.Deployment
	view := reserve.View{
		Replicas: v.Memory.Workload(d), Waiting: v.Memory.Waiting(d), Wish: w.Wish, Min: w.min, Max: w.Max, Accounting: w.accounting, Applied: v.Memory.AppliedTo(d),
		CurrentSet: v.CurrentSet, Rollout: v.Rollout, SetReplicas: v.SetReplicas, NamedSpares: NamedSpares(d, v.Machines), SettingsUnknown: w.problem != nil,
		AllLeaving: v.AllLeaving && w.accounting == pool.Inclusive && d.Spec.Replicas <= 0, NodesUnknown: v.Unreachable != "", Unhealthy: v.Unhealthy, Now: v.Now, Patience: v.Settings.SurplusPatience, BootPatience: v.Settings.BootPatience,
		SurplusSince: v.Memory.SurplusSince, Retry: v.Memory.Retry, Lowered: v.Memory.Lowered,
	}
	view.Clamped = view.Applied.Absorbed > 0 && clamped(d)
	view.Dedicated = pool.Dedications(d, view.Replicas)
	claims := pool.ClaimsOf(d)
	for _, m := range v.Machines {
		one := reserve.MachineOf(m.Machine)
		one.Claimed = claims.Has(one.Name, view.Replicas)
		one.Unprepared = preparation(m).Missing
		if v.Targetless {
			one.Open, one.Pods = false, 0 // there are no pods
		}
		if m.Node != nil && v.Unclosable[m.Node.Name] {
			one.Open = false // it never will be closed, and its pods are listed before it is deleted
		}
		view.Machines = append(view.Machines, one)
	}
	v.addEvictions(&view)
	return view
}

// machineChanges combines all changes to one write for each machine.
func machineChanges(v View, rule reserve.Plan) []MachineChange {
	changes := map[string]*MachineChange{}
	of := func(name string) *MachineChange {
		if changes[name] == nil {
			changes[name] = &MachineChange{Name: name}
		}
		return changes[name]
	}
	for _, m := range v.Machines {
		if !m.writable() || v.Unreachable != "" {
			continue
		}
		if pool.HasLeftoverPriority(m.Object) {
			of(m.Object.Name).Unranked = true
		}
		switch {
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
	for _, o := range rule.Owners {
		of(o.Name).Owner = &o.Owner
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

// deploymentChange collects everything to write to the MachineDeployment. After contains its new
// numbers.
func deploymentChange(v View, w desired, after *v1alpha1.MachineDeployment) DeploymentChange {
	d := v.Deployment
	c := DeploymentChange{Replicas: int(after.Spec.Replicas - d.Spec.Replicas), Field: w.field, Restored: w.restored, Managed: w.managed, Removed: w.removed, Witness: w.witness, Annotations: map[string]string{}}
	put := func(key, value string) {
		if d.Annotations[key] != value {
			c.Annotations[key] = value
		}
	}
	put(v1alpha1.AppliedExcessAnnotation, after.Annotations[v1alpha1.AppliedExcessAnnotation])
	put(v1alpha1.AppliedReplicasAnnotation, after.Annotations[v1alpha1.AppliedReplicasAnnotation])
	put(returnedAnnotation, "")
	put(v1alpha1.WantedExcessAnnotation, countText(w.recorded))
	put(v1alpha1.ExcessOwnersAnnotation, v1alpha1.ExcessOwnersText(w.owners))
	if !claimsHold(v) {
		put(v1alpha1.ClaimedAnnotation, "")
	}
	return c
}

// claimsHold reports whether a machine in reserve is claimed. Otherwise, the record of claims has
// served its purpose, or is void because replicas have been lowered since.
func claimsHold(v View) bool {
	claims, workload := pool.ClaimsOf(v.Deployment), v.Memory.Workload(v.Deployment)
	return slices.ContainsFunc(v.Machines, func(m Machine) bool { return m.Reserve() && claims.Has(m.Object.Name, workload) })
}

// recheckPods is how often a plan is made again while a surplus stays because of its pods. Budgets
// change often, and only few changes matter.
const recheckPods = time.Minute

// Evictions is what decides which machines of a surplus can be drained.
type Evictions struct {
	// Budgets are the PodDisruptionBudgets of the namespaces of Pods; BudgetsUnknown is why they are
	// not known, if they are not.
	Budgets        []pool.Budget
	BudgetsUnknown string
	// Pods are those on each machine that serves, by its name.
	Pods map[string][]*corev1.Pod
	// Expected are pods of other machines that are about to be evicted.
	Expected []*corev1.Pod
}

// NeedsEvictions reports whether more machines serve than replicas, or did, and patience with them has
// ended, so that one may have to be drained.
func (v View) NeedsEvictions() bool {
	since := v.Memory.SurplusSince
	if since.IsZero() && v.Settings.SurplusPatience > 0 || v.Now.Sub(since) < v.Settings.SurplusPatience {
		return false
	}
	serving := 0
	for _, m := range v.Machines {
		if !m.Reserve() && !m.Leaving() && !pool.Unhealthy(m.Phase()) {
			serving++
		}
	}
	return serving > v.Memory.Workload(v.Deployment) || !since.IsZero()
}

// addEvictions adds to the view of the rule which machines can be drained. While that is not read, none
// can.
// Without a target cluster, there are no pods.
func (v View) addEvictions(rule *reserve.View) {
	e := v.Evictions
	if v.Targetless {
		return
	}
	if e == nil {
		for i := range rule.Machines {
			rule.Machines[i].Pinned = "its pods have not been read yet"
		}
		return
	}
	evictor := pool.NewEvictor(v.Settings.Eviction, e.Budgets, e.BudgetsUnknown, v.Now)
	evictor.Expect(e.Expected...)
	for i := range rule.Machines {
		m := &rule.Machines[i]
		m.Pinned = evictor.WhyNot(e.Pods[m.Name]...)
		if v.Machines[i].Unseen {
			m.Pinned = "its Node and pods cannot be seen"
		}
	}
	rule.Budgets = evictor.Shared(e.Pods)
}

// recheck returns the time until a surplus is looked at again that stays although patience has ended;
// 0 if there is none.
func recheck(v View, rule reserve.Plan) time.Duration {
	if rule.SurplusSince.IsZero() || v.Now.Sub(rule.SurplusSince) < v.Settings.SurplusPatience {
		return 0
	}
	return recheckPods
}

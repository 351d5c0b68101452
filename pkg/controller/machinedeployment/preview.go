// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Preview is a controller over given objects that writes nothing. The caller applies its plans: see
// [Preview.After].
type Preview struct {
	c              *Controller
	clock          *still.Clock
	budgetsUnknown string
	podsUnknown    bool
	// created counts the objects that plans have created.
	created int
}

// Objects are everything that the preview reads. None of them is changed.
type Objects struct {
	Deployments []*machine.MachineDeployment
	Sets        []*mcm.MachineSet
	Machines    []*mcm.Machine
	Classes     []*mcm.MachineClass
	Nodes       []*corev1.Node
	Pods        []*corev1.Pod
	Budgets     []*policyv1.PodDisruptionBudget
	// BudgetsUnknown is why Budgets are not known; empty if they are.
	BudgetsUnknown string
	// PodsUnknown reports whether there is a target cluster whose Nodes or pods are not known, for a preview
	// without one: machines that serve count as busy then, those in reserve as empty.
	PodsUnknown bool
	// Devices counts the devices of Nodes; nil if they are not known.
	Devices pool.DeviceCounter
}

// NewPreview returns a preview without objects. Without hasTarget, there is no target cluster.
func NewPreview(s plan.Settings, r machinetaint.Settings, hasTarget bool) (*Preview, error) {
	i := Informers{Machines: stores.New(nil, metav1.NamespaceAll)}
	if hasTarget {
		i.Target = target.New(nil, nil)
	}
	p := &Preview{clock: &still.Clock{}}
	var err error
	if p.c, err = New(Clients{}, i, nil, Options{Settings: s, Reserve: r, Clock: p.clock}); err != nil {
		return nil, err
	}
	p.c.reserves.podsFilled = func() bool { return true }
	p.c.reserves.budgetsUnknown = func() string { return p.budgetsUnknown }
	p.c.Run(still.EndedContext())
	return p, nil
}

// SetObjects replaces the objects of the preview.
func (p *Preview) SetObjects(o Objects, now time.Time) error {
	p.clock.Set(now)
	p.budgetsUnknown, p.podsUnknown = o.BudgetsUnknown, o.PodsUnknown
	c := p.c
	c.reserves.devices = o.Devices
	errs := []error{
		still.Replace(c.deployments, o.Deployments), still.Replace(c.sets, o.Sets), still.Replace(c.machines, o.Machines),
		still.Replace(c.reserves.classes, o.Classes),
	}
	if c.nodes != nil {
		errs = append(errs, still.Replace(c.nodes, o.Nodes), still.Replace(c.reserves.pods, o.Pods), still.Replace(c.reserves.budgets, o.Budgets))
	}
	return errors.Join(errs...)
}

// Plan returns what the controller would do about a MachineDeployment now; false if there is none.
func (p *Preview) Plan(namespace, name string) (plan.View, plan.Plan, bool) {
	v, err := p.c.observe(context.Background(), key{deploymentKind, namespace, name})
	if err != nil || v.Deployment == nil { // without a client, there is nothing that could fail
		return plan.View{}, plan.Plan{}, false
	}
	if r := v.Reserve; r != nil && p.podsUnknown {
		r.Targetless = false
		for i := range r.Machines {
			r.Machines[i].Unseen = !r.Machines[i].Marked()
		}
	}
	return v, plan.New(v), true
}

// Kept returns what a plan has decided about the reserve; nil if there is none, or if the plan does nothing
// about it.
func Kept(v plan.View, made plan.Plan) *machinetaint.Plan {
	if made.Memory == nil {
		return nil
	}
	kept := machinetaint.New(*v.Reserve)
	return &kept
}

// Remember keeps the memory of a plan for the next View.
func (p *Preview) Remember(v plan.View, made plan.Plan) { p.c.remember(v, made) }

// After contains the objects that differ after a plan.
type After struct {
	// Deployment is nil if the plan ends its deletion.
	Deployment *machine.MachineDeployment
	// Sets are those that have changed or were created, and GoneSets those that do not exist any more.
	Sets, GoneSets []*mcm.MachineSet
	// Machines have changed: those that were deleted are Terminating. Created are new, in the order of their
	// creation.
	Machines, Created []*mcm.Machine
	Nodes             []*corev1.Node
}

// After applies a plan to copies of the objects of its view, in the order in which the controller writes
// them, if all writes succeed.
func (p *Preview) After(v plan.View, made plan.Plan) (After, error) {
	o := &outcome{Preview: p, view: v, deployment: v.Deployment, sets: map[types.UID]*mcm.MachineSet{}, machines: map[types.UID]*mcm.Machine{}}
	for _, s := range v.Sets {
		o.sets[s.Object.UID] = s.Object
		for _, m := range s.Machines {
			o.machines[m.UID] = m
		}
	}
	o.change(made)
	first, status := o.createSets(made)
	if err := o.create(slices.Concat(made.Creations, first)); err != nil {
		return After{}, err
	}
	o.delete(made)
	o.report(made.Statuses, status)
	return o.after(), nil
}

// outcome collects what becomes of the objects of a view.
type outcome struct {
	*Preview
	view plan.View
	// deployment, sets and machines are as they are after the writes so far.
	deployment *machine.MachineDeployment
	sets       map[types.UID]*mcm.MachineSet
	machines   map[types.UID]*mcm.Machine
	changed    After
}

func (o *outcome) putSet(s *mcm.MachineSet) {
	o.sets[s.UID] = s
	o.changed.Sets = append(slices.DeleteFunc(o.changed.Sets, func(other *mcm.MachineSet) bool { return other.UID == s.UID }), s)
}

func (o *outcome) putMachine(m *mcm.Machine) {
	o.machines[m.UID] = m
	o.changed.Machines = append(slices.DeleteFunc(o.changed.Machines, func(other *mcm.Machine) bool { return other.UID == m.UID }), m)
}

// change applies what changes objects that exist, except for statuses.
func (o *outcome) change(made plan.Plan) {
	if c := made.Deployment; c != nil {
		o.deployment = c.After.DeepCopy()
		o.deployment.Generation = generation(c.Before, c.Before.Spec, c.After.Spec)
	}
	for _, one := range made.SetClaims {
		o.putSet(claimedSet(o.deployment, one))
	}
	for _, one := range made.Claims {
		o.putMachine(claimedMachine(one))
	}
	for _, c := range made.Sets {
		after := c.After.DeepCopy()
		after.Generation = generation(c.Before, c.Before.Spec, c.After.Spec)
		o.putSet(after)
	}
	entering, others := split(made.Machines, enters)
	for _, c := range others {
		o.putMachine(c.After)
	}
	for _, c := range entering {
		if !o.isOccupied(c.After) {
			o.putMachine(c.After)
		}
	}
	for _, c := range made.Nodes {
		o.changed.Nodes = append(o.changed.Nodes, c.After)
	}
}

// generation returns the generation of an object after a write.
func generation(o metav1.Object, before, after any) int64 {
	if equality.Semantic.DeepEqual(before, after) {
		return o.GetGeneration()
	}
	return o.GetGeneration() + 1
}

// isOccupied reports whether a machine stays as it is, because a pod runs on its Node.
func (o *outcome) isOccupied(m *mcm.Machine) bool {
	node := m.Labels[mcm.NodeLabelKey]
	return o.c.nodes != nil && node != "" && pool.Marked(m) && slices.ContainsFunc(stores.Indexed[*corev1.Pod](o.c.reserves.pods, stores.ByNode, node), func(pod *corev1.Pod) bool {
		return occupies(pod, m)
	})
}

// createSets creates MachineSets, unless another one has the name. It returns their first machines, and the
// status of the MachineDeployment.
func (o *outcome) createSets(made plan.Plan) (first []plan.Creation, status *plan.DeploymentStatusChange) {
	for _, set := range made.NewSets {
		switch other := stores.Find[mcm.MachineSet](o.c.sets, set.Namespace+"/"+set.Name); {
		case other == nil:
		case !o.view.IsNewSet(other):
			return nil, o.view.WithCollision()
		default:
			return nil, nil // it is yet to be adopted
		}
		set = set.DeepCopy()
		o.stamp(set)
		o.putSet(set)
		first = append(first, firstMachines(o.view, set)...)
	}
	return first, made.DeploymentStatus
}

// stamp gives a new object what an API server gives it.
func (o *outcome) stamp(object metav1.Object) {
	o.created++
	object.SetUID(types.UID(fmt.Sprintf("preview-%d", o.created)))
	object.SetCreationTimestamp(metav1.NewTime(o.view.Now))
	object.SetGeneration(1)
}

// create creates machines. Their names tell the order in which they were created.
func (o *outcome) create(creations []plan.Creation) error {
	for _, c := range creations {
		for i := range c.Count {
			m, err := newMachine(c.Set, fmt.Sprintf("%s-new-%d", c.Set.Name, o.created+1))
			if err != nil {
				return err
			}
			if i >= c.Count-c.Reserve {
				m = pool.Mark(m, c.Mark)
			}
			o.stamp(m)
			o.changed.Created = append(o.changed.Created, m)
		}
	}
	return nil
}

// delete deletes machines and MachineSets.
func (o *outcome) delete(made plan.Plan) {
	now := metav1.NewTime(o.view.Now)
	for _, d := range made.Deletions {
		if d.Reason == plan.Surplus && o.isOccupied(d.Machine) {
			continue
		}
		m := terminatingMachine(o.machines[d.Machine.UID], now)
		m.DeletionTimestamp = &now
		o.putMachine(m)
	}
	for _, s := range made.SetDeletions {
		s = o.sets[s.UID].DeepCopy()
		s.DeletionTimestamp, s.Generation = &now, s.Generation+1
		o.putSet(s)
	}
}

// report applies statuses.
func (o *outcome) report(statuses []plan.StatusChange, status *plan.DeploymentStatusChange) {
	for _, c := range statuses {
		o.putSet(reportedSet(o.sets[c.Set.UID], c))
	}
	if status != nil {
		o.deployment = reportedDeployment(o.deployment, o.view.Deployment.Generation, *status)
	}
}

// after returns what has changed. What is being deleted and has no finalizer does not exist any more.
func (o *outcome) after() After {
	a := o.changed
	isGone := func(object metav1.Object) bool {
		return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0
	}
	a.GoneSets, a.Sets = split(a.Sets, func(s *mcm.MachineSet) bool { return isGone(s) })
	if a.Deployment = o.deployment; isGone(a.Deployment) {
		a.Deployment = nil
	}
	return a
}

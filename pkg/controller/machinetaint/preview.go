// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"errors"
	"fmt"
	"maps"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stockinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Preview is a controller over given objects that writes nothing. It assumes that
// machine-controller-manager is up to date. The caller applies its plans: see [AfterPlan].
type Preview struct {
	c              *Controller
	clock          *still.Clock
	budgetsUnknown string
}

// Objects are everything that the preview reads. None of them is changed.
type Objects struct {
	Deployments []*v1alpha1.MachineDeployment
	Sets        []*mcm.MachineSet
	Machines    []*mcm.Machine
	Classes     []*mcm.MachineClass
	Nodes       []*corev1.Node
	Pods        []*corev1.Pod
	Budgets     []*policyv1.PodDisruptionBudget
	// BudgetsUnknown is why Budgets are not known; empty if they are.
	BudgetsUnknown string
}

// NewPreview returns a preview without objects. Without hasTarget, there is no target cluster.
func NewPreview(s keep.Settings, hasTarget bool) (*Preview, error) {
	i := Informers{
		Machine: stores.New(nil, metav1.NamespaceAll),
		Seen:    stockinformers.NewSharedInformerFactory(nil, 0).Machine().V1alpha1(),
	}
	if hasTarget {
		i.Target = target.New(nil, nil)
	}
	p := &Preview{clock: &still.Clock{}}
	var err error
	if p.c, err = New(Clients{}, i, nil, Options{Settings: s, Clock: p.clock}); err != nil {
		return nil, err
	}
	p.c.stores.budgetsUnknown = func() string { return p.budgetsUnknown }
	p.c.Run(still.EndedContext())
	return p, nil
}

// SetObjects replaces the objects of the preview.
func (p *Preview) SetObjects(o Objects, now time.Time) error {
	p.clock.Set(now)
	p.budgetsUnknown = o.BudgetsUnknown
	s := p.c.stores
	errs := []error{
		still.Replace(s.deployments, o.Deployments), still.Replace(s.sets, o.Sets), still.Replace(s.machines, o.Machines),
		still.Replace(s.classes, o.Classes), still.Replace(s.seenSets, o.Sets), still.Replace(s.seenMachines, o.Machines),
	}
	if s.nodes != nil {
		errs = append(errs, still.Replace(s.nodes, o.Nodes), still.Replace(s.pods, o.Pods), still.Replace(s.budgets, o.Budgets))
	}
	return errors.Join(errs...)
}

// Plan returns what the controller would do about a MachineDeployment now; false if there is
// nothing to decide.
func (p *Preview) Plan(namespace, name string) (keep.View, keep.Plan, bool) {
	v, ok := p.c.observe(namespace + "/" + name)
	if !ok {
		return keep.View{}, keep.Plan{}, false
	}
	return v, keep.New(v), true
}

// Remember keeps the memory of a plan for the next View.
func (p *Preview) Remember(v keep.View, made keep.Plan) {
	p.c.states.remember(keyOf(v.Deployment), made.Memory)
}

// Created returns a Machine as the MachineDeployment would get it now.
func (p *Preview) Created(namespace, deployment string, m *mcm.Machine) *mcm.Machine {
	mark := p.c.ReserveMark(view.Creation{Deployment: types.NamespacedName{Namespace: namespace, Name: deployment}, Machine: m})
	if mark == nil {
		return m
	}
	return pool.Mark(m, *mark)
}

// After contains the objects that differ after a plan. Deployment has the new status, too.
type After struct {
	Deployment *v1alpha1.MachineDeployment
	Machines   []*mcm.Machine
	Nodes      []*corev1.Node
}

// AfterPlan applies a plan to copies of the objects of its view.
func AfterPlan(v keep.View, p keep.Plan) (After, error) {
	a := After{Deployment: v.Deployment}
	if p.Idle {
		return a, nil
	}
	for _, change := range p.Machines {
		a.Machines = append(a.Machines, v.Changed(change))
	}
	for _, n := range p.Nodes {
		a.Nodes = append(a.Nodes, changedNode(n))
	}
	if !p.Deployment.IsEmpty() {
		d := &v1alpha1.MachineDeployment{}
		if err := still.Merge(v.Deployment, deploymentPatch(v.Deployment, p.Deployment), d); err != nil {
			return After{}, fmt.Errorf("change machine deployment %s: %w", v.Deployment.Name, err)
		}
		a.Deployment = d
	}
	d := *a.Deployment
	d.Status = keep.NewStatus(&d, p.Report, metav1.NewTime(v.Now))
	a.Deployment = &d
	return a, nil
}

func changedNode(c keep.NodeChange) *corev1.Node {
	node := c.Machine.Node.DeepCopy()
	node.Spec.Taints = c.Taints
	if node.Annotations = maps.Clone(node.Annotations); node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	for key, value := range c.Annotations {
		if node.Annotations[key] = value; value == "" {
			delete(node.Annotations, key)
		}
	}
	return node
}

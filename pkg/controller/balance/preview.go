// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Preview is a controller over given objects that writes nothing. The caller applies its plans: see
// [After]. It assumes that no machine has left the reserve recently.
type Preview struct {
	c              *Controller
	clock          *still.Clock
	budgetsUnknown string
}

// Objects of one namespace and of the target cluster. None of them is changed.
type Objects struct {
	Deployments []*v1alpha1.MachineDeployment
	Sets        []*mcm.MachineSet
	Machines    []*mcm.Machine
	Classes     []*mcm.MachineClass

	Nodes   []*corev1.Node
	Pods    []*corev1.Pod
	Budgets []*policyv1.PodDisruptionBudget
	// BudgetsUnknown is why Budgets are not known; empty if they are.
	BudgetsUnknown string
	Claims         []*corev1.PersistentVolumeClaim
	Volumes        []*corev1.PersistentVolume
	StorageClasses []*storagev1.StorageClass
	Drivers        []*storagev1.CSIDriver
	// Devices counts the devices of Nodes; nil if they are not known.
	Devices pool.DeviceCounter

	// Garden reports whether Gardener's kinds are served.
	Garden            bool
	Workers, Clusters []*unstructured.Unstructured
}

// NewPreview returns a preview without objects. Without hasTarget, there is no target cluster.
func NewPreview(namespace string, s plan.Settings, hasTarget bool) (*Preview, error) {
	i := Informers{Machines: stores.New(nil, namespace)}
	if hasTarget {
		i.Target = target.New(nil, nil)
	}
	p := &Preview{clock: &still.Clock{}}
	var err error
	if p.c, err = New(Clients{}, i, nil, Options{Namespace: namespace, Settings: s, Clock: p.clock}); err != nil {
		return nil, err
	}
	p.c.stores.storage.DriversKnown = func() bool { return true }
	p.c.stores.budgetsUnknown = func() string { return p.budgetsUnknown }
	p.c.Run(still.EndedContext())
	return p, nil
}

// SetObjects replaces the objects of the preview.
func (p *Preview) SetObjects(o Objects, now time.Time) error {
	p.clock.Set(now)
	p.budgetsUnknown = o.BudgetsUnknown
	p.c.stores.devices = o.Devices
	s := p.c.stores
	errs := []error{
		still.Replace(s.deployments, o.Deployments), still.Replace(s.sets, o.Sets),
		still.Replace(s.machines, o.Machines), still.Replace(s.classes, o.Classes), p.c.garden.setObjects(o),
	}
	if s.nodes != nil {
		errs = append(errs, still.Replace(s.nodes, o.Nodes), still.Replace(s.pods, o.Pods), still.Replace(s.budgets, o.Budgets),
			still.Replace(s.storage.Claims, o.Claims), still.Replace(s.storage.Volumes, o.Volumes),
			still.Replace(s.storage.Classes, o.StorageClasses), still.Replace(s.storage.Drivers, o.Drivers))
	}
	return errors.Join(errs...)
}

func (g *garden) setObjects(o Objects) error {
	if !o.Garden {
		return nil
	}
	workers, errWorkers := still.NewInformer(o.Workers, cache.Indexers{})
	clusters, errClusters := still.NewInformer(o.Clusters, cache.Indexers{})
	g.workers, g.clusters = workers, clusters
	return errors.Join(errWorkers, errClusters)
}

// Plan returns what the controller would do now. The next plan remembers it.
func (p *Preview) Plan() (plan.View, plan.Plan) {
	v, _ := p.c.observe() // with no writes of its own it is current
	next := plan.New(v)
	p.c.memory = next.Memory
	return v, next
}

// After returns the MachineDeployments that a plan for a view changes, as they are afterwards, with
// their conditions.
func After(v plan.View, p plan.Plan) ([]*v1alpha1.MachineDeployment, error) {
	var all []*v1alpha1.MachineDeployment
	for i, o := range p.Outcomes {
		before := v.Members[i].Object
		after := *before
		if !o.Write.IsEmpty() {
			patch, err := json.Marshal(mergePatch(before, o.Write))
			if err != nil {
				return nil, fmt.Errorf("encode patch: %w", err)
			}
			after = v1alpha1.MachineDeployment{}
			if err := still.Merge(before, patch, &after); err != nil {
				return nil, fmt.Errorf("change machine deployment %s: %w", o.Name, err)
			}
		}
		conditions, differs := plan.NewConditions(before.Status.Conditions, o.Conditions, metav1.NewTime(v.Now))
		if after.Status.Conditions = conditions; differs || !o.Write.IsEmpty() {
			all = append(all, &after)
		}
	}
	return all, nil
}

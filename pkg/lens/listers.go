// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	machinelisters "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// The listers below return the objects of the store itself, because machine-controller-manager
// writes into these and reads them again. Machines that are about to go are the exception.

type informers struct {
	machineinformers.Interface
	c *Consistent
}

func (i informers) Machines() machineinformers.MachineInformer {
	return machineInformer{i.Interface.Machines(), i.c.machines, i.c.first}
}

func (i informers) MachineSets() machineinformers.MachineSetInformer {
	return setInformer{i.Interface.MachineSets(), i.c.sets}
}

func (i informers) MachineDeployments() machineinformers.MachineDeploymentInformer {
	return deploymentInformer{i.Interface.MachineDeployments(), i.c.deployments}
}

type machineInformer struct {
	inner machineinformers.MachineInformer
	*writeTracker
	first func(*v1alpha1.Machine) bool
}

func (i machineInformer) Informer() cache.SharedIndexInformer { return i.inner.Informer() }

func (i machineInformer) Lister() machinelisters.MachineLister {
	return machineLister{i.inner.Lister(), i.writeTracker, i.first}
}

type setInformer struct {
	inner machineinformers.MachineSetInformer
	*writeTracker
}

func (i setInformer) Informer() cache.SharedIndexInformer { return i.inner.Informer() }

func (i setInformer) Lister() machinelisters.MachineSetLister {
	return setLister{i.inner.Lister(), i.writeTracker}
}

type deploymentInformer struct {
	inner machineinformers.MachineDeploymentInformer
	*writeTracker
}

func (i deploymentInformer) Informer() cache.SharedIndexInformer { return i.inner.Informer() }

func (i deploymentInformer) Lister() machinelisters.MachineDeploymentLister {
	return deploymentLister{i.inner.Lister(), i.writeTracker}
}

type machineLister struct {
	machinelisters.MachineLister
	*writeTracker
	first func(*v1alpha1.Machine) bool
}

// List returns the machines that come first at the front. Callers that ask for all machines order
// them by themselves.
func (l machineLister) List(selector labels.Selector) ([]*v1alpha1.Machine, error) {
	if err := l.awaitAll(); err != nil {
		return nil, err
	}
	all, err := l.MachineLister.List(selector)
	if err != nil {
		return nil, err
	}
	all = showTerminating(all)
	if l.first == nil || selector.Empty() {
		return all, nil
	}
	return moveToFront(all, l.first), nil
}

// showTerminating changes a list so that machines whose deletion was requested have that phase
// (L4.7).
func showTerminating(all []*v1alpha1.Machine) []*v1alpha1.Machine {
	for i, m := range all {
		if m.DeletionTimestamp != nil && m.Status.CurrentStatus.Phase != v1alpha1.MachineTerminating {
			all[i] = m.DeepCopy()
			all[i].Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
		}
	}
	return all
}

// moveToFront returns a list with the elements that come first at the front, and the rest in its
// order.
func moveToFront[T any](list []T, first func(T) bool) []T {
	var front, rest []T
	for _, element := range list {
		if first(element) {
			front = append(front, element)
		} else {
			rest = append(rest, element)
		}
	}
	return append(front, rest...)
}

type setLister struct {
	machinelisters.MachineSetLister
	*writeTracker
}

func (l setLister) List(selector labels.Selector) ([]*v1alpha1.MachineSet, error) {
	if err := l.awaitAll(); err != nil {
		return nil, err
	}
	return l.MachineSetLister.List(selector)
}

type deploymentLister struct {
	machinelisters.MachineDeploymentLister
	*writeTracker
}

func (l deploymentLister) List(selector labels.Selector) ([]*v1alpha1.MachineDeployment, error) {
	if err := l.awaitAll(); err != nil {
		return nil, err
	}
	return l.MachineDeploymentLister.List(selector)
}

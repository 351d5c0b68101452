// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	machinelisters "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// The listers below return the very objects of the store, since machine-controller-manager writes into those and reads
// them again.

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
	*horizon
	first func(*v1alpha1.Machine) bool
}

func (i machineInformer) Informer() cache.SharedIndexInformer { return i.inner.Informer() }

func (i machineInformer) Lister() machinelisters.MachineLister {
	return machineLister{i.inner.Lister(), i.horizon, i.first}
}

type setInformer struct {
	inner machineinformers.MachineSetInformer
	*horizon
}

func (i setInformer) Informer() cache.SharedIndexInformer { return i.inner.Informer() }

func (i setInformer) Lister() machinelisters.MachineSetLister {
	return setLister{i.inner.Lister(), i.horizon}
}

type deploymentInformer struct {
	inner machineinformers.MachineDeploymentInformer
	*horizon
}

func (i deploymentInformer) Informer() cache.SharedIndexInformer { return i.inner.Informer() }

func (i deploymentInformer) Lister() machinelisters.MachineDeploymentLister {
	return deploymentLister{i.inner.Lister(), i.horizon}
}

type machineLister struct {
	machinelisters.MachineLister
	*horizon
	first func(*v1alpha1.Machine) bool
}

// List puts the machines that go first in front. Callers that ask for every machine have an order of their own.
func (l machineLister) List(selector labels.Selector) ([]*v1alpha1.Machine, error) {
	if err := l.hold(); err != nil {
		return nil, err
	}
	all, err := l.MachineLister.List(selector)
	if err != nil || l.first == nil || selector.Empty() {
		return all, err
	}
	return inFront(all, l.first), nil
}

// inFront returns a list with the elements in front that go first, and else in the order it had.
func inFront[T any](list []T, first func(T) bool) []T {
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
	*horizon
}

func (l setLister) List(selector labels.Selector) ([]*v1alpha1.MachineSet, error) {
	if err := l.hold(); err != nil {
		return nil, err
	}
	return l.MachineSetLister.List(selector)
}

type deploymentLister struct {
	machinelisters.MachineDeploymentLister
	*horizon
}

func (l deploymentLister) List(selector labels.Selector) ([]*v1alpha1.MachineDeployment, error) {
	if err := l.hold(); err != nil {
		return nil, err
	}
	return l.MachineDeploymentLister.List(selector)
}

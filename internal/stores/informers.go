// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	machineinformers "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// Informers of the machine API in one namespace of the control cluster. All controllers of a
// process share them, so never change their objects. Methods can be called at any time, also
// concurrently.
type Informers struct {
	factory   externalversions.SharedInformerFactory
	namespace string
}

// New returns informers that read a namespace through client. None is started; client may be nil if
// none ever will be.
func New(client versioned.Interface, namespace string) *Informers {
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0,
		externalversions.WithNamespace(namespace), externalversions.WithTransform(stripManagedFields), externalversions.WithTweakListOptions(written.ListStored))
	return &Informers{factory, namespace}
}

// Start starts the informers that were requested and have not been started yet. They run until ctx
// ends.
func (i *Informers) Start(ctx context.Context) { i.factory.StartWithContext(ctx) }

// Shutdown waits until all informers have ended. None can be started afterwards.
func (i *Informers) Shutdown() { i.factory.Shutdown() }

// Deployments returns the informer of MachineDeployments.
func (i *Informers) Deployments() cache.SharedIndexInformer {
	return i.factory.Machine().V1alpha1().MachineDeployments().Informer()
}

// Sets returns the informer of MachineSets, with the index of [Owned].
func (i *Informers) Sets() cache.SharedIndexInformer {
	return i.factory.InformerFor(&mcm.MachineSet{}, func(client versioned.Interface, resync time.Duration) cache.SharedIndexInformer {
		return machineinformers.NewFilteredMachineSetInformer(client, i.namespace, resync, OwnerIndex(), written.ListStored)
	})
}

// Machines informs about Machines, with the indexes of [Machines].
func (i *Informers) Machines() cache.SharedIndexInformer {
	return i.factory.InformerFor(&mcm.Machine{}, func(client versioned.Interface, resync time.Duration) cache.SharedIndexInformer {
		return machineinformers.NewFilteredMachineInformer(client, i.namespace, resync, Machines(), written.ListStored)
	})
}

// Classes returns the informer of MachineClasses.
func (i *Informers) Classes() cache.SharedIndexInformer {
	return i.factory.Machine().V1alpha1().MachineClasses().Informer()
}

// stripManagedFields drops metadata.managedFields, which is used only for the history of
// spec.excessReplicas.
func stripManagedFields(item any) (any, error) {
	if _, read := item.(*v1alpha1.MachineDeployment); read {
		return item, nil
	}
	if object, err := meta.Accessor(item); err == nil {
		object.SetManagedFields(nil)
	}
	return item, nil
}

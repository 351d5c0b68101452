// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Guards are called before machines are deleted, and before a name of one is removed (V11). Either all
// are set, or none.
//
// The controllers decide on objects that they read some time ago, and nothing makes them read these
// again before they write: neither a MachineSet's version nor a delete shows for which excess the
// decision was made.
type Guards struct {
	// Shrink is called before a MachineSet is updated. An error refuses the write. The function
	// that it returns is called with the outcome.
	Shrink func(after *v1alpha1.MachineSet) (ended func(*v1alpha1.MachineSet, error), err error)
	// Remove is called before a Machine is deleted, in the same way. If it returns a version, only
	// that version is deleted.
	Remove func(namespace, name string) (version string, ended func(error), err error)
	// Unname is called before a MachineDeployment is updated, with what is stored: the update may remove
	// names of machines that are to be deleted. An error refuses the write.
	Unname func(before, after *v1alpha1.MachineDeployment) error
}

type machineSets struct {
	machineclient.MachineSetInterface
	guards Guards
	frozen *unfreezer[v1alpha1.MachineSet, *v1alpha1.MachineSet]
}

func (s machineSets) Get(ctx context.Context, name string, o metav1.GetOptions) (*v1alpha1.MachineSet, error) {
	return s.frozen.read(s.MachineSetInterface.Get(ctx, name, o))
}

func (s machineSets) UpdateStatus(ctx context.Context, set *v1alpha1.MachineSet, o metav1.UpdateOptions) (*v1alpha1.MachineSet, error) {
	return s.write(ctx, set, o, unfreezeSetStatus, s.MachineSetInterface.UpdateStatus)
}

func (s machineSets) Update(ctx context.Context, set *v1alpha1.MachineSet, o metav1.UpdateOptions) (*v1alpha1.MachineSet, error) {
	return s.write(ctx, set, o, unfreezeLabels, s.update)
}

func (s machineSets) write(ctx context.Context, set *v1alpha1.MachineSet, o metav1.UpdateOptions, unfreeze func(*v1alpha1.MachineSet), write func(context.Context, *v1alpha1.MachineSet, metav1.UpdateOptions) (*v1alpha1.MachineSet, error)) (*v1alpha1.MachineSet, error) {
	return s.frozen.write(set, unfreeze, func(after *v1alpha1.MachineSet) (*v1alpha1.MachineSet, error) {
		return write(ctx, after, o)
	}, func() (*v1alpha1.MachineSet, error) {
		return s.MachineSetInterface.Get(ctx, set.Name, metav1.GetOptions{})
	})
}

// update asks the guard first.
func (s machineSets) update(ctx context.Context, set *v1alpha1.MachineSet, o metav1.UpdateOptions) (*v1alpha1.MachineSet, error) {
	if s.guards.Shrink == nil || len(o.DryRun) > 0 {
		return s.MachineSetInterface.Update(ctx, set, o)
	}
	ended, err := s.guards.Shrink(set)
	if err != nil {
		return &v1alpha1.MachineSet{}, err
	}
	result, err := s.MachineSetInterface.Update(ctx, set, o)
	ended(result, err)
	return result, err
}

// Patch allows the patches by which MachineSets are adopted, released and labeled: none of them
// changes replicas.
func (s machineSets) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*v1alpha1.MachineSet, error) {
	if err := checkPatch("machinesets", pt, data, subresources); err != nil {
		return &v1alpha1.MachineSet{}, err
	}
	return s.MachineSetInterface.Patch(ctx, name, pt, data, o)
}

// UpdateScale is refused: a Scale does not contain the annotation that Guards decide on, with the
// number of machines that the decision was made for.
func (s machineSets) UpdateScale(context.Context, string, *autoscalingv1.Scale, metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	return &autoscalingv1.Scale{}, apierrors.NewMethodNotSupported(v1alpha1.Resource("machinesets"), "scale")
}

func (m machines) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if m.guards.Remove == nil || len(o.DryRun) > 0 {
		return m.MachineInterface.Delete(ctx, name, o)
	}
	version, ended, err := m.guards.Remove(m.namespace, name)
	if err != nil {
		return err
	}
	if version != "" {
		o.Preconditions = &metav1.Preconditions{ResourceVersion: &version}
	}
	err = m.MachineInterface.Delete(ctx, name, o)
	ended(err)
	return err
}

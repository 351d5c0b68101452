// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Guards are asked before machines are taken away (V11). All are set, or none.
//
// The controllers decide on what they looked up some time ago, and nothing makes them look again before they write:
// neither a MachineSet's version nor a delete says which excess the decision was made for.
type Guards struct {
	// Shrink is asked before a MachineSet is written. An error refuses the write. What it returns is called with the
	// outcome.
	Shrink func(after *v1alpha1.MachineSet) (ended func(*v1alpha1.MachineSet, error), err error)
	// Remove is asked before a Machine is deleted, likewise.
	Remove func(namespace, name string) (ended func(error), err error)
}

type machineSets struct {
	machineclient.MachineSetInterface
	guards Guards
}

func (s machineSets) Update(ctx context.Context, set *v1alpha1.MachineSet, o metav1.UpdateOptions) (*v1alpha1.MachineSet, error) {
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

func (m machines) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if m.guards.Remove == nil || len(o.DryRun) > 0 {
		return m.MachineInterface.Delete(ctx, name, o)
	}
	ended, err := m.guards.Remove(m.namespace, name)
	if err != nil {
		return err
	}
	err = m.MachineInterface.Delete(ctx, name, o)
	ended(err)
	return err
}

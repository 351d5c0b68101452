// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// Spares are the machines in reserve of a world without a controller of MachineDeployments. Each has the
// name that [fixture.Spares] gives it.
type Spares struct {
	Client machineclient.MachineV1alpha1Interface
}

// Count returns how many of them a MachineDeployment has, and how many are ready.
func (s Spares) Count(ctx context.Context, d *v1alpha1.MachineDeployment) (exist, ready int, err error) {
	sets, err := s.Client.MachineSets(d.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("list machine sets: %w", err)
	}
	machines, err := s.Client.Machines(d.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("list machines: %w", err)
	}
	exist, ready = pool.CountSpares(d, pool.NewList(pool.Objects{Sets: pointers(sets.Items), Machines: pointers(machines.Items)}))
	return exist, ready, nil
}

func pointers[T any](all []T) (to []*T) {
	for i := range all {
		to = append(to, &all[i])
	}
	return to
}

// Keep creates and deletes machines so that a MachineDeployment has this many, and that the first
// of them are ready.
func (s Spares) Keep(ctx context.Context, d *v1alpha1.MachineDeployment, exist, ready int) error {
	set, machines := fixture.Spares(d, exist, ready)
	owner, err := s.Client.MachineSets(d.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		owner, err = s.Client.MachineSets(d.Namespace).Create(ctx, set, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("machine set of %s: %w", d.Name, err)
	}
	for _, m := range machines {
		m.OwnerReferences[0].UID = owner.UID
		if err := s.keep(ctx, m); err != nil {
			return fmt.Errorf("machine %s: %w", m.Name, err)
		}
	}
	return s.deleteOthers(ctx, owner, machines)
}

func (s Spares) keep(ctx context.Context, m *mcm.Machine) error {
	client := s.Client.Machines(m.Namespace)
	is, err := client.Get(ctx, m.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		is, err = client.Create(ctx, m, metav1.CreateOptions{})
	}
	if err != nil || is.Status.CurrentStatus.Phase == m.Status.CurrentStatus.Phase {
		return err
	}
	is.Status = m.Status
	_, err = client.UpdateStatus(ctx, is, metav1.UpdateOptions{})
	return err
}

func (s Spares) deleteOthers(ctx context.Context, set *mcm.MachineSet, wanted []*mcm.Machine) error {
	names := map[string]bool{}
	for _, m := range wanted {
		names[m.Name] = true
	}
	all, err := s.Client.Machines(set.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list machines: %w", err)
	}
	for _, m := range all.Items {
		if metav1.IsControlledBy(&m, set) && !names[m.Name] {
			if err := s.Client.Machines(set.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete machine %s: %w", m.Name, err)
			}
		}
	}
	return nil
}

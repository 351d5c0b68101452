// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/stores"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// observe collects the view of a key. Where a store is behind the answers to our writes, the answers
// are used.
func (c *Controller) observe(ctx context.Context, k key) (plan.View, error) {
	v := plan.View{Now: c.clock.Now()}
	for _, set := range c.setsOf(k) {
		if err := c.resolve(ctx, set); err != nil {
			return v, err
		}
		v.Sets = append(v.Sets, plan.Set{Object: set})
	}
	if len(v.Sets) == 0 {
		return v, nil
	}
	machines := c.machinesOf(v.Sets, k.namespace)
	for i := range v.Sets {
		set := &v.Sets[i]
		set.Machines = machines[set.Object.UID]
		c.memory.forgetNames(set.Object.UID, func(name string) bool {
			return slices.ContainsFunc(set.Machines, func(m *mcm.Machine) bool { return m.Name == name })
		})
	}
	v.Orphans = machines[""]
	if c.nodes != nil {
		v.Nodes = c.nodesOf(v.Sets)
	}
	return v, nil
}

// setsOf returns the MachineSets that a key is about. A MachineSet whose MachineDeployment exists is
// not one of them yet.
func (c *Controller) setsOf(k key) (all []*mcm.MachineSet) {
	candidates := stores.All[*mcm.MachineSet](c.sets)
	if k.kind == setKind {
		set := stores.Find[mcm.MachineSet](c.sets, k.namespace+"/"+k.name)
		if set == nil {
			return nil
		}
		candidates = slices.Values([]*mcm.MachineSet{set})
	}
	for set := range candidates {
		set = c.writtenSets.Newest(set)
		if keyOf(set) == k && stores.Controller[machine.MachineDeployment](c.deployments, set) == nil {
			all = append(all, set)
		}
	}
	return all
}

// machinesOf returns the machines of MachineSets by the UID of the MachineSet, and those of the
// namespace that nothing controls by an empty one.
func (c *Controller) machinesOf(sets []plan.Set, namespace string) map[types.UID][]*mcm.Machine {
	candidates := append(stores.Indexed[*mcm.Machine](c.machines, stores.Orphans, namespace), c.writtenMachines.Unseen()...)
	// What the store has shown since Unseen was asked is in the index.
	for _, s := range sets {
		candidates = append(candidates, stores.Indexed[*mcm.Machine](c.machines, stores.ByOwner, string(s.Object.UID))...)
	}
	machines, seen := map[types.UID][]*mcm.Machine{}, map[types.UID]bool{}
	for _, m := range candidates {
		m = c.writtenMachines.Newest(m)
		if m.Namespace != namespace || seen[m.UID] || c.memory.isGone(m.UID) {
			continue
		}
		seen[m.UID] = true
		owner := types.UID("")
		if ref := metav1.GetControllerOfNoCopy(m); ref != nil {
			owner = ref.UID
		}
		machines[owner] = append(machines[owner], m)
	}
	return machines
}

// nodesOf returns the Nodes of failed machines.
func (c *Controller) nodesOf(sets []plan.Set) map[string]*corev1.Node {
	nodes := map[string]*corev1.Node{}
	for _, s := range sets {
		for _, m := range s.Machines {
			if m.Status.CurrentStatus.Phase != mcm.MachineFailed {
				continue
			}
			if node := stores.Find[corev1.Node](c.nodes, m.Labels[mcm.NodeLabelKey]); node != nil {
				nodes[node.Name] = node
			}
		}
	}
	return nodes
}

// resolve reads the machines of a MachineSet that may have been deleted: if one has been, another one
// must not be deleted in its place.
func (c *Controller) resolve(ctx context.Context, set *mcm.MachineSet) error {
	var errs []error
	for _, m := range c.memory.takeDoubts(set.UID) {
		if _, err := c.readMachine(ctx, m); !written.Answered(err) {
			c.memory.noteDoubt(set.UID, m)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// readMachine reads a machine, and remembers what it has read. Another machine of the same name is
// not the one.
func (c *Controller) readMachine(ctx context.Context, m *mcm.Machine) (*mcm.Machine, error) {
	live, err := c.client.Machines(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	if err == nil {
		c.writtenMachines.Record(live)
		if live.UID != m.UID {
			err = apierrors.NewNotFound(machine.Resource("machines"), m.Name)
		}
	}
	if err != nil {
		if apierrors.IsNotFound(err) {
			c.memory.noteGone(m, c.isShown)
		}
		return nil, fmt.Errorf("read machine %s: %w", m.Name, err)
	}
	return live, nil
}

// isShown reports whether a machine is in the store, or will be.
func (c *Controller) isShown(m *mcm.Machine) bool {
	same := func(other *mcm.Machine) bool { return other.UID == m.UID }
	stored := stores.Find[mcm.Machine](c.machines, m.Namespace+"/"+m.Name)
	return stored != nil && same(stored) || slices.ContainsFunc(c.writtenMachines.Unseen(), same)
}

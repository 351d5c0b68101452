// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	machineplan "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// machinesPlan is the plan for a MachineDeployment with its MachineSets, machines and reserve.
type machinesPlan struct {
	machineplan.View
	machineplan.Plan
	// kept is what was decided about the reserve; see [machinedeployment.Kept].
	kept *machinetaint.Plan
}

// isUnsettled reports whether machines are being created or deleted, or are not ready.
func (p machinesPlan) isUnsettled() bool {
	return len(p.Creations)+len(p.Deletions) > 0 || slices.ContainsFunc(p.View.Sets, func(s machineplan.Set) bool {
		return slices.ContainsFunc(s.Machines, func(m *mcm.Machine) bool {
			return m.DeletionTimestamp != nil || !pool.Ready(m.Status.CurrentStatus.Phase)
		})
	})
}

// lookAtMachines decides about all MachineDeployments.
func (w *world) lookAtMachines() error {
	err := w.manager.SetObjects(machinedeployment.Objects{
		Deployments: w.deployments.sorted(), Sets: w.sets.sorted(), Machines: w.machines.sorted(), Classes: w.still.Classes,
		Nodes: w.nodes.sorted(), Pods: w.pods.sorted(), Budgets: w.still.Budgets, BudgetsUnknown: w.budgetsUnknown(), Devices: w.devices,
		PodsUnknown: w.still.Target && !w.still.seesTarget(),
	}, w.now)
	if err != nil {
		return err
	}
	w.plans.machines = map[string]machinesPlan{}
	for key, d := range w.deployments {
		if v, p, ok := w.manager.Plan(d.Namespace, d.Name); ok {
			w.plans.machines[key] = machinesPlan{v, p, machinedeployment.Kept(v, p)}
		}
	}
	return nil
}

// manage carries out the plan for each MachineDeployment.
func (w *world) manage(context.Context) (moved bool, again time.Duration, err error) {
	if err := w.lookAtMachines(); err != nil {
		return false, 0, err
	}
	for _, key := range slices.Sorted(maps.Keys(w.plans.machines)) {
		did, wait, err := w.carryOut(key)
		if err != nil {
			return false, 0, err
		}
		moved, again = moved || did, requeue.Sooner(again, wait)
	}
	return moved, again, nil
}

// carryOut carries out the plan for a MachineDeployment, and reports whether anything changed.
func (w *world) carryOut(key string) (moved bool, again time.Duration, err error) {
	p := w.plans.machines[key]
	after, err := w.manager.After(p.View, p.Plan)
	if err != nil {
		return false, 0, err
	}
	w.manager.Remember(p.View, p.Plan)
	made := w.followed("MachineDeployment", key, len(after.Created))
	for _, m := range after.Created[:made] {
		w.machines[keyOf(m)], w.born[keyOf(m)] = m, true
	}
	w.put(key, after)
	switch p.Creations = nil; {
	case !p.IsEmpty() || made > 0:
		w.noteUnpredicted(key)
		return true, 0, nil
	case len(after.Created) > 0:
		return false, 0, nil // it would go on and on
	}
	return false, p.Again, nil
}

// put replaces the objects that a plan has changed.
func (w *world) put(key string, after machinedeployment.After) {
	switch d := after.Deployment; {
	case d == nil:
		delete(w.deployments, key)
	case d != w.deployments[key]:
		w.putDeployment(d)
	}
	for _, s := range after.Sets {
		w.sets[keyOf(s)] = s
	}
	for _, s := range after.GoneSets {
		delete(w.sets, keyOf(s))
	}
	for _, m := range after.Machines {
		w.machines[keyOf(m)] = m
	}
	for _, n := range after.Nodes {
		w.nodes[keyOf(n)] = n
	}
}

// noteUnpredicted notes what others do after a plan, or when they do it.
func (w *world) noteUnpredicted(key string) {
	d := w.deployments[key]
	if d == nil {
		return
	}
	if d.Spec.Strategy.Type == mcm.InPlaceUpdateMachineDeploymentStrategyType && w.snapshot(d).Rollout.Replacing {
		w.addNote("MachineDeployment %s updates its machines in place, which plan does not predict", key)
	}
	for _, set := range w.sets.ownedBy(d.UID) {
		staying := slices.DeleteFunc(w.machines.ownedBy(set.UID), pool.BeingDeleted)
		if pool.Frozen(set) && len(staying) < int(set.Spec.Replicas) {
			w.addNote("MachineDeployment %s is frozen, so no machines are created until enough of them have left", key)
		}
	}
}

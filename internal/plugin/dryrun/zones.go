// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/controller/balance"
)

func (w *world) lookAtZones() error {
	w.plans.zones = map[string]zonesPlan{}
	for namespace, preview := range w.zones {
		if err := preview.SetObjects(w.zoneObjects(namespace), w.now); err != nil {
			return err
		}
		v, p := preview.Plan()
		w.plans.zones[namespace] = zonesPlan{v, p}
	}
	return nil
}

// spread carries out the plans that keep zones even.
func (w *world) spread(context.Context) (moved bool, again time.Duration, err error) {
	if err := w.lookAtZones(); err != nil {
		return false, 0, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(w.zones)) {
		p := w.plans.zones[namespace].Plan
		changed, err := balance.After(w.plans.zones[namespace].View, p)
		if err != nil {
			return false, 0, err
		}
		for _, d := range changed {
			w.putDeployment(d)
		}
		for _, o := range p.Outcomes {
			moved = moved || !o.Write.IsEmpty()
		}
		again = requeue.Sooner(again, p.Again)
	}
	return moved, again, nil
}

func (w *world) zoneObjects(namespace string) balance.Objects {
	o := balance.Objects{
		Nodes: w.nodes.sorted(), Pods: w.pods.sorted(), Budgets: w.still.Budgets, BudgetsUnknown: w.budgetsUnknown(), Claims: w.still.Claims, Volumes: w.still.Volumes,
		StorageClasses: w.still.storageClasses(), Drivers: w.still.Drivers,
		Garden: w.still.Garden, Workers: inNamespace(namespace, w.still.Workers), Clusters: w.still.Clusters,
	}
	o.Deployments, o.Sets = inNamespace(namespace, w.deployments.sorted()), inNamespace(namespace, w.sets.sorted())
	o.Machines, o.Classes = inNamespace(namespace, w.machines.sorted()), w.still.Classes
	return o
}

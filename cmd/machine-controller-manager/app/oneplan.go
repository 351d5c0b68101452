// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// runOnePlan runs our own controller of MachineDeployments, MachineSets and their reserve, in place of
// machine-controller-manager's controllers.
func (p *process) runOnePlan(ctx context.Context) error {
	ours, err := machines.Evenkeel(p.control)
	if err != nil {
		return fmt.Errorf("make machine client: %w", err)
	}
	if !connect.AwaitAPI(ctx, ours.Discovery(), v1alpha1.SchemeGroupVersion, apiRetry) {
		return nil
	}
	counted := &accounting{mode: p.options.Reserve.Accounting, discovery: ours.Discovery()}
	clients := machinedeployment.Clients{Machines: ours.MachineV1alpha1()}
	if p.target != nil {
		core, err := connect.Core(p.target)
		if err != nil {
			return fmt.Errorf("make target client: %w", err)
		}
		clients.Target = core.CoreV1()
	}
	safety := p.options.SafetyOptions
	options := machinedeployment.Options{
		Workers: int(p.options.ConcurrentNodeSyncs), Cluster: p.clusters.control, Target: p.clusters.target,
		Settings: plan.Settings{ProtectInRollout: p.options.AutoscalerScaleDownAnnotationDuringRollout, SafetyUp: safety.SafetyUp, SafetyDown: safety.SafetyDown},
	}
	if p.picked(taintName) {
		settings := p.options.Reserve.options(p, counted).Settings
		options.Reserve = &settings
	}
	c, err := machinedeployment.New(clients, machinedeployment.Informers{Machines: p.caches.machines, Target: p.caches.target}, p.Recorder, options)
	if err != nil {
		return unlessEnding(ctx, err)
	}
	p.plans.Store(c)
	p.caches.startInformers(ctx)
	if !cache.WaitFor(ctx, "the first lists", c.Filled()...) {
		return nil
	}
	p.Ready.Filled()
	return daemon.Together(ctx,
		func(ctx context.Context) error { c.Run(ctx); return nil },
		func(ctx context.Context) error {
			counted.follow(ctx, c.LookAtAll)
			<-ctx.Done()
			return nil
		})
}

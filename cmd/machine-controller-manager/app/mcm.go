// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// apiRetry is how often the API server is asked for the machine API while it does not serve it.
const apiRetry = 2 * time.Second

// runMCM runs the controller of MachineDeployments and MachineSets, with their reserves.
func (p *process) runMCM(ctx context.Context) error {
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
	c, err := machinedeployment.New(clients, machinedeployment.Informers{Machines: p.caches.machines, Target: p.caches.target}, p.Recorder, p.machineOptions(counted))
	if err != nil {
		return unlessEnding(ctx, err)
	}
	p.machineController.Store(c)
	p.preparations.Subscribe(c.LookAtMachines)
	p.caches.startInformers(ctx)
	if !cache.WaitFor(ctx, "the first lists", c.Filled()...) {
		return nil
	}
	p.Ready.Filled()
	klog.FromContext(ctx).Info("Working")
	return daemon.Together(ctx,
		func(ctx context.Context) error { c.Run(ctx); return nil },
		func(ctx context.Context) error {
			counted.follow(ctx, c.LookAtAll)
			<-ctx.Done()
			return nil
		})
}

func (p *process) machineOptions(counted *accounting) machinedeployment.Options {
	safety := p.options.SafetyOptions
	return machinedeployment.Options{
		Workers: int(p.options.ConcurrentNodeSyncs), Cluster: p.clusters.control, Target: p.clusters.target, Registerer: p.registry,
		Settings: plan.Settings{ProtectInRollout: p.options.AutoscalerScaleDownAnnotationDuringRollout, SafetyUp: safety.SafetyUp, SafetyDown: safety.SafetyDown},
		Reserve:  p.options.Reserve.settings(p, counted),
	}
}

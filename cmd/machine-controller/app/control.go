// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	mcm "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecontroller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"github.com/prometheus/client_golang/prometheus"
	coreinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/connect"
)

// factories are the informers of MCM's controller.
type factories struct {
	machine machineinformers.SharedInformerFactory
	control coreinformers.SharedInformerFactory
	target  coreinformers.SharedInformerFactory // nil without a target cluster
}

func (p *process) factories(c clients) factories {
	resync, namespace := p.options.MinResyncPeriod.Duration, p.options.Namespace
	f := factories{
		machine: machineinformers.NewFilteredSharedInformerFactory(c.machine, resync, namespace, nil),
		control: coreinformers.NewSharedInformerFactoryWithOptions(c.control, resync, coreinformers.WithNamespace(namespace)),
	}
	if c.target != nil {
		f.target = coreinformers.NewSharedInformerFactory(c.target, resync)
	}
	return f
}

func (f factories) startAll(ctx context.Context) {
	f.machine.Start(ctx.Done())
	f.control.StartWithContext(ctx)
	if f.target != nil {
		f.target.StartWithContext(ctx)
	}
}

// awaitStopped waits for the informers, after their context has ended.
func (f factories) awaitStopped() {
	f.machine.Shutdown()
	f.control.Shutdown()
	if f.target != nil {
		f.target.Shutdown()
	}
}

// filled waits for what MCM waits for before it starts.
func (f factories) filled(ctx context.Context) bool {
	machines := f.machine.Machine().V1alpha1()
	wanted := []cache.DoneChecker{
		machines.Machines().Informer().HasSyncedChecker(), machines.MachineClasses().Informer().HasSyncedChecker(),
		f.control.Core().V1().Secrets().Informer().HasSyncedChecker(),
	}
	if f.target != nil {
		core := f.target.Core().V1()
		wanted = append(wanted, core.Nodes().Informer().HasSyncedChecker(), core.Pods().Informer().HasSyncedChecker(),
			core.PersistentVolumes().Informer().HasSyncedChecker(), core.PersistentVolumeClaims().Informer().HasSyncedChecker(),
			f.target.Storage().V1().VolumeAttachments().Informer().HasSyncedChecker(),
			f.target.Policy().V1().PodDisruptionBudgets().Informer().HasSyncedChecker())
	}
	return cache.WaitFor(ctx, name, wanted...)
}

// runController runs MCM's machine controller until ctx ends.
func (p *process) runController(ctx context.Context, c clients, cloud driver.Driver) error {
	var version *semver.Version
	if c.target != nil && !retryUntil(ctx, "the version of the target cluster", func(ctx context.Context) (err error) {
		version, err = targetVersion(ctx, c)
		return err
	}) {
		return nil
	}
	factories := p.factories(c)
	o := p.options
	controller, err := mcm.NewController(o.Namespace, c.machine.MachineV1alpha1(), c.control, c.target, cloud,
		factories.target, factories.control.Core().V1().Secrets(),
		factories.machine.Machine().V1alpha1().MachineClasses(), factories.machine.Machine().V1alpha1().Machines(),
		p.Recorder, o.SafetyOptions, o.NodeConditions, o.BootstrapTokenAuthExtraGroups, version,
		machineutils.RetryPeriod(o.ResourceExhaustedRetry.Duration))
	if err != nil {
		return fmt.Errorf("make machine controller: %w", err)
	}
	factories.startAll(ctx)
	defer factories.awaitStopped()
	if !factories.filled(ctx) {
		return nil
	}
	p.Ready.Filled()
	return p.runWorkers(ctx, controller)
}

func targetVersion(ctx context.Context, c clients) (*semver.Version, error) {
	info, err := connect.Within(ctx, c.target.Discovery().ServerVersion)
	if err != nil {
		return nil, fmt.Errorf("ask target cluster for its version: %w", err)
	}
	version, err := semver.NewVersion(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("read version %q of target cluster: %w", info.GitVersion, err)
	}
	return version, nil
}

// runWorkers returns as soon as ctx ends. It leaves MCM's workers behind, because they cannot be
// stopped: MCM shuts its queues down only after its workers have ended, and those wait for their
// queues, or sleep for minutes during a drain. The gate refuses their remaining writes, as if the
// process had crashed.
func (p *process) runWorkers(ctx context.Context, controller mcm.Controller) error {
	// This is the only way to redirect MCM's metrics. The default registry would panic at a second
	// run in one process.
	prometheus.DefaultRegisterer = p.registry
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(int(p.options.ConcurrentNodeSyncs), ctx.Done())
	}()
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return errors.New("the machine controller ended by itself")
	}
}

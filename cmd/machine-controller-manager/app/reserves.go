// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/handlers"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	evenkeelinformers "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves"
)

// reservesName is the name of the controller that spreads the machines of Reserves over
// MachineDeployments.
const reservesName = "reserves"

// reservesRetry is how often the API server is asked for Reserves while it does not serve them: in
// many clusters that stays so.
const reservesRetry = 30 * time.Second

// runReserves spreads the machines of Reserves, once there is a Reserve or something is left of one.
func (p *process) runReserves(ctx context.Context) error {
	ours, err := machines.Evenkeel(p.control)
	if err != nil {
		return fmt.Errorf("make client for reserves: %w", err)
	}
	if !connect.AwaitAPI(ctx, ours.Discovery(), machinev1alpha1.SchemeGroupVersion, apiRetry) {
		return nil
	}
	deployments := p.caches.machines.Deployments()
	p.caches.machines.Start(ctx)
	misses := 0
	missing := func() {
		if misses++; misses > 1 { // an API server that begins to serve may not show all kinds at once
			p.withdraw(ctx, ours, deployments)
			p.requests.ExpectReserves(false)
		}
	}
	if !connect.AwaitKind(ctx, ours.Discovery(), autoscalingv1alpha1.SchemeGroupVersion.WithResource("reserves"), reservesRetry, missing) {
		return nil
	}
	objects := evenkeelinformers.NewSharedInformerFactory(ours, 0)
	informer, err := readReserves(objects, p.rights, p.options.Namespace)
	if err != nil {
		return fmt.Errorf("make informer of reserves: %w", err)
	}
	if err := p.requests.Read(informer); err != nil {
		return unlessEnding(ctx, fmt.Errorf("listen to reserves: %w", err))
	}
	objects.StartWithContext(ctx)
	defer objects.Shutdown()
	if err := handlers.AwaitFirst(ctx, "Reserve", isReserve, informer, deployments); err != nil || ctx.Err() != nil {
		return err
	}
	c, err := reserves.New(
		reserves.Clients{Reserves: ours.AutoscalingV1alpha1(), Machines: ours.MachineV1alpha1()},
		reserves.Informers{Reserves: objects.Autoscaling().V1alpha1().Reserves(), Machines: p.caches.machines, Target: p.caches.target},
		p.Recorder, reserves.Options{Cluster: p.clusters.control, Registerer: p.registry})
	if err != nil {
		return unlessEnding(ctx, err)
	}
	p.caches.startInformers(ctx)
	c.Run(ctx)
	return nil
}

// withdraw removes what is left of Reserves where the API server does not serve them any more.
func (p *process) withdraw(ctx context.Context, ours evenkeel.Interface, deployments cache.SharedIndexInformer) {
	if err := reserves.Withdraw(ctx, ours.MachineV1alpha1(), deployments.GetIndexer()); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Withdrawing what Reserves requested")
	}
}

// isReserve reports whether an object is a Reserve, or a MachineDeployment on which something is left
// of one.
func isReserve(item any) bool {
	if d, is := item.(*api.MachineDeployment); is {
		_, requested := d.Annotations[api.RequestedExcessAnnotation]
		_, dedicated := d.Annotations[api.DedicatedAnnotation]
		return requested || dedicated
	}
	return true
}

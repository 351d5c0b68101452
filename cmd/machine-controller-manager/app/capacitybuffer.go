// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/handlers"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	bufferv1beta1 "github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	evenkeelinformers "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// buffersName names the controller that keeps room for the chunks of CapacityBuffers.
const buffersName = "capacitybuffer"

// buffersRetry is how often the API servers are asked for Reserves and CapacityBuffers while they
// do not serve them.
const buffersRetry = 30 * time.Second

// runBuffers keeps room for the chunks of CapacityBuffers, once there is one of Evenkeel's strategy
// or something is left of one.
func (p *process) runBuffers(ctx context.Context) error {
	if p.target == nil {
		<-ctx.Done() // there are no pods to keep room for
		return nil
	}
	control, err := machines.Evenkeel(p.control)
	if err != nil {
		return fmt.Errorf("make client for reserves: %w", err)
	}
	targets, err := machines.Evenkeel(p.target)
	if err != nil {
		return fmt.Errorf("make client for capacity buffers: %w", err)
	}
	if !connect.AwaitKind(ctx, control.Discovery(), autoscalingv1alpha1.SchemeGroupVersion.WithResource("reserves"), buffersRetry, func() {}) {
		return nil
	}
	awaitReserveRights(ctx, p.rights, control, p.options.Namespace)
	reserves := control.AutoscalingV1alpha1().Reserves(p.options.Namespace)
	if !connect.AwaitKind(ctx, targets.Discovery(), bufferv1beta1.SchemeGroupVersion.WithResource("capacitybuffers"), buffersRetry, withdrawBuffers(ctx, reserves)) {
		return nil
	}
	return p.keepRoom(ctx, control, targets)
}

// withdrawBuffers deletes what is left of buffers when it is called for the second time: an API
// server that begins to serve may not show all kinds at once.
func withdrawBuffers(ctx context.Context, reserves autoscalingclient.ReserveInterface) func() {
	return atSecondTime(func() error {
		err := capacitybuffer.Withdraw(ctx, reserves)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Deleting the Reserves of CapacityBuffers")
		}
		return err
	})
}

// atSecondTime returns a function that acts when it is called for the second time, and again after an
// error.
func atSecondTime(act func() error) func() {
	calls := 0
	return func() {
		if calls++; calls == 2 && act() != nil {
			calls = 1
		}
	}
}

func (p *process) keepRoom(ctx context.Context, control, targets evenkeel.Interface) error {
	objects := evenkeelinformers.NewSharedInformerFactoryWithOptions(targets, 0, evenkeelinformers.WithTransform(capacitybuffer.StripBuffer), evenkeelinformers.WithTweakListOptions(written.ListStored))
	asked := evenkeelinformers.NewSharedInformerFactoryWithOptions(control, 0, evenkeelinformers.WithNamespace(p.options.Namespace), evenkeelinformers.WithTweakListOptions(written.ListStored))
	buffers := readBuffers(objects, p.rights)
	reserves, err := readReserves(asked, p.rights, p.options.Namespace)
	if err != nil {
		return fmt.Errorf("make informer of reserves: %w", err)
	}
	objects.StartWithContext(ctx)
	defer objects.Shutdown()
	asked.StartWithContext(ctx)
	defer asked.Shutdown()
	if err := handlers.AwaitFirst(ctx, "CapacityBuffer", isBuffer, buffers, reserves); err != nil || ctx.Err() != nil {
		return err
	}
	core, err := connect.Core(p.target)
	if err != nil {
		return fmt.Errorf("make client for workloads: %w", err)
	}
	scales, err := capacitybuffer.NewScaleReader(p.target, core)
	if err != nil {
		return unlessEnding(ctx, err)
	}
	shapes := capacitybuffer.NewShapes(core, p.rights)
	c, err := capacitybuffer.New(
		capacitybuffer.Clients{Buffers: targets.CapacityBufferV1beta1(), Reserves: control.AutoscalingV1alpha1()},
		capacitybuffer.Informers{Buffers: buffers, Reserves: reserves, Machines: p.caches.machines, Target: p.caches.target, Shapes: shapes},
		capacitybuffer.Options{Namespace: p.options.Namespace, Scales: scales, Control: p.clusters.control, Target: p.clusters.target, Registerer: p.registry})
	if err != nil {
		return unlessEnding(ctx, err)
	}
	shapes.StartWithContext(ctx)
	defer shapes.Shutdown()
	p.caches.startAll() // DaemonSets
	p.caches.startInformers(ctx)
	c.Run(ctx)
	return nil
}

// isBuffer reports whether an object is a buffer of Evenkeel's strategy, or a Reserve that is left of
// one.
func isBuffer(item any) bool {
	switch o := item.(type) {
	case *bufferv1beta1.CapacityBuffer:
		return o.Reserved()
	case *autoscalingv1alpha1.Reserve:
		return o.Labels[plan.OwnLabel] != ""
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/handlers"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	bufferv1beta1 "github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
)

// buffersName names the controller that keeps room for the chunks of CapacityBuffers.
const buffersName = "capacitybuffer"

// BufferOptions are the flags about CapacityBuffers.
type BufferOptions struct {
	// FillOnce serves buffers that fill once.
	FillOnce bool
}

func (o *BufferOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.FillOnce, "capacity-buffer-fill-once", o.FillOnce,
		"Serve CapacityBuffers with refillStrategy none, whose room is not replaced when pods take it. Experimental: these fields may change or be removed in any release.")
}

// runBuffers keeps room for the chunks of CapacityBuffers, once there is one of Evenkeel's strategy
// or something is left of one.
func (p *process) runBuffers(ctx context.Context) error {
	return p.runAsking(ctx, bufferv1beta1.SchemeGroupVersion.WithResource("capacitybuffers"), capacitybuffer.Withdraw, p.keepRoom)
}

func (p *process) keepRoom(ctx context.Context, control, targets evenkeel.Interface) error {
	objects, asked := asking(control, targets, capacitybuffer.StripBuffer)
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
		capacitybuffer.Options{Namespace: p.options.Namespace, Scales: scales, FillOnce: p.options.Buffers.FillOnce, Control: p.clusters.control, Target: p.clusters.target, Registerer: p.registry})
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

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	evenkeelinformers "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
)

// askingRetry is how often the API servers are asked for Reserves, and for a kind of the target cluster
// that asks for machines, while they do not serve them.
const askingRetry = 30 * time.Second

// runAsking runs a controller that creates Reserves for objects of the target cluster, once both kinds
// are served. If the target cluster certainly does not serve its kind, what is left is withdrawn.
func (p *process) runAsking(ctx context.Context, kind schema.GroupVersionResource, withdraw func(context.Context, autoscalingclient.ReserveInterface) error, run func(ctx context.Context, control, targets evenkeel.Interface) error) error {
	if p.target == nil {
		<-ctx.Done() // there are no pods to ask machines for
		return nil
	}
	control, err := machines.Evenkeel(p.control)
	if err != nil {
		return fmt.Errorf("make client for reserves: %w", err)
	}
	targets, err := machines.Evenkeel(p.target)
	if err != nil {
		return fmt.Errorf("make client for %s: %w", kind.Resource, err)
	}
	if !connect.AwaitKind(ctx, control.Discovery(), autoscalingv1alpha1.SchemeGroupVersion.WithResource("reserves"), askingRetry, func() {}) {
		return nil
	}
	awaitReserveRights(ctx, p.rights, control, p.options.Namespace)
	reserves := control.AutoscalingV1alpha1().Reserves(p.options.Namespace)
	if !connect.AwaitKind(ctx, targets.Discovery(), kind, askingRetry, withdrawing(ctx, reserves, withdraw)) {
		return nil
	}
	return run(ctx, control, targets)
}

// withdrawing deletes what is left of a controller when it is called for the second time, and again after
// an error: an API server that begins to serve may not show all kinds at once.
func withdrawing(ctx context.Context, reserves autoscalingclient.ReserveInterface, withdraw func(context.Context, autoscalingclient.ReserveInterface) error) func() {
	misses := 0
	return func() {
		if misses++; misses != 2 {
			return
		}
		if err := withdraw(ctx, reserves); err != nil && ctx.Err() == nil {
			misses = 1 // once more
			klog.FromContext(ctx).Error(err, "Deleting the Reserves of a kind that is not served any more")
		}
	}
}

// asking returns informers of the objects that ask for machines, and of Reserves.
func asking(control, targets evenkeel.Interface, strip cache.TransformFunc) (objects, reserves evenkeelinformers.SharedInformerFactory) {
	return evenkeelinformers.NewSharedInformerFactoryWithOptions(targets, 0, evenkeelinformers.WithTransform(strip)), evenkeelinformers.NewSharedInformerFactory(control, 0)
}

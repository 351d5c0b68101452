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
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	evenkeelinformers "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	"github.com/evenkeel/evenkeel/pkg/controller/booking"
	"github.com/evenkeel/evenkeel/pkg/controller/booking/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// bookingName names the controller that books machines for ProvisioningRequests.
const bookingName = "booking"

// bookingRetry is how often the API servers are asked for Reserves and ProvisioningRequests while they
// do not serve them.
const bookingRetry = 30 * time.Second

// runBooking books machines for ProvisioningRequests, once there is one of Evenkeel's class or
// something is left of one.
func (p *process) runBooking(ctx context.Context) error {
	if p.target == nil {
		<-ctx.Done() // there are no pods to book machines for
		return nil
	}
	control, err := machines.Evenkeel(p.control)
	if err != nil {
		return fmt.Errorf("make client for reserves: %w", err)
	}
	targets, err := machines.Evenkeel(p.target)
	if err != nil {
		return fmt.Errorf("make client for provisioning requests: %w", err)
	}
	if !connect.AwaitKind(ctx, control.Discovery(), autoscalingv1alpha1.SchemeGroupVersion.WithResource("reserves"), bookingRetry, func() {}) {
		return nil
	}
	awaitReserveRights(ctx, p.rights, control, p.options.Namespace)
	reserves := control.AutoscalingV1alpha1().Reserves(p.options.Namespace)
	kind := provisioningv1.SchemeGroupVersion.WithResource("provisioningrequests")
	if !connect.AwaitKind(ctx, targets.Discovery(), kind, bookingRetry, withdrawBookings(ctx, reserves)) {
		return nil
	}
	return p.book(ctx, control, targets)
}

// withdrawBookings deletes what is left of requests when it is called for the second time: an API
// server that begins to serve may not show all kinds at once.
func withdrawBookings(ctx context.Context, reserves autoscalingclient.ReserveInterface) func() {
	return atSecondTime(func() error {
		err := booking.Withdraw(ctx, reserves)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Deleting the Reserves of ProvisioningRequests")
		}
		return err
	})
}

func (p *process) book(ctx context.Context, control, targets evenkeel.Interface) error {
	objects := evenkeelinformers.NewSharedInformerFactoryWithOptions(targets, 0, evenkeelinformers.WithTransform(booking.StripRequest), evenkeelinformers.WithTweakListOptions(written.ListStored))
	asked := evenkeelinformers.NewSharedInformerFactoryWithOptions(control, 0, evenkeelinformers.WithNamespace(p.options.Namespace), evenkeelinformers.WithTweakListOptions(written.ListStored))
	requests := readRequests(objects, p.rights)
	reserves, err := readReserves(asked, p.rights, p.options.Namespace)
	if err != nil {
		return fmt.Errorf("make informer of reserves: %w", err)
	}
	objects.StartWithContext(ctx)
	defer objects.Shutdown()
	asked.StartWithContext(ctx)
	defer asked.Shutdown()
	if err := handlers.AwaitFirst(ctx, "ProvisioningRequest", isRequest, requests, reserves); err != nil || ctx.Err() != nil {
		return err
	}
	c, err := booking.New(
		booking.Clients{Requests: targets.ProvisioningRequestV1(), Reserves: control.AutoscalingV1alpha1()},
		booking.Informers{Requests: requests, Reserves: reserves, Machines: p.caches.machines, Target: p.caches.target},
		booking.Options{Namespace: p.options.Namespace, Control: p.clusters.control, Target: p.clusters.target, Registerer: p.registry})
	if err != nil {
		return unlessEnding(ctx, err)
	}
	p.caches.startAll() // pods, DaemonSets and PodTemplates
	p.caches.startInformers(ctx)
	c.Run(ctx)
	return nil
}

// isRequest reports whether an object is a request of Evenkeel's class, or a Reserve that is left of
// one.
func isRequest(item any) bool {
	switch o := item.(type) {
	case *provisioningv1.ProvisioningRequest:
		return booking.Reserved(o)
	case *autoscalingv1alpha1.Reserve:
		return o.Labels[plan.OwnLabel] != ""
	}
	return false
}

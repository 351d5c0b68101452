// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/evenkeel/evenkeel/internal/handlers"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/booking"
	"github.com/evenkeel/evenkeel/pkg/controller/booking/plan"
)

// bookingName names the controller that books machines for ProvisioningRequests.
const bookingName = "booking"

// runBooking books machines for ProvisioningRequests, once there is one of Evenkeel's class or
// something is left of one.
func (p *process) runBooking(ctx context.Context) error {
	return p.runAsking(ctx, provisioningv1.SchemeGroupVersion.WithResource("provisioningrequests"), booking.Withdraw, p.bookMachines)
}

func (p *process) bookMachines(ctx context.Context, control, targets evenkeel.Interface) error {
	objects, asked := asking(control, targets, booking.StripRequest)
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
		return o.Reserved()
	case *autoscalingv1alpha1.Reserve:
		return o.Labels[plan.OwnLabel] != ""
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/booking/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/ownreserves"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// Withdraw deletes what this controller has created, if there can be no requests any more.
func Withdraw(ctx context.Context, reserves autoscalingclient.ReserveInterface) error {
	return ownreserves.DeleteAll(ctx, reserves, plan.OwnLabel)
}

// apply writes Reserves. One that cannot be written does not delay the others.
func (c *Controller) apply(ctx context.Context, p plan.Plan) error {
	var errs []error
	for _, change := range p.Changes {
		err := c.change(ctx, change)
		c.metrics.countWrite("reserve", err)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Controller) change(ctx context.Context, change plan.Change) error {
	answer, err := ownreserves.Replace(ctx, c.clients.Reserves.Reserves(c.options.Namespace), change.Reserve, change.After(c.options.Namespace))
	if answer == nil {
		return err
	}
	c.written.Record(answer)
	klog.FromContext(ctx).V(2).Info("Booked machines", "machineDeployment", change.Pool, "reserve", answer.Name, "machines", answer.Spec.Replicas)
	return nil
}

// report writes the statuses that have changed.
func (c *Controller) report(ctx context.Context, p plan.Plan) error {
	var errs []error
	for _, d := range p.Decisions {
		errs = append(errs, c.reportOne(ctx, d))
	}
	return errors.Join(errs...)
}

func (c *Controller) reportOne(ctx context.Context, d plan.Decision) error {
	after := d.After(c.options.Clock.Now())
	if equality.Semantic.DeepEqual(d.Request.Status, after.Status) {
		return nil
	}
	answer, err := c.clients.Requests.ProvisioningRequests(after.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	c.metrics.countWrite("status", err)
	if err != nil {
		return written.IgnoreNotFound(fmt.Errorf("write status of request %s/%s: %w", after.Namespace, after.Name, err))
	}
	slim, _ := StripRequest(answer)
	c.statuses.Record(slim.(*provisioningv1.ProvisioningRequest))
	return nil
}

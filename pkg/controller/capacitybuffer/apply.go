// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/ownreserves"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// Withdraw deletes what this controller has created, if there can be no buffers any more.
func Withdraw(ctx context.Context, reserves autoscalingclient.ReserveInterface) error {
	return ownreserves.DeleteAll(ctx, reserves, plan.OwnLabel)
}

// apply writes Reserves. One that cannot be written does not delay the others.
func (c *Controller) apply(ctx context.Context, p plan.Plan) error {
	var errs []error
	for _, r := range p.Requests {
		err := c.request(ctx, r)
		c.metrics.countWrite("reserve", err)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Controller) request(ctx context.Context, r plan.Request) error {
	answer, err := ownreserves.Replace(ctx, c.clients.Reserves.Reserves(c.options.Namespace), r.Reserve, r.After(c.options.Namespace))
	if answer == nil {
		return err
	}
	c.written.Record(answer)
	klog.FromContext(ctx).V(2).Info("Requested machines for chunks", "machineDeployment", r.Pool, "reserve", answer.Name, "machines", r.Machines)
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
	if equality.Semantic.DeepEqual(d.Buffer.Status, after.Status) {
		return nil
	}
	answer, err := c.clients.Buffers.CapacityBuffers(after.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	c.metrics.countWrite("status", err)
	if err != nil {
		return written.IgnoreNotFound(fmt.Errorf("write status of buffer %s/%s: %w", after.Namespace, after.Name, err))
	}
	c.statuses.Record(slimBuffer(answer))
	return nil
}

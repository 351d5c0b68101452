// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"

	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
)

// errRefused ends a sync: the API server did not accept a write. The next sync leaves that target
// alone.
var errRefused = errors.New("a write was refused")

// apply writes what the plan asks for: raises first, then lowerings.
func (c *Controller) apply(ctx context.Context, v plan.View, p plan.Plan) (plan.Outcome, error) {
	o := p.Current()
	if v.Balancer.Spec.Paused || p.Stop != (plan.Hold{}) {
		return o, nil
	}
	retried := c.retryRefused(ctx, v, p) // an error holds up no other target
	for _, due := range []func(i int) bool{
		func(i int) bool { return p.Shares[i].Next > o[i] },
		func(i int) bool { return p.Shares[i].Next < o[i] },
	} {
		var errs []error
		for i, s := range p.Shares {
			if s.Next == o[i] || !due(i) {
				continue
			}
			if err := c.scaleTarget(ctx, v, v.Targets[i], s); err != nil {
				errs = append(errs, err)
				continue
			}
			o[i] = s.Next
		}
		if len(errs) > 0 {
			return o, errors.Join(append(errs, retried)...)
		}
	}
	return o, retried
}

// scaleTarget scales a target to the replicas of the plan, unless the target has changed since it
// was observed.
func (c *Controller) scaleTarget(ctx context.Context, v plan.View, t plan.Target, s plan.Share) error {
	answer, err := c.writeScale(ctx, t, s.Next)
	c.metrics.countWrite(direction(s), err)
	switch {
	case err == nil:
	case refused(err):
		klog.FromContext(ctx).Error(err, "Leaving a target alone", "target", s.Name, "for", firstRefusal)
		c.refusals.record(t.Object.ID(), fmt.Sprintf("the API server refused to scale it from %d: %s", s.Current, reasonOf(err)), c.clock.Now())
		return errRefused
	default:
		return fmt.Errorf("scale target %s: %w", s.Name, err)
	}
	c.refusals.forget(t.Object.ID())
	c.watches.cacheFor(ctx, t.Object.Resource).written.Record(answer)
	klog.FromContext(ctx).V(2).Info("Scaled", "target", s.Name, "from", s.Current, "to", s.Next, "desired", s.Desired)
	c.recorder.Eventf(v.Balancer, corev1.EventTypeNormal, "Scaled", "Scaled target %s from %d to %d; desired: %d", s.Name, s.Current, s.Next, s.Desired)
	return nil
}

func (c *Controller) writeScale(ctx context.Context, t plan.Target, replicas int64) (*unstructured.Unstructured, error) {
	wish := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": map[string]any{"name": t.Object.Name, "namespace": t.Object.Namespace, "resourceVersion": t.Object.Version},
		"spec":     map[string]any{"replicas": replicas},
	}}
	return c.clients.Dynamic.Resource(t.Object.Resource).Namespace(t.Object.Namespace).Update(ctx, wish, metav1.UpdateOptions{}, "scale")
}

func direction(s plan.Share) string {
	if s.Next > s.Current {
		return "raise"
	}
	return "lower"
}

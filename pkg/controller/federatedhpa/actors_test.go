// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/test/sim/world"
)

// deploy makes a workload with one replica.
func (c *cluster) deploy(name string) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](1), &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	world.Create(c.core.AppsV1().Deployments(ns), d)
}

// lookPeriod is how often a cluster's own autoscaler looks.
const lookPeriod = 15 * time.Second

// act is what a cluster's own autoscaler and its workloads' controller do, until ctx ends. Where nothing was written and no
// load has changed since they looked, they would do nothing, and do not look; what failed is tried again.
func (c *cluster) act(ctx context.Context) {
	seen := ""
	for {
		if c.ended() {
			return
		}
		if state := c.state(); state != seen && c.look(ctx) == nil {
			seen = state
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookPeriod):
		}
	}
}

func (c *cluster) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.still
}

// state names all that those who act look at.
func (c *cluster) state() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.Version(), c.load, c.capacity)
}

func (c *cluster) look(ctx context.Context) error {
	all, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for i := range all.Items {
		errs = append(errs, c.scale(ctx, &all.Items[i]))
	}
	return errors.Join(append(errs, c.run(ctx))...)
}

// scale is one look of an autoscaler.
func (c *cluster) scale(ctx context.Context, h *autoscalingv2.HorizontalPodAutoscaler) error {
	d, err := c.core.AppsV1().Deployments(ns).Get(ctx, h.Spec.ScaleTargetRef.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.unable(ctx, h)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	load := c.load[d.Name]
	c.mu.Unlock()
	lo, hi := *h.Spec.MinReplicas, h.Spec.MaxReplicas
	if *d.Spec.Replicas == 0 && lo > 0 {
		return c.disabled(ctx, h)
	}
	desired := max(lo, min(int32(load), hi))
	current := *d.Spec.Replicas
	before := h.Status.DeepCopy()
	h.Status.CurrentReplicas, h.Status.DesiredReplicas = current, desired
	limited := autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingLimited, Status: corev1.ConditionFalse, Reason: "DesiredWithinRange"}
	if int32(load) > hi {
		limited.Status, limited.Reason = corev1.ConditionTrue, "TooManyReplicas"
	} else if int32(load) < lo {
		limited.Status, limited.Reason = corev1.ConditionTrue, "TooFewReplicas"
	}
	h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound"}, limited}
	h.Status.CurrentMetrics = nil
	for _, m := range h.Spec.Metrics {
		n := int64(max(1, current))
		average := resource.NewMilliQuantity((load*1000+n-1)/n, resource.DecimalSI) // rounded up, as the real one does
		h.Status.CurrentMetrics = append(h.Status.CurrentMetrics, autoscalingv2.MetricStatus{Type: m.Type, External: &autoscalingv2.ExternalMetricStatus{
			Metric: m.External.Metric, Current: autoscalingv2.MetricValueStatus{AverageValue: average},
		}})
	}
	if len(before.Conditions) != 2 || before.DesiredReplicas != desired || before.CurrentReplicas != current || before.Conditions[1].Reason != limited.Reason {
		_, err = c.core.AutoscalingV2().HorizontalPodAutoscalers(ns).UpdateStatus(ctx, h, metav1.UpdateOptions{})
	}
	if current != desired {
		d.Spec.Replicas = &desired
		_, failed := c.core.AppsV1().Deployments(ns).Update(ctx, d, metav1.UpdateOptions{})
		err = errors.Join(err, failed)
	}
	return err
}

// disabled says that 0 replicas turn it off, as the real one does.
func (c *cluster) disabled(ctx context.Context, h *autoscalingv2.HorizontalPodAutoscaler) error {
	for _, is := range h.Status.Conditions {
		if is.Reason == "ScalingDisabled" {
			return nil
		}
	}
	h.Status.CurrentReplicas, h.Status.DesiredReplicas = 0, 0
	h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "ScalingDisabled"}}
	_, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(ns).UpdateStatus(ctx, h, metav1.UpdateOptions{})
	return err
}

// unable says that there is nothing to scale, and nothing else, as the real one does.
func (c *cluster) unable(ctx context.Context, h *autoscalingv2.HorizontalPodAutoscaler) error {
	for _, is := range h.Status.Conditions {
		if is.Type == autoscalingv2.AbleToScale {
			return nil
		}
	}
	h.Status.Conditions = append(h.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionFalse, Reason: "FailedGetScale"})
	_, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(ns).UpdateStatus(ctx, h, metav1.UpdateOptions{})
	return err
}

// run gets replicas ready, as many as there is room for.
func (c *cluster) run(ctx context.Context) error {
	all, err := c.core.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	c.mu.Lock()
	capacity := c.capacity
	c.mu.Unlock()
	for i := range all.Items {
		d := &all.Items[i]
		if ready := min(*d.Spec.Replicas, int32(capacity)); d.Status.ReadyReplicas != ready {
			d.Status.ReadyReplicas = ready
			_, err := c.core.AppsV1().Deployments(ns).UpdateStatus(ctx, d, metav1.UpdateOptions{})
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scaler is the additional part of a generated client for kinds with a scale subresource.
type scaler interface {
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, o metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

type scalable[T object, L any] struct {
	*kindClient[T, L]
	inner scaler
}

func (s scalable[T, L]) UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, o metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	if err := s.stopError(); err != nil {
		return &autoscalingv1.Scale{}, err
	}
	result, err := s.inner.UpdateScale(ctx, name, scale, o)
	switch {
	case outcomeUnknown(err):
		s.c.metrics.unknown.WithLabelValues(s.tracker.resource).Inc()
		s.awaitLive(ctx, name)
	case err == nil:
		s.tracker.awaitWrite(ctx, s.tracker.recordWrite(s.objectKey(name), result.GetResourceVersion()))
	}
	return result, err
}

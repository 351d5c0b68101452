// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scaler is the part of a generated client that kinds with a scale subresource have besides.
type scaler interface {
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, o metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

type scalable[T object, L any] struct {
	*kind[T, L]
	inner scaler
}

func (s scalable[T, L]) UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, o metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	if err := s.open(); err != nil {
		return &autoscalingv1.Scale{}, err
	}
	result, err := s.inner.UpdateScale(ctx, name, scale, o)
	switch {
	case unknown(err):
		s.learn(ctx, name)
	case err == nil:
		s.horizon.await(ctx, s.horizon.wrote(s.key(name), result.GetResourceVersion()))
	}
	return result, err
}

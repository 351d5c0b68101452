// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// What tests of this package call by itself.
var (
	LocalOf         = localOf
	Kubeconfig      = kubeconfig
	Unclaimed       = unclaimed
	StripAutoscaler = stripAutoscaler
)

// Rendered is what an order makes.
func Rendered(o *v1alpha1.FederatedHorizontalPodAutoscaler, order Order) (*unstructured.Unstructured, error) {
	b, err := blueprintOf(o)
	if err != nil {
		return nil, err
	}
	return b.autoscaler(o, order), nil
}

// Drifted tells whether an autoscaler is not what an object says.
func Drifted(o *v1alpha1.FederatedHorizontalPodAutoscaler, h *autoscalingv2.HorizontalPodAutoscaler) bool {
	b, err := blueprintOf(o)
	return err != nil || b.drifted(h)
}

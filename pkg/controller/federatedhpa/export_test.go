// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"net/http"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// What tests of this package call by itself.
var (
	LocalOf         = localOf
	Kubeconfig      = func(text []byte) (*rest.Config, error) { return kubeconfig(text, false) }
	Connected       = Access.registration
	Unclaimed       = unclaimed
	StripAutoscaler = stripAutoscaler
)

// ClientFor reaches a cluster.
func ClientFor(r Registration) (*http.Client, error) { return clientFor(r.Config) }

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

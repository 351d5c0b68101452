// SPDX-License-Identifier: Apache-2.0

package reachability

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ProbeConfig returns a config for probes, whose rate limit no other request shares.
func ProbeConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.RateLimiter, config.QPS = nil, -1
	return config
}

// Nodes lists one Node.
func Nodes(client kubernetes.Interface) Probe { return Listing(client.CoreV1().Nodes().List) }

// Listing returns a Probe that lists one object, of the stored state and not of a cache, by the method List of a
// typed client.
func Listing[L metav1.ListInterface](list func(context.Context, metav1.ListOptions) (L, error)) Probe {
	return func(ctx context.Context) (string, error) {
		found, err := list(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return "", err
		}
		return found.GetResourceVersion(), nil
	}
}

// ListingOptional is Listing for a kind that need not be served: that it is not is an answer, too.
func ListingOptional[L metav1.ListInterface](list func(context.Context, metav1.ListOptions) (L, error)) Probe {
	probe := Listing(list)
	return func(ctx context.Context) (string, error) {
		version, err := probe(ctx)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return version, err
	}
}

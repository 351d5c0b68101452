// SPDX-License-Identifier: Apache-2.0

package reachability

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	balancerclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/balancer/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
)

// A list of one object, of the stored state and not of a cache.
var one = metav1.ListOptions{Limit: 1}

// Nodes lists one Node.
func Nodes(client kubernetes.Interface) Probe {
	return func(ctx context.Context) (string, error) {
		list, err := client.CoreV1().Nodes().List(ctx, one)
		if err != nil {
			return "", err
		}
		return list.ResourceVersion, nil
	}
}

// MachineDeployments lists one MachineDeployment of a namespace.
func MachineDeployments(client machineclient.MachineDeploymentsGetter, namespace string) Probe {
	return func(ctx context.Context) (string, error) {
		list, err := client.MachineDeployments(namespace).List(ctx, one)
		if err != nil {
			return "", err
		}
		return list.ResourceVersion, nil
	}
}

// Balancers lists one Balancer of a namespace; empty means all. If the kind is not served, that is
// an answer, too.
func Balancers(client balancerclient.BalancersGetter, namespace string) Probe {
	return func(ctx context.Context) (string, error) {
		return optional(client.Balancers(namespace).List(ctx, one))
	}
}

// FederatedAutoscalers lists one FederatedHorizontalPodAutoscaler, as Balancers does for Balancers.
func FederatedAutoscalers(client autoscalingclient.FederatedHorizontalPodAutoscalersGetter, namespace string) Probe {
	return func(ctx context.Context) (string, error) {
		return optional(client.FederatedHorizontalPodAutoscalers(namespace).List(ctx, one))
	}
}

// optional returns the version of a list of a kind that need not be served; empty if it is not.
func optional(list metav1.ListInterface, err error) (string, error) {
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return list.GetResourceVersion(), nil
}

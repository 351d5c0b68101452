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

// one object, of what is stored now and not of a cache.
var one = metav1.ListOptions{Limit: 1}

// Nodes asks for a Node.
func Nodes(client kubernetes.Interface) Probe {
	return func(ctx context.Context) (string, error) {
		list, err := client.CoreV1().Nodes().List(ctx, one)
		if err != nil {
			return "", err
		}
		return list.ResourceVersion, nil
	}
}

// MachineDeployments asks for a MachineDeployment of one namespace.
func MachineDeployments(client machineclient.MachineDeploymentsGetter, namespace string) Probe {
	return func(ctx context.Context) (string, error) {
		list, err := client.MachineDeployments(namespace).List(ctx, one)
		if err != nil {
			return "", err
		}
		return list.ResourceVersion, nil
	}
}

// Balancers asks for a Balancer of one namespace; empty means all. That the kind is not served is an answer, too.
func Balancers(client balancerclient.BalancersGetter, namespace string) Probe {
	return func(ctx context.Context) (string, error) {
		return optional(client.Balancers(namespace).List(ctx, one))
	}
}

// FederatedAutoscalers asks for a FederatedHorizontalPodAutoscaler, as Balancers does for a Balancer.
func FederatedAutoscalers(client autoscalingclient.FederatedHorizontalPodAutoscalersGetter, namespace string) Probe {
	return func(ctx context.Context) (string, error) {
		return optional(client.FederatedHorizontalPodAutoscalers(namespace).List(ctx, one))
	}
}

// optional is the version of a list of a kind that need not be served; empty where it is not.
func optional(list metav1.ListInterface, err error) (string, error) {
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return list.GetResourceVersion(), nil
}

// SPDX-License-Identifier: Apache-2.0

package reachability

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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

// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// InCluster is the word that stands for the service account of the pod in place of a kubeconfig path.
const InCluster = "inClusterConfig"

// Config reads the kubeconfig at path. No path, or InCluster, means the service account of the pod we run in.
func Config(path string) (*rest.Config, error) {
	if path == "" || path == InCluster {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("read in-cluster config: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	return config, nil
}

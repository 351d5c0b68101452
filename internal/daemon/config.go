// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// InCluster stands for the pod's service account in place of the path of a kubeconfig.
const InCluster = "inClusterConfig"

// Config reads the kubeconfig at path. An empty path, or InCluster, means the service account of
// this pod.
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

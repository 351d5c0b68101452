// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/evenkeel/evenkeel/internal/plugin/read"
)

// noTarget means that there is no cluster with Nodes and pods.
const noTarget = "none"

// options are the options that all commands have in common.
type options struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	// target is the path of a kubeconfig, empty if Nodes and pods are in the same cluster.
	target string
	// everywhere reads all namespaces.
	everywhere bool
	poolLabels []string
	// connect creates the clients; tests replace it.
	connect func() (read.Clusters, error)
}

func newOptions(streams genericiooptions.IOStreams) *options {
	o := &options{IOStreams: streams, config: genericclioptions.NewConfigFlags(true)}
	o.connect = o.clusters
	return o
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	o.config.AddFlags(flags)
	flags.StringVar(&o.target, "target-kubeconfig", "", "kubeconfig of the cluster with the Nodes and pods, or \"none\"; by default it is the same cluster")
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "all namespaces")
	flags.StringSliceVar(&o.poolLabels, "pool-label", nil, "labels that name pools, the value of the controllers' flag (default worker.gardener.cloud/pool)")
}

// clusters connects to the clusters that the flags select.
func (o *options) clusters() (read.Clusters, error) {
	control, err := o.config.ToRESTConfig()
	if err != nil {
		return read.Clusters{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, err := o.namespace()
	if err != nil {
		return read.Clusters{}, err
	}
	target, err := o.targetConfig(control)
	if err != nil {
		return read.Clusters{}, err
	}
	return read.New(control, target, namespace)
}

// namespace is empty for all namespaces.
func (o *options) namespace() (string, error) {
	if o.everywhere {
		return "", nil
	}
	namespace, _, err := o.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	return namespace, nil
}

func (o *options) targetConfig(control *rest.Config) (*rest.Config, error) {
	switch o.target {
	case "":
		return control, nil
	case noTarget:
		return nil, nil
	}
	target, err := clientcmd.BuildConfigFromFlags("", o.target)
	if err != nil {
		return nil, fmt.Errorf("read the target kubeconfig: %w", err)
	}
	return target, nil
}

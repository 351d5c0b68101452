// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	evenkeel "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup"
)

// nodeGroupsName is the name of the server of node groups.
const nodeGroupsName = "nodegroup"

// NodeGroupOptions are the flags of the server that cluster-autoscaler talks to.
type NodeGroupOptions struct {
	// ListenAddress is host:port; empty means no server.
	ListenAddress string
	TLS           nodegroup.TLS
	// GPULabel is the label that cluster-autoscaler gets.
	GPULabel string
	// KubeReserved is what kubelets reserve, by resource.
	KubeReserved map[string]string
}

func (o *NodeGroupOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ListenAddress, "autoscaler-listen-address", "",
		"host:port that serves MachineDeployments with bounds as node groups to cluster-autoscaler (--cloud-provider=externalgrpc). An address other than loopback requires the three files of --autoscaler-tls-*. Default: none.")
	flags.StringVar(&o.TLS.CertFile, "autoscaler-tls-cert-file", "", "Certificate for cluster-autoscaler, in PEM format. Read again for each connection.")
	flags.StringVar(&o.TLS.KeyFile, "autoscaler-tls-key-file", "", "Key of --autoscaler-tls-cert-file, in PEM format.")
	flags.StringVar(&o.TLS.ClientCAFile, "autoscaler-tls-client-ca-file", "",
		"CA certificates for clients. Every client with a certificate from one of these CAs can add and remove machines: use them for nothing else.")
	flags.StringVar(&o.GPULabel, "autoscaler-gpu-label", nodegroup.DefaultGPULabel, "Label of Nodes with GPUs. A Node that has the label but no GPU yet counts as not ready.")
	flags.StringToStringVar(&o.KubeReserved, "autoscaler-kube-reserved", nil,
		"Resources that kubelets reserve, for pools that have not had a Node yet, for example cpu=80m,memory=1Gi. Default: an estimate from the machine size.")
}

func (o *NodeGroupOptions) validate(hasTarget bool) error {
	_, err := o.reserved()
	if o.ListenAddress == "" {
		if o.TLS.IsSet() {
			return errors.Join(err, errors.New("--autoscaler-tls-* need --autoscaler-listen-address"))
		}
		return err
	}
	if wrong := nodegroup.CheckAddress(o.ListenAddress, o.TLS); wrong != nil {
		err = errors.Join(err, fmt.Errorf("--autoscaler-listen-address, --autoscaler-tls-*: %w", wrong))
	}
	if !hasTarget {
		err = errors.Join(err, errors.New("--autoscaler-listen-address needs a target cluster: set --target-kubeconfig"))
	}
	return err
}

func (o *NodeGroupOptions) reserved() (corev1.ResourceList, error) {
	all := corev1.ResourceList{}
	for name, text := range o.KubeReserved {
		amount, err := resource.ParseQuantity(text)
		if err != nil || amount.Sign() < 0 {
			return nil, fmt.Errorf("--autoscaler-kube-reserved: %s=%s: use a quantity, for example cpu=80m,memory=1Gi", name, text)
		}
		all[corev1.ResourceName(name)] = amount
	}
	return all, nil
}

// runNodeGroups serves cluster-autoscaler while this process leads, and no longer, so that there is
// only one server.
func (p *process) runNodeGroups(ctx context.Context) error {
	o := p.options.NodeGroups
	if o.ListenAddress == "" {
		<-ctx.Done()
		return nil
	}
	ours, err := machines.Evenkeel(p.control)
	if err != nil {
		return fmt.Errorf("make machine client: %w", err)
	}
	if !connect.AwaitAPI(ctx, ours.Discovery(), machinev1alpha1.SchemeGroupVersion, apiRetry) {
		return nil
	}
	server, err := p.newNodeGroups(ours)
	if err != nil {
		return err
	}
	p.caches.startInformers(ctx)
	return o.serveNodeGroups(ctx, server)
}

func (p *process) newNodeGroups(ours evenkeel.Interface) (*nodegroup.Server, error) {
	reserved, err := p.options.NodeGroups.reserved()
	if err != nil {
		return nil, err
	}
	return nodegroup.New(
		nodegroup.Clients{Machines: ours.MachineV1alpha1()},
		nodegroup.Informers{Machines: p.caches.machines, Target: p.caches.target},
		nodegroup.Options{
			Namespace: p.options.Namespace, GPULabel: p.options.NodeGroups.GPULabel, Reserved: reserved, Registerer: p.registry,
			Control: p.clusters.control, Target: p.clusters.target,
		})
}

func (o *NodeGroupOptions) serveNodeGroups(ctx context.Context, server *nodegroup.Server) error {
	var secure credentials.TransportCredentials
	if o.TLS.IsSet() {
		var err error
		if secure, err = o.TLS.Credentials(); err != nil {
			return fmt.Errorf("--autoscaler-tls-*: %w", err)
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.ListenAddress)
	if err != nil {
		return fmt.Errorf("listen for cluster-autoscaler: %w", err)
	}
	return server.Run(ctx, listener, secure)
}

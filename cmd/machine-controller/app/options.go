// SPDX-License-Identifier: Apache-2.0

// Package app is the machine-controller as a function. Run ends when its context ends, and nothing
// here exits the process.
package app

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/gardener/machine-controller-manager/pkg/apis/constants"
	mcmoptions "github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/daemon/stock"
	"github.com/evenkeel/evenkeel/internal/version"
)

// Options are the flags of a stock machine-controller, by its own definitions, and ours.
type Options struct {
	*mcmoptions.MCServer

	// BindAddress serves health and metrics. If it is empty, --address applies if given, otherwise
	// all addresses in a pod, because the kubelet connects from outside, and loopback elsewhere.
	BindAddress string
	// PrintVersion asks for the version and nothing else.
	PrintVersion bool

	flags *pflag.FlagSet
}

// NewOptions returns the defaults of the stock binary.
func NewOptions() *Options { return &Options{MCServer: mcmoptions.NewMCServer()} }

// Flags returns the flag set that fills the options when it is parsed.
func (o *Options) Flags() *pflag.FlagSet {
	o.flags = pflag.NewFlagSet(name, pflag.ContinueOnError)
	o.flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	o.flags.Usage = func() {} // printed by the caller
	o.flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress,
		"IP address that serves /healthz, /readyz and /metrics. Default: --address if set, otherwise 0.0.0.0 in a pod and 127.0.0.1 elsewhere.")
	o.flags.BoolVar(&o.PrintVersion, "version", false, "Print the version and exit.")
	o.AddFlags(o.flags)
	return o.flags
}

// Validate returns everything that is wrong at once.
func (o *Options) Validate() error {
	errs := []error{o.MCServer.Validate(), stock.Election(o.LeaderElection).Validate()}
	if o.BindAddress != "" && net.ParseIP(o.BindAddress) == nil {
		errs = append(errs, fmt.Errorf("--bind-address: %q is not an IP address", o.BindAddress))
	}
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace must not be empty"))
	}
	return errors.Join(errs...)
}

// endpoint is the address to serve on.
func (o *Options) endpoint() string {
	given := o.flags != nil && o.flags.Changed("address")
	return daemon.Endpoint(o.BindAddress, o.Address, given, o.Port)
}

// hasTarget reports whether there is a cluster in which machines become Nodes.
func (o *Options) hasTarget() bool {
	return o.TargetKubeconfig != constants.TargetKubeconfigDisabledValue
}

// PrintUsage prints the help text.
func PrintUsage(w io.Writer, flags *pflag.FlagSet) {
	fmt.Fprint(w, `Evenkeel's machine-controller runs machine-controller-manager's machine controller on the virtual provider: a machine is a
Node object that registers after a boot delay and is kept alive by kwok. It takes the flags of a cloud provider's
machine-controller and the same lease. docs/virtual-provider.md describes how to configure machines
and faults.

  machine-controller --control-kubeconfig=control.yaml --target-kubeconfig=target.yaml --namespace=shoot--a--b
  machine-controller --control-kubeconfig=inClusterConfig --target-kubeconfig=none

Flags:
`)
	fmt.Fprint(w, flags.FlagUsagesWrapped(120))
}

// Version returns the version on one line.
func Version() string { return version.Line(name) }

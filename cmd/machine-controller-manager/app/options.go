// SPDX-License-Identifier: Apache-2.0

// Package app is the machine-controller-manager as a function. Run ends when its context ends, and
// nothing here exits the process.
package app

import (
	"errors"
	"fmt"
	"io"
	"net"

	mcmoptions "github.com/gardener/machine-controller-manager/cmd/machine-controller-manager/app/options"
	"github.com/gardener/machine-controller-manager/pkg/apis/constants"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/daemon/stock"
	"github.com/evenkeel/evenkeel/internal/settings"
	"github.com/evenkeel/evenkeel/internal/tracing/export"
	"github.com/evenkeel/evenkeel/internal/version"
)

// Options are the stock binary's flags, by its own definitions, and ours.
type Options struct {
	*mcmoptions.MCMServer

	// BindAddress serves health and metrics. If it is empty, --address applies if given, otherwise
	// all addresses in a pod, because the kubelet connects from outside, and loopback elsewhere.
	BindAddress string
	// Controllers selects what runs: names, -names, and * for all.
	Controllers []string
	// Reserve applies if the controller of MachineDeployments runs.
	Reserve ReserveOptions
	// Eviction applies to the reserve and to balance.
	Eviction settings.Eviction
	// Release applies if that controller runs.
	Release ReleaseOptions
	// Preparation applies if that controller runs.
	Preparation PreparationOptions
	// Buffers applies if that controller runs.
	Buffers BufferOptions
	// NodeGroups applies if that server runs.
	NodeGroups NodeGroupOptions
	// Balance applies if that controller runs.
	Balance BalanceOptions
	// Unready applies to the controller of MachineDeployments and to the balance controller.
	Unready settings.Unready
	// Metrics are served here instead of beside the health of the process.
	Metrics daemon.MetricsOptions
	// Tracing exports what the controllers do.
	Tracing export.Options
	// PrintVersion asks for the version and nothing else.
	PrintVersion bool

	flags *pflag.FlagSet
}

// NewOptions returns the defaults of the stock binary.
func NewOptions() *Options {
	return &Options{MCMServer: mcmoptions.NewMCMServer(), Controllers: []string{"*"}}
}

// Flags returns the flag set that fills the options when it is parsed.
func (o *Options) Flags() *pflag.FlagSet {
	o.flags = pflag.NewFlagSet("machine-controller-manager", pflag.ContinueOnError)
	o.flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	o.flags.Usage = func() {} // printed by the caller
	o.flags.SortFlags = true
	o.addOurs(o.flags)
	o.AddFlags(o.flags)
	return o.flags
}

func (o *Options) addOurs(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress,
		"IP address that serves /healthz, /readyz and /metrics. Default: --address if set, otherwise 0.0.0.0 in a pod and 127.0.0.1 elsewhere.")
	flags.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "Controllers to run: '*' enables all, 'name' enables one, '-name' disables one. Known: "+knownNames()+".")
	o.Reserve.addFlags(flags)
	o.Eviction.AddFlags(flags)
	o.Release.addFlags(flags)
	o.Preparation.addFlags(flags)
	o.Buffers.addFlags(flags)
	o.NodeGroups.addFlags(flags)
	o.Balance.addFlags(flags)
	o.Unready.AddFlags(flags)
	o.Metrics.AddFlags(flags)
	o.Tracing.AddFlags(flags)
	flags.BoolVar(&o.PrintVersion, "version", false, "Print the version and exit.")
}

// Validate returns everything that is wrong at once.
func (o *Options) Validate() error {
	errs := []error{o.MCMServer.Validate(), o.Reserve.validate(), o.Release.validate(), o.Preparation.validate(), o.NodeGroups.validate(o.hasTarget()), o.Balance.validate(o.Namespace), o.Unready.Validate(), o.Metrics.Validate(), o.Tracing.Validate()}
	if o.BindAddress != "" && net.ParseIP(o.BindAddress) == nil {
		errs = append(errs, fmt.Errorf("--bind-address: %q is not an IP address", o.BindAddress))
	}
	if _, err := pickControllers(o.Controllers); err != nil {
		errs = append(errs, fmt.Errorf("--controllers: %w", err))
	}
	errs = append(errs, stock.Election(o.LeaderElection).Validate())
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
	fmt.Fprint(w, `Evenkeel's machine-controller-manager takes the place of Gardener's: it runs MachineDeployments and MachineSets, and keeps
spare machines ready. All stock flags have the same meaning, and the lease is the same, so the two never work at the same
time.

  machine-controller-manager --control-kubeconfig=control.yaml --target-kubeconfig=target.yaml --namespace=shoot--a--b
  machine-controller-manager --control-kubeconfig=inClusterConfig --target-kubeconfig=none

Flags:
`)
	fmt.Fprint(w, flags.FlagUsagesWrapped(120))
}

// Version returns the version on one line.
func Version() string { return version.Line(name) }

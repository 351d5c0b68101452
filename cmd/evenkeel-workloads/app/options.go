// SPDX-License-Identifier: Apache-2.0

// Package app is evenkeel-workloads as a function. Run ends when its context ends, and nothing here exits the process.
package app

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"

	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/tracing/export"
	"github.com/evenkeel/evenkeel/internal/version"
)

// Name of the binary, the user agent and the event source.
const Name = "evenkeel-workloads"

// port serves health and metrics unless a flag is set.
const port = 10262

// Options are the flags.
type Options struct {
	// Kubeconfig of the cluster of the objects; see [daemon.Config].
	Kubeconfig string
	// Namespace of the lease.
	Namespace string
	// Controllers are the names of those that run.
	Controllers []string
	Balancer    BalancerOptions
	Federated   FederatedOptions
	Election    daemon.Election
	// QPS and Burst limit the rate of requests of each client.
	QPS   float32
	Burst int
	// BindAddress and Port serve health and metrics. An empty address means all addresses in a pod, and loopback
	// elsewhere.
	BindAddress string
	Port        int32
	// Profiling serves profiles, too.
	Profiling bool
	Metrics   daemon.MetricsOptions
	Tracing   export.Options
	// PrintVersion asks for the version and nothing else.
	PrintVersion bool
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Namespace: "default", Controllers: controllerNames, QPS: 20, Burst: 30, Port: port,
		Election: daemon.Election{
			LeaderElect: true, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			ResourceLock: resourcelock.LeasesResourceLock,
		},
	}
}

// Flags returns the flag set that fills the options when it is parsed.
func (o *Options) Flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet(Name, pflag.ContinueOnError)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	flags.Usage = func() {} // printed by the caller
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "Kubeconfig of the cluster of Balancers, or of the hub. Default: the service account of this pod.")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the lease.")
	flags.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "Controllers to run: "+strings.Join(controllerNames, ", ")+". Processes that run only one controller elect a leader for it among themselves.")
	flags.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "Maximum requests per second of each client to an API server.")
	flags.IntVar(&o.Burst, "kube-api-burst", o.Burst, "Maximum burst of requests of each client to an API server.")
	flags.StringVar(&o.BindAddress, "bind-address", "", "IP address that serves /healthz, /readyz and /metrics. Default: 0.0.0.0 in a pod and 127.0.0.1 elsewhere.")
	flags.Int32Var(&o.Port, "port", o.Port, "Port of /healthz, /readyz and /metrics.")
	flags.BoolVar(&o.Profiling, "profiling", false, "Serve profiling data at /debug/pprof.")
	flags.BoolVar(&o.Election.LeaderElect, "leader-elect", o.Election.LeaderElect, "Elect a leader before work begins. Disable this only if no second process ever runs.")
	flags.DurationVar(&o.Election.LeaseDuration, "leader-elect-lease-duration", o.Election.LeaseDuration, "How long other processes wait after the last renewal of the lease before they take it.")
	flags.DurationVar(&o.Election.RenewDeadline, "leader-elect-renew-deadline", o.Election.RenewDeadline, "How long a leader that cannot renew the lease continues.")
	flags.DurationVar(&o.Election.RetryPeriod, "leader-elect-retry-period", o.Election.RetryPeriod, "Time between attempts to acquire or renew the lease.")
	o.Balancer.addFlags(flags)
	o.Federated.addFlags(flags)
	o.Metrics.AddFlags(flags)
	o.Tracing.AddFlags(flags)
	logs.AddFlags(flags)
	flags.BoolVar(&o.PrintVersion, "version", false, "Print the version and exit.")
	return flags
}

// Validate returns everything that is wrong at once.
func (o *Options) Validate() error {
	errs := []error{o.Balancer.validate(), o.Federated.validate(), o.Election.Validate(), o.Metrics.Validate(), o.Tracing.Validate()}
	for _, name := range o.Controllers {
		if !slices.Contains(controllerNames, name) {
			errs = append(errs, fmt.Errorf("--controllers: unknown controller %q; known: %s", name, strings.Join(controllerNames, ", ")))
		}
	}
	if len(o.Controllers) == 0 {
		errs = append(errs, errors.New("--controllers must not be empty"))
	}
	if o.BindAddress != "" && net.ParseIP(o.BindAddress) == nil {
		errs = append(errs, fmt.Errorf("--bind-address: %q is not an IP address", o.BindAddress))
	}
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace must not be empty"))
	}
	return errors.Join(errs...)
}

func (o *Options) runs(controller string) bool { return slices.Contains(o.Controllers, controller) }

// leaseName returns the name of the only controller, or that of the binary. Processes with different controllers may
// work in one namespace at the same time.
func (o *Options) leaseName() string {
	for _, name := range controllerNames {
		if !slices.ContainsFunc(o.Controllers, func(other string) bool { return other != name }) {
			return name
		}
	}
	return Name
}

func (o *Options) endpoint() string { return daemon.Endpoint(o.BindAddress, "", false, o.Port) }

// PrintUsage prints the help text.
func PrintUsage(w io.Writer, flags *pflag.FlagSet) {
	fmt.Fprint(w, `evenkeel-workloads distributes the replicas of Balancers over their targets, and the bounds of
FederatedHorizontalPodAutoscalers over clusters. It works in any cluster.

  evenkeel-workloads --kubeconfig=cluster.yaml --controllers=balancer
  evenkeel-workloads --kubeconfig=hub.yaml --controllers=federatedhpa --federation-clusters-namespace=evenkeel-clusters

Flags:
`)
	fmt.Fprint(w, flags.FlagUsagesWrapped(120))
}

// Version returns the version on one line.
func Version() string { return version.Line(Name) }

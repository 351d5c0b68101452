// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"

	machinescheme "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/scheme"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/daemon/stock"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/tracing"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation"
)

const (
	// name of the lease, the user agent and the event source. They are the stock binary's, so that
	// the two take turns.
	name = "machine-controller-manager"
)

// process is one run of the binary: what its controllers share.
type process struct {
	daemon.Process
	options     *Options
	controllers []controller
	control     *rest.Config
	target      *rest.Config // nil without a target cluster
	core        kubernetes.Interface
	registry    *prometheus.Registry
	// clusters report whether the API servers answer; see newClusters.
	clusters clusters
	// rights that the process can work without.
	rights *access.Rights
	caches *caches
	// preparations says how far machines are prepared.
	preparations preparation.States
	// requests are what Reserves have prepared.
	requests preparation.Requests
	// machineController is set once it has been created.
	machineController atomic.Pointer[machinedeployment.Controller]
}

// Run serves until ctx ends or the lease is lost.
func Run(ctx context.Context, o *Options) error {
	daemon.TuneMemory(os.DirFS("/"), o.EnableProfiling)
	p, err := newProcess(o)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "version", Version(), "namespace", o.Namespace, "controllers", o.Controllers,
		"controlCluster", p.control.Host, "targetCluster", apiServerHost(p.target), "endpoint", o.endpoint())
	if o.EnableProfiling && o.EnableContentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}
	// Events concern only objects of this group. A scheme with all of Kubernetes would be the second one in the process.
	events, err := p.Record(ctx, machinescheme.AddToScheme, autoscalingv1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	defer events.Shutdown()
	endTraces, err := o.Tracing.Start(ctx, name, Version())
	if err != nil {
		return err
	}
	defer endTraces()
	return daemon.Together(ctx, p.serveEndpoints, p.serveMetrics, p.runElection)
}

func newProcess(o *Options) (*process, error) {
	p := &process{options: o, registry: prometheus.NewRegistry(), rights: access.New(clock.RealClock{}), Process: daemon.Process{
		Name: name, Namespace: o.Namespace, Lease: o.leaseName(), Kubeconfig: cmp.Or(o.ControlKubeconfig, o.TargetKubeconfig), QPS: o.KubeAPIQPS, Burst: int(o.KubeAPIBurst),
	}}
	if o.Tracing.Endpoint != "" {
		p.Wrap = tracing.Transport
	}
	var err error
	if p.controllers, err = pickControllers(o.Controllers); err != nil {
		return nil, err
	}
	if o.hasTarget() {
		if p.target, err = p.Connect(o.TargetKubeconfig); err != nil {
			return nil, fmt.Errorf("target cluster: %w", err)
		}
	}
	if p.control = p.target; o.ControlKubeconfig != "" {
		if p.control, err = p.Connect(o.ControlKubeconfig); err != nil {
			return nil, fmt.Errorf("control cluster: %w", err)
		}
	}
	if p.core, err = connect.Core(p.control); err != nil {
		return nil, fmt.Errorf("make control client: %w", err)
	}
	if p.clusters, err = p.newClusters(); err != nil {
		return nil, err
	}
	p.caches, err = p.newCaches()
	return p, err
}

func apiServerHost(config *rest.Config) string {
	if config == nil {
		return "none"
	}
	return config.Host
}

func (p *process) serveEndpoints(ctx context.Context) error {
	endpoints := daemon.Endpoints{
		Ready:     map[string]daemon.Check{"caches": p.Ready.Check},
		Profiling: p.options.EnableProfiling,
	}
	if p.options.Metrics.Address == "" {
		endpoints.Metrics = p.metrics()
	}
	return daemon.Serve(ctx, p.options.endpoint(), endpoints)
}

// serveMetrics serves metrics to authorized clients, if an address is set.
func (p *process) serveMetrics(ctx context.Context) error {
	return p.ServeMetrics(ctx, p.options.Metrics, p.metrics())
}

// metrics of all controllers. Ours come first, because collecting machine-controller-manager's
// metrics sets some in the default registry.
func (p *process) metrics() prometheus.Gatherer {
	return prometheus.Gatherers{p.registry, prometheus.DefaultGatherer}
}

// runElection waits for the lease and leads.
func (p *process) runElection(ctx context.Context) error {
	return p.Elect(ctx, stock.Election(p.options.LeaderElection), p.clusters.control.WatchedUntil, p.runLeader)
}

// runLeader runs the controllers. After ctx has ended they write nothing more, and when runLeader
// returns nothing is in progress.
func (p *process) runLeader(ctx context.Context) error {
	p.Ready.Lead()
	if !p.picked(mcmName) {
		p.Ready.Filled() // there may never be anything that the other controllers wait for
	}
	if p.picked(reservesName) {
		p.requests.ExpectReserves(true)
	}
	runs := append(p.clusters.probes(), p.awaitReserves)
	for _, c := range p.controllers {
		runs = append(runs, func(ctx context.Context) error {
			if err := c.run(p, ctx); err != nil {
				return fmt.Errorf("run %s: %w", c.name, err)
			}
			return nil
		})
	}
	if p.publishes() {
		runs = append(runs, p.publishSettings)
	}
	defer p.caches.shutdown()
	return p.Lead(ctx, runs...)
}

// controller is an entry of --controllers.
type controller struct {
	name string
	run  func(*process, context.Context) error
}

const mcmName = "mcm"

// controllers contains all controllers in the order in which they are started.
var controllers = []controller{
	{name: mcmName, run: (*process).runMCM},
	{name: nodeGroupsName, run: (*process).runNodeGroups},
	{name: releaseName, run: (*process).runRelease},
	{name: balanceName, run: (*process).runBalance},
	{name: reservesName, run: (*process).runReserves},
	{name: buffersName, run: (*process).runBuffers},
	{name: bookingName, run: (*process).runBooking},
	{name: preparationName, run: (*process).runPreparation},
}

// elsewhere says where controllers are that might be looked for here.
var elsewhere = map[string]string{
	"balancer":     "runs in the binary evenkeel-workloads",
	"federatedhpa": "runs in the binary evenkeel-workloads",
	"machinetaint": "is part of mcm",
}

func knownNames() string {
	names := make([]string, len(controllers))
	for i, c := range controllers {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// pickControllers parses a list as kube-controller-manager does: the first entry with a name, with
// or without a minus, decides about it. All other controllers run if the list has a star.
func pickControllers(list []string) ([]controller, error) {
	for _, item := range list {
		if name := strings.TrimPrefix(item, "-"); item != "*" && !slices.ContainsFunc(controllers, func(c controller) bool { return c.name == name }) {
			if where := elsewhere[name]; where != "" {
				return nil, fmt.Errorf("%s %s", name, where)
			}
			return nil, fmt.Errorf("unknown controller %q; known: %s", name, knownNames())
		}
	}
	var picked []controller
	for _, c := range controllers {
		named := slices.IndexFunc(list, func(item string) bool { return strings.TrimPrefix(item, "-") == c.name })
		if named >= 0 && list[named] == c.name || named < 0 && slices.Contains(list, "*") {
			picked = append(picked, c)
		}
	}
	if len(picked) == 0 {
		return nil, errors.New("no controller is enabled; known: " + knownNames())
	}
	return picked, nil
}

func includes(picked []controller, name string) bool {
	return slices.ContainsFunc(picked, func(c controller) bool { return c.name == name })
}

// picked reports whether a controller is to run.
func (p *process) picked(name string) bool { return includes(p.controllers, name) }

// machinesLease is the lease of a process that works beside the stock binary.
const machinesLease = "evenkeel"

// leaseName returns the stock binary's lease, so that the two take turns, unless no controller of
// the stock binary runs here.
func (o *Options) leaseName() string {
	if picked, err := pickControllers(o.Controllers); err == nil && !includes(picked, mcmName) {
		return machinesLease
	}
	return name
}

// unlessEnding returns an error of a controller that is being built, and none once the process is
// ending: informers that have stopped accept no handlers.
func unlessEnding(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// clusters report to all controllers of the process whether the API servers answer. target is nil
// without a target cluster.
type clusters struct {
	control, target *reachability.Cluster
}

// newClusters returns the clusters that the selected controllers depend on.
func (p *process) newClusters() (clusters, error) {
	ours, err := machines.Evenkeel(reachability.ProbeConfig(p.control))
	if err != nil {
		return clusters{}, fmt.Errorf("make client that probes the control cluster: %w", err)
	}
	all := clusters{control: reachability.New("control", reachability.Listing(ours.MachineV1alpha1().MachineDeployments(p.options.Namespace).List), reachability.Options{})}
	if p.target == nil {
		p.registry.MustRegister(reachability.Metrics{all.control})
		return all, nil
	}
	core, err := connect.Core(reachability.ProbeConfig(p.target))
	if err != nil {
		return clusters{}, fmt.Errorf("make client that probes the target cluster: %w", err)
	}
	all.target = reachability.New("target", reachability.Nodes(core), reachability.Options{})
	p.registry.MustRegister(reachability.Metrics{all.control, all.target})
	return all, nil
}

func (c clusters) probes() (all []func(context.Context) error) {
	for _, cluster := range []*reachability.Cluster{c.control, c.target} {
		if cluster != nil {
			all = append(all, cluster.Run)
		}
	}
	return all
}

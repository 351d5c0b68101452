// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/tracing"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancerv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/workloads"
)

// Names of the controllers.
const (
	balancerName  = "balancer"
	federatedName = "federatedhpa"
)

var controllerNames = []string{balancerName, federatedName}

// process is one run of the binary: what its controllers share.
type process struct {
	daemon.Process
	options  *Options
	config   *rest.Config
	core     kubernetes.Interface
	ours     workloads.Interface
	registry *prometheus.Registry
	// cluster reports whether the API server answers.
	cluster *reachability.Cluster
}

// Run serves until ctx ends or the lease is lost.
func Run(ctx context.Context, o *Options) error {
	daemon.TuneMemory(os.DirFS("/"), o.Profiling)
	p, err := newProcess(o)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "version", Version(), "namespace", o.Namespace, "controllers", o.Controllers, "cluster", p.config.Host, "endpoint", o.endpoint())
	events, err := p.Record(ctx, balancerv1alpha1.AddToScheme, autoscalingv1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	defer events.Shutdown()
	endTraces, err := o.Tracing.Start(ctx, Name, Version())
	if err != nil {
		return err
	}
	defer endTraces()
	return daemon.Together(ctx, p.serveEndpoints, p.serveMetrics, p.runElection)
}

func newProcess(o *Options) (*process, error) {
	p := &process{options: o, registry: prometheus.NewRegistry(), Process: daemon.Process{
		Name: Name, Namespace: o.Namespace, Lease: o.leaseName(), Kubeconfig: o.Kubeconfig, QPS: o.QPS, Burst: o.Burst,
	}}
	if o.Tracing.Endpoint != "" {
		p.Wrap = tracing.Transport
	}
	var err error
	if p.config, err = p.Connect(o.Kubeconfig); err != nil {
		return nil, err
	}
	if p.core, err = connect.Core(p.config); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if p.ours, err = workloads.NewForConfig(p.config); err != nil {
		return nil, fmt.Errorf("make client of Evenkeel's kinds: %w", err)
	}
	probe, err := p.probe()
	if err != nil {
		return nil, err
	}
	p.cluster = reachability.New("control", probe, reachability.Options{})
	p.registry.MustRegister(reachability.Metrics{p.cluster})
	return p, nil
}

// probe reads something that the controllers may read.
func (p *process) probe() (reachability.Probe, error) {
	ours, err := workloads.NewForConfig(reachability.ProbeConfig(p.config))
	if err != nil {
		return nil, fmt.Errorf("make client that probes the cluster: %w", err)
	}
	if p.options.runs(balancerName) {
		return reachability.ListingOptional(ours.BalancerV1alpha1().Balancers(p.options.Balancer.Namespace).List), nil
	}
	return reachability.ListingOptional(ours.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(p.options.Federated.Namespace).List), nil
}

func (p *process) serveEndpoints(ctx context.Context) error {
	endpoints := daemon.Endpoints{Ready: map[string]daemon.Check{"turn": p.Ready.Check}, Profiling: p.options.Profiling}
	if p.options.Metrics.Address == "" {
		endpoints.Metrics = p.metrics()
	}
	return daemon.Serve(ctx, p.options.endpoint(), endpoints)
}

func (p *process) serveMetrics(ctx context.Context) error {
	return p.ServeMetrics(ctx, p.options.Metrics, p.metrics())
}

func (p *process) metrics() prometheus.Gatherer {
	return prometheus.Gatherers{p.registry, prometheus.DefaultGatherer}
}

func (p *process) runElection(ctx context.Context) error {
	return p.Elect(ctx, p.options.Election, p.cluster.WatchedUntil, p.runLeader)
}

// runLeader runs the controllers. After ctx has ended they write nothing more, and when runLeader returns nothing is in
// progress.
func (p *process) runLeader(ctx context.Context) error {
	p.Ready.Lead()
	p.Ready.Filled() // there may never be anything that the controllers wait for
	runs := []func(context.Context) error{p.cluster.Run}
	for name, run := range map[string]func(context.Context) error{balancerName: p.runBalancer, federatedName: p.runFederated} {
		if p.options.runs(name) {
			runs = append(runs, func(ctx context.Context) error {
				if err := run(ctx); err != nil {
					return fmt.Errorf("run %s: %w", name, err)
				}
				return nil
			})
		}
	}
	return p.Lead(ctx, runs...)
}

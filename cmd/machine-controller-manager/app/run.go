// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"sync/atomic"
	"time"

	machinescheme "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/scheme"
	"github.com/gardener/machine-controller-manager/pkg/handlers"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/tracing"
	autoscalingv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancerv1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

const (
	// name of the lease, the user agent and the event source. They are the stock binary's, so that
	// the two take turns.
	name = "machine-controller-manager"
	// requestTimeout is the stock binary's. It also ends watches, which are then resumed.
	requestTimeout = time.Minute
)

// process is one run of the binary: what its controllers share.
type process struct {
	options     *Options
	controllers []controller
	lease       string
	// identity is the holder of the lease while this process leads.
	identity string
	control  *rest.Config
	target   *rest.Config // nil without a target cluster
	core     kubernetes.Interface
	// past bypasses the gate. It is only for the lease, which is renewed and released while the
	// work ends.
	past     kubernetes.Interface
	recorder record.EventRecorder
	registry *prometheus.Registry
	gate     daemon.Gate
	ready    daemon.Readiness
	// clusters report whether the API servers answer; see reachability.go.
	clusters clusters
	// rights that the process can work without.
	rights *access.Rights
	caches *caches
	// keeper is set once it has been created.
	keeper atomic.Pointer[keeper]
}

// Run serves until ctx ends or the lease is lost.
func Run(ctx context.Context, o *Options) error {
	tuneMemory(os.DirFS("/"), o.EnableProfiling)
	p, err := newProcess(o)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "version", Version(), "namespace", o.Namespace, "controllers", o.Controllers,
		"controlCluster", p.control.Host, "targetCluster", apiServerHost(p.target), "endpoint", o.endpoint())
	if o.EnableProfiling && o.EnableContentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}
	events, err := p.record(ctx)
	if err != nil {
		return err
	}
	defer events.Shutdown()
	endTraces, err := o.Tracing.Start(ctx, name, Version())
	if err != nil {
		return err
	}
	defer endTraces()
	handlers.UpdateHealth(true)
	return daemon.Together(ctx, p.serveEndpoints, p.serveMetrics, p.runElection)
}

func newProcess(o *Options) (*process, error) {
	p := &process{options: o, lease: o.leaseName(), registry: prometheus.NewRegistry(), rights: access.New(clock.RealClock{})}
	var err error
	if p.controllers, err = pickControllers(o.Controllers); err != nil {
		return nil, err
	}
	if o.hasTarget() {
		if p.target, err = p.connect(o.TargetKubeconfig); err != nil {
			return nil, fmt.Errorf("target cluster: %w", err)
		}
	}
	if p.control = p.target; o.ControlKubeconfig != "" {
		if p.control, err = p.connect(o.ControlKubeconfig); err != nil {
			return nil, fmt.Errorf("control cluster: %w", err)
		}
	}
	if p.core, err = connect.Core(p.control); err != nil {
		return nil, fmt.Errorf("make control client: %w", err)
	}
	if p.clusters, err = p.newClusters(); err != nil {
		return nil, err
	}
	if p.caches, err = p.newCaches(); err != nil {
		return nil, err
	}
	p.past, err = p.leaseClient()
	return p, err
}

// connect returns a config whose writes stop when the process gives up its turn.
func (p *process) connect(kubeconfig string) (*rest.Config, error) {
	config, err := daemon.Config(kubeconfig)
	if err != nil {
		return nil, err
	}
	config = rest.AddUserAgent(p.gate.Behind(config), name)
	config.QPS = p.options.KubeAPIQPS
	config.Burst = int(p.options.KubeAPIBurst)
	config.Timeout = requestTimeout
	if p.options.Tracing.Endpoint != "" {
		config.Wrap(tracing.Transport)
	}
	return config, nil
}

func apiServerHost(config *rest.Config) string {
	if config == nil {
		return "none"
	}
	return config.Host
}

// record starts writing events. It bypasses the gate, because giving up the lease is an event, too.
func (p *process) record(ctx context.Context) (record.EventBroadcaster, error) {
	client, err := p.pastGate(name, func(config *rest.Config) {
		config.QPS, config.Burst, config.Timeout = p.options.KubeAPIQPS, int(p.options.KubeAPIBurst), requestTimeout
	})
	if err != nil {
		return nil, err
	}
	// Events concern only objects of these groups. A scheme with all of Kubernetes would be the
	// second one in the process.
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(machinescheme.AddToScheme(scheme))
	utilruntime.Must(balancerv1alpha1.AddToScheme(scheme))
	utilruntime.Must(autoscalingv1alpha1.AddToScheme(scheme))
	// It outlives ctx; Run shuts it down.
	events := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	p.recorder = events.NewRecorder(scheme, corev1.EventSource{Component: name})
	return events, nil
}

func (p *process) serveEndpoints(ctx context.Context) error {
	endpoints := daemon.Endpoints{
		Healthy:   map[string]daemon.Check{"controllers": daemon.StockHealth},
		Ready:     map[string]daemon.Check{"caches": p.ready.Check},
		Profiling: p.options.EnableProfiling,
	}
	if p.options.Metrics.Address == "" {
		endpoints.Metrics = p.metrics()
	}
	return daemon.Serve(ctx, p.options.endpoint(), endpoints)
}

// metrics of all controllers. Ours come first, because collecting machine-controller-manager's
// metrics sets some in the default registry.
func (p *process) metrics() prometheus.Gatherer {
	return prometheus.Gatherers{p.registry, prometheus.DefaultGatherer}
}

// runElection waits for the lease and leads.
func (p *process) runElection(ctx context.Context) error {
	election := p.options.LeaderElection
	if !election.LeaderElect {
		return p.runLeader(ctx)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name myself: %w", err)
	}
	p.identity = host + "_" + string(uuid.NewUUID())
	p.ready.Wait()
	return daemon.Elect(ctx, p.past, daemon.Lease{
		Namespace: p.options.Namespace, Name: p.lease, Identity: p.identity,
		Duration: election.LeaseDuration.Duration, RenewDeadline: election.RenewDeadline.Duration, RetryPeriod: election.RetryPeriod.Duration,
		Recorder: p.recorder, Renewed: p.clusters.control.WatchedUntil,
	}, p.runLeader)
}

func (p *process) leaseClient() (kubernetes.Interface, error) {
	return p.pastGate(name+"-leader-election", func(config *rest.Config) {
		config.Timeout = p.options.LeaderElection.RenewDeadline.Duration / 2
	})
}

// pastGate returns a client of the control cluster that bypasses the gate and has a rate limit of
// its own.
func (p *process) pastGate(agent string, set func(*rest.Config)) (kubernetes.Interface, error) {
	config, err := daemon.Config(cmp.Or(p.options.ControlKubeconfig, p.options.TargetKubeconfig))
	if err != nil {
		return nil, fmt.Errorf("control cluster: %w", err)
	}
	set(config)
	client, err := connect.Core(rest.AddUserAgent(config, agent))
	if err != nil {
		return nil, fmt.Errorf("make client %s: %w", agent, err)
	}
	return client, nil
}

// runLeader runs the controllers. After ctx has ended they write nothing more, and when runLeader
// returns nothing is in progress.
func (p *process) runLeader(ctx context.Context) error {
	p.ready.Lead()
	if !p.picked(mcmName) {
		p.ready.Filled() // there may never be anything that the other controllers wait for
	}
	runs := append(p.clusters.probes(), p.gate.Run, p.awaitReserves)
	for _, c := range p.controllers {
		if c.run == nil {
			continue
		}
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
	err := daemon.Together(ctx, runs...)
	if errors.Is(err, reachability.ErrRestored) {
		p.reportRestore(ctx, err)
	}
	if ctx.Err() == nil && err == nil {
		return errors.New("a controller ended by itself")
	}
	return err
}

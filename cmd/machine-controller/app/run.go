// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	goruntime "runtime"

	machinescheme "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/scheme"
	"github.com/gardener/machine-controller-manager/pkg/handlers"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/internal/daemon/stock"
)

// name of the lease, the user agent and the event source. They are the same for every provider's
// machine-controller, so that two of them never work in one namespace at the same time.
const name = "machine-controller"

// process is one run of the binary.
type process struct {
	daemon.Process
	options  *Options
	control  *rest.Config // as it was read; behind and unlimited derive the clients' configs
	target   *rest.Config // likewise; nil without a target cluster
	registry *prometheus.Registry
}

// Run serves until ctx ends or the lease is lost.
func Run(ctx context.Context, o *Options) error {
	p, err := newProcess(o)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "version", Version(), "namespace", o.Namespace,
		"controlCluster", p.control.Host, "targetCluster", apiServerHost(p.target), "endpoint", o.endpoint())
	if o.EnableProfiling && o.EnableContentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}
	events, err := p.record(ctx)
	if err != nil {
		return err
	}
	defer events.Shutdown()
	handlers.UpdateHealth(true)
	return daemon.Together(ctx, p.serveEndpoints, p.runElection)
}

func newProcess(o *Options) (*process, error) {
	p := &process{options: o, registry: prometheus.NewRegistry(), Process: daemon.Process{
		Name: name, Namespace: o.Namespace, Lease: name, Kubeconfig: cmp.Or(o.ControlKubeconfig, o.TargetKubeconfig),
	}}
	var err error
	if o.hasTarget() {
		if p.target, err = daemon.Config(o.TargetKubeconfig); err != nil {
			return nil, fmt.Errorf("target cluster: %w", err)
		}
	}
	if p.control = p.target; o.ControlKubeconfig != "" {
		if p.control, err = daemon.Config(o.ControlKubeconfig); err != nil {
			return nil, fmt.Errorf("control cluster: %w", err)
		}
	}
	return p, nil
}

// behind returns a config for clients of MCM: their writes stop with the turn of this process, and
// the flags limit their rate.
func (p *process) behind(config *rest.Config) *rest.Config {
	config = rest.AddUserAgent(p.Gate.Behind(config), name)
	config.QPS, config.Burst = p.options.KubeAPIQPS, int(p.options.KubeAPIBurst)
	return config
}

// unlimited returns a config for clients of the virtual provider, which represents any number of
// computers, each of which would have a rate limit of its own.
func (p *process) unlimited(config *rest.Config) *rest.Config {
	config = rest.AddUserAgent(p.Gate.Behind(config), "virtual-provider")
	config.QPS = -1
	return config
}

func apiServerHost(config *rest.Config) string {
	if config == nil {
		return "none"
	}
	return config.Host
}

// record starts writing events, with a rate limit of its own. It bypasses the gate and outlives
// ctx, because giving up the lease is an event, too. Run shuts it down.
func (p *process) record(ctx context.Context) (record.EventBroadcaster, error) {
	config := rest.AddUserAgent(rest.CopyConfig(p.control), name)
	config.QPS, config.Burst = p.options.KubeAPIQPS, int(p.options.KubeAPIBurst)
	client, err := connect.Core(config)
	if err != nil {
		return nil, fmt.Errorf("make event client: %w", err)
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(kubescheme.AddToScheme(scheme))
	utilruntime.Must(machinescheme.AddToScheme(scheme))
	events := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	p.Recorder = events.NewRecorder(scheme, corev1.EventSource{Component: name})
	return events, nil
}

func (p *process) serveEndpoints(ctx context.Context) error {
	return daemon.Serve(ctx, p.options.endpoint(), daemon.Endpoints{
		Healthy:   map[string]daemon.Check{"controller": stock.Health},
		Ready:     map[string]daemon.Check{"caches": p.Ready.Check},
		Metrics:   prometheus.Gatherers{prometheus.DefaultGatherer, p.registry},
		Profiling: p.options.EnableProfiling,
	})
}

// runElection waits for the lease and leads.
func (p *process) runElection(ctx context.Context) error {
	return p.Elect(ctx, stock.Election(p.options.LeaderElection), nil, p.runLeader)
}

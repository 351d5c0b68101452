// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/release"
	releaseplan "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
)

// releaseName is the name of the controller that releases reserve machines to waiting pods.
const releaseName = "release"

// ReleaseOptions are the flags of the release controller.
type ReleaseOptions struct {
	// Enabled reports whether it does anything.
	Enabled bool
	// Schedulers, Cutoff and Patience are the controller's settings of the same names.
	Schedulers []string
	Cutoff     int32
	Patience   time.Duration
}

func (o *ReleaseOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Enabled, "instant-release", true,
		"Raise the replicas of MachineDeployments with bounds immediately, up to max, for unschedulable pods that fit a reserve machine. If false, only an autoscaler raises them.")
	flags.StringSliceVar(&o.Schedulers, "release-schedulers", releaseplan.DefaultSchedulers(),
		"Names of the schedulers whose pods get reserve machines. They must place pods as kube-scheduler does. Empty means every scheduler.")
	flags.Int32Var(&o.Cutoff, "release-priority-cutoff", releaseplan.DefaultCutoff, "Pods with a lower priority get no reserve machine, as with cluster-autoscaler's --expendable-pods-priority-cutoff.")
	flags.DurationVar(&o.Patience, "release-patience", releaseplan.DefaultPatience,
		"How long a pod can wait although there is room for it. After that, it is left to the autoscaler, because it probably has a requirement that this controller does not know.")
}

func (o *ReleaseOptions) validate() error {
	if o.Patience <= 0 {
		return errors.New("--release-patience: use a duration above 0")
	}
	return nil
}

// runRelease helps waiting pods, once there may be a reserve. Without a cluster with pods, or if it
// is disabled, it waits until ctx ends.
func (p *process) runRelease(ctx context.Context) error {
	if p.target == nil || !p.options.Release.Enabled {
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
	p.caches.showingReserves() // this may be the only controller
	p.caches.startInformers(ctx)
	select {
	case <-ctx.Done():
		return nil
	case <-p.caches.needed:
	}
	core, err := connect.Core(p.target)
	if err != nil {
		return fmt.Errorf("make target client: %w", err)
	}
	events := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: core.CoreV1().Events("")})
	defer events.Shutdown()
	informers := release.Informers{Machines: p.caches.machines, Target: p.caches.target}
	c, err := release.New(ours.MachineV1alpha1(), informers, p.Recorder, p.options.Release.options(p, core, events.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: p.Name})))
	if err != nil {
		return unlessEnding(ctx, err)
	}
	p.caches.startInformers(ctx)
	c.Run(ctx)
	return nil
}

// settings returns the settings of the controller. What is similar is set by the flags of the balance
// controller.
func (o *ReleaseOptions) settings(zones *BalanceOptions) releaseplan.Settings {
	return releaseplan.Settings{
		Schedulers: o.Schedulers, Cutoff: o.Cutoff, Patience: o.Patience,
		Even: zones.Enabled, Similar: zones.Similar.Options(), PoolLabels: zones.PoolLabels,
	}
}

// onDemandRetry is how often the API server is asked for a kind that a pod has named, while it does not
// serve it.
const onDemandRetry = 10 * time.Minute

func (o *ReleaseOptions) options(p *process, core kubernetes.Interface, events record.EventRecorder) release.Options {
	return release.Options{
		Settings: o.settings(&p.options.Balance),
		Raised: func(ctx context.Context, d *v1alpha1.MachineDeployment) {
			if c := p.machineController.Load(); c != nil {
				c.ObserveUpdate(ctx, d)
			}
		},
		PodGroupsServed: func(ctx context.Context) bool {
			return connect.AwaitKind(ctx, core.Discovery(), target.PodGroupsResource, onDemandRetry, func() {})
		},
		DevicesServed: func(ctx context.Context) bool {
			return connect.AwaitKind(ctx, core.Discovery(), target.SlicesResource, onDemandRetry, func() {})
		},
		GroupRecorder: events, Pods: core.CoreV1(),
		Control: p.clusters.control, Target: p.clusters.target,
		Registerer: p.registry,
	}
}

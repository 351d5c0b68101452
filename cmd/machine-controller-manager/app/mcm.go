// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machinefactory "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	mcm "github.com/gardener/machine-controller-manager/pkg/controller"
	"github.com/prometheus/client_golang/prometheus"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

// apiRetry is how often the API server is asked for the machine API while it does not serve it.
const apiRetry = 2 * time.Second

// runMCM runs machine-controller-manager's own controllers (MachineDeployment, MachineSet, safety),
// unmodified, behind the lens.
//
// It returns as soon as ctx ends and leaves their workers behind, because they cannot be stopped:
// the library shuts its queues down only after its workers have ended, and those wait for their
// queues. Their remaining requests are refused, by the lens for machine objects and by the gate for
// everything else.
func (p *process) runMCM(ctx context.Context) error {
	if p.options.OnePlan {
		return p.runOnePlan(ctx)
	}
	machine, err := machines.MCM(p.control)
	if err != nil {
		return fmt.Errorf("make machine client: %w", err)
	}
	if !connect.AwaitAPI(ctx, machine.Discovery(), v1alpha1.SchemeGroupVersion, apiRetry) {
		return nil
	}
	var taint *taintController
	var machines machineinformers.Interface
	var options view.Options
	reading := lens.Options{Registerer: p.registry}
	if p.picked(taintName) {
		options = viewOptions(&taint, &machines)
		reading.First = func(m *v1alpha1.Machine) bool { return taint.controller.InReserve(m) }
	}
	client := lens.New(ctx, view.New(ctx, machine, options), reading)
	factory := machinefactory.NewFilteredSharedInformerFactory(client, p.options.MinResyncPeriod.Duration, p.options.Namespace, nil)
	if machines, err = client.Bind(factory.Machine().V1alpha1()); err != nil {
		return err
	}
	if p.picked(taintName) {
		if taint, err = p.newTaintController(machines); err != nil {
			return err
		}
		p.taint.Store(taint)
	}
	target, nodes, err := p.targetCluster()
	if err != nil {
		return err
	}
	controllers, err := mcm.NewController(p.options.Namespace, client.MachineV1alpha1(), p.core, target, nodes,
		machines.Machines(), machines.MachineSets(), machines.MachineDeployments(),
		p.Recorder, p.options.SafetyOptions, p.options.AutoscalerScaleDownAnnotationDuringRollout)
	if err != nil {
		return fmt.Errorf("make controllers: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	p.caches.startInformers(ctx)
	if taint != nil && !taint.filled(ctx) || !p.filled(ctx, machines) {
		return nil
	}
	p.Ready.Filled()
	if taint == nil {
		return p.runWorkers(ctx, controllers)
	}
	return daemon.Together(ctx,
		func(ctx context.Context) error { return p.runWorkers(ctx, controllers) },
		func(ctx context.Context) error { taint.controller.Run(ctx); return nil },
		func(ctx context.Context) error {
			taint.accounting.follow(ctx, taint.controller.ResyncAll)
			<-ctx.Done()
			return nil
		})
}

// runWorkers runs the workers of controllers until ctx ends.
func (p *process) runWorkers(ctx context.Context, controllers mcm.Controller) error {
	ended := make(chan struct{})
	register(p.registry, ended, func() {
		defer close(ended)
		controllers.Run(int(p.options.ConcurrentNodeSyncs), ctx.Done())
	})
	klog.FromContext(ctx).Info("Working")
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return errors.New("the controllers have ended by themselves")
	}
}

// targetCluster is the cluster of the Nodes, which are read from the informers; client and
// informers are nil if there is none.
func (p *process) targetCluster() (kubernetes.Interface, coreinformers.SharedInformerFactory, error) {
	if p.target == nil {
		return nil, nil, nil
	}
	client, err := connect.Core(p.target)
	if err != nil {
		return nil, nil, fmt.Errorf("make target client: %w", err)
	}
	return lens.NodesFromStore(client, p.caches.target.Nodes())
}

// filled waits for the first complete lists.
func (p *process) filled(ctx context.Context, machines machineinformers.Interface) bool {
	wanted := []cache.DoneChecker{
		machines.Machines().Informer().HasSyncedChecker(),
		machines.MachineSets().Informer().HasSyncedChecker(),
		machines.MachineDeployments().Informer().HasSyncedChecker(),
	}
	if p.target != nil {
		wanted = append(wanted, p.caches.target.Nodes().HasSyncedChecker())
	}
	return cache.WaitFor(ctx, "the first lists", wanted...)
}

// registering guards prometheus.DefaultRegisterer, which is the only way to redirect
// machine-controller-manager's metrics.
var registering sync.Mutex

// register starts run, which registers its metrics with prometheus.DefaultRegisterer some time
// later, and redirects them to r. It returns when they have arrived, or run has ended.
func register(r prometheus.Registerer, ended <-chan struct{}, run func()) {
	registering.Lock()
	defer registering.Unlock()
	usual := prometheus.DefaultRegisterer
	defer func() { prometheus.DefaultRegisterer = usual }()
	a := &arrival{Registerer: r, here: make(chan struct{})}
	prometheus.DefaultRegisterer = a
	go run()
	select {
	case <-a.here:
	case <-ended:
	}
}

// arrival is a registerer that reports when something has been registered.
type arrival struct {
	prometheus.Registerer
	once sync.Once
	here chan struct{}
}

func (a *arrival) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		a.Registerer.MustRegister(survivor{c})
	}
	a.once.Do(func() { close(a.here) })
}

// survivor keeps a scrape from ending the process: machine-controller-manager's collector panics if
// a MachineDeployment has the strategy RollingUpdate without its parameters.
type survivor struct{ prometheus.Collector }

func (s survivor) Collect(into chan<- prometheus.Metric) {
	defer func() {
		if r := recover(); r != nil {
			utilruntime.HandleError(fmt.Errorf("collect metrics: %v", r))
		}
	}()
	s.Collector.Collect(into)
}

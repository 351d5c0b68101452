// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/internal/tracing"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Clients of the two clusters.
type Clients struct {
	// Machine is a client of the control cluster, without the lens.
	Machine machineclient.MachineV1alpha1Interface
	// Target is a client of the target cluster; nil if there is none.
	Target kubernetes.Interface
}

// Informers of the two clusters, which other controllers share.
type Informers struct {
	// Machine shows the control cluster as it is. Seen shows what machine-controller-manager's
	// controllers in this process have seen of it, and has not been started.
	Machine *stores.Informers
	Seen    machineinformers.Interface
	// Target is nil if there is no target cluster.
	Target *target.Informers
}

// Options of a Controller.
type Options struct {
	plan.Settings
	// Workers is the number of concurrent syncs; 2 unless set.
	Workers int
	// Cluster reports whether the target cluster responds. If nil, it is assumed to respond.
	Cluster *reachability.Cluster
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer
}

// Defaults of the settings.
const (
	DefaultSurplusPatience = 10 * time.Minute
	DefaultBootPatience    = 15 * time.Minute
)

// deferDelay is how long other writes are deferred after machines were released: more of them may
// be needed meanwhile.
const deferDelay = 300 * time.Millisecond

// reportDelay is how long a status stays before it is written again. While machines boot and leave,
// it would otherwise change several times a second, and machine-controller-manager reads the
// MachineDeployment anew each time.
const reportDelay = time.Second

// Controller keeps reserves.
type Controller struct {
	clients  Clients
	recorder record.EventRecorder
	clock    clock.WithTicker
	cluster  *reachability.Cluster
	settings plan.Settings
	metrics  *metrics

	loop   *loop.Loop
	stores caches
	latest *latest
	states *states
	guards *guards
	// filled are done when all caches are complete, ownStores when those are that ReserveMark and
	// guards read.
	filled, ownStores []cache.DoneChecker
	// fieldPruned reports whether the API server has dropped spec.excessReplicas from a write of
	// this controller, and shows it nowhere; witnessPruned, the same of spec.reserveWitness;
	// numbersPruned, whether it dropped the numbers of machines from the last status that had any;
	// selectorPruned, the same of the selector.
	fieldPruned, witnessPruned, numbersPruned, selectorPruned atomic.Bool
}

// New returns a controller. The caller must call Run. Start the informers after New.
func New(clients Clients, informers Informers, recorder record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = 2
	}
	if o.SurplusPatience == 0 {
		o.SurplusPatience = DefaultSurplusPatience
	}
	if len(o.Effects) == 0 {
		o.Effects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule}
	}
	c := &Controller{clients: clients, recorder: recorder, clock: o.Clock, cluster: o.Cluster, settings: o.Settings, states: newStates()}
	c.loop = loop.New("machinetaint", c.sync, loop.Options{Workers: o.Workers, Clock: o.Clock, Panicked: c.panicked})
	if err := c.attach(informers); err != nil {
		c.loop.Discard()
		return nil, fmt.Errorf("attach to informers: %w", err)
	}
	c.metrics = newMetrics(o.Registerer, &c.stores)
	o.Cluster.Subscribe(c.ResyncAll)
	return c, nil
}

// ObserveUpdate takes a MachineDeployment whose replicas another controller of this process has
// raised, so that machines are released before a watch shows that.
func (c *Controller) ObserveUpdate(ctx context.Context, d *v1alpha1.MachineDeployment) {
	c.latest.external.Record(d)
	c.loop.AddFor(ctx, keyOf(d))
	c.deploymentChanged(nil, d)
}

// OwnStores are done when the controller's stores are complete, except those of pods. ReserveMark
// and Guards read these stores, and cannot decide before that.
func (c *Controller) OwnStores() []cache.DoneChecker { return c.ownStores }

// Filled are done when the caches are complete.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends, and returns after everything that it started has ended.
func (c *Controller) Run(ctx context.Context) { c.loop.Run(ctx, c.filled...) }

func (c *Controller) sync(ctx context.Context, key string) (time.Duration, error) {
	v, p, ok := c.decide(ctx, key)
	if !ok {
		return 0, nil
	}
	if p.Idle {
		c.states.forgetPlans(key)
		return p.Again, nil
	}
	if left := c.states.deferFor(key, c.clock.Now()); left > 0 && canWait(p) {
		return left, nil
	}
	d, err := c.applyPlan(ctx, v, p)
	c.rememberPlan(d, p, err)
	switch {
	case err != nil:
		return 0, err
	case releasesMachines(p):
		c.states.noteFreed(key, c.clock.Now())
		return deferDelay, nil
	}
	wait, err := c.report(ctx, d, p)
	return requeue.Sooner(c.nextCheck(v, p), wait), err
}

// canWait reports whether the plan only reports what has been done.
func canWait(p plan.Plan) bool {
	acts := func(c plan.MachineChange) bool { return c.Mark != plan.Keep || c.Priority != 0 }
	return !slices.ContainsFunc(p.Machines, acts) && len(p.Nodes) == 0 && p.Deployment.Replicas == 0
}

// decide observes a MachineDeployment and plans for it, if there is one.
func (c *Controller) decide(ctx context.Context, key string) (v plan.View, p plan.Plan, ok bool) {
	defer tracing.Step(ctx, "decide")()
	if v, ok = c.observe(key); ok {
		p = plan.New(v)
	}
	return v, p, ok
}

// rememberPlan keeps the memory of a plan that was carried out. The memory belongs to the applied
// excess. If that was reduced, or may have been, because of a machine that cannot be created, it must
// not be reduced again for the same machine, whatever else failed.
func (c *Controller) rememberPlan(d *v1alpha1.MachineDeployment, p plan.Plan, err error) {
	if is := pool.AppliedOf(d, d.Spec.Replicas); is.Excess == p.Rule.Applied.Excess && is.Absorbed == 0 || errors.Is(err, errUnknown) {
		c.states.remember(keyOf(d), p.Memory)
	}
}

// nextCheck returns the time until the next sync without an event. It is short while caches have
// yet to catch up with a cluster that responds again. Nor does an event show that a write of a
// MachineSet whose outcome is unknown counts no more.
func (c *Controller) nextCheck(v plan.View, p plan.Plan) time.Duration {
	if v.Unreachable != "" && !c.cluster.Silent() {
		return reachability.Recheck
	}
	return requeue.Sooner(p.Again, c.states.doubtFor(keyOf(v.Deployment), v.Now))
}

func (c *Controller) panicked(key string, value any) {
	if d, ok := c.stores.deployment(key); ok {
		c.recorder.Eventf(v1alpha1.ReferenceTo(d), corev1.EventTypeWarning, "ReserveUnattended", "Controller panicked: %v. Retrying in 5m; please report this bug", value)
	}
}

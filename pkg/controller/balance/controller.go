// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// How long events are gathered into one sync: those of machines, and those of the target cluster. In
// a large cluster, they are gathered for restFactor times as long as the last decision took, but no
// longer than gatherLongest: decisions of up to 50 ms then take at most a twentieth of a processor.
const (
	gatherMachines = 50 * time.Millisecond
	gatherPods     = 500 * time.Millisecond
	gatherLongest  = time.Second
	restFactor     = 19
)

// Clients reach the control cluster.
type Clients struct {
	Machines machineclient.MachineV1alpha1Interface
	// Garden reads Gardener's Worker and Cluster if Discovery finds these kinds. It is nil if there
	// is never a Gardener.
	Garden    dynamic.Interface
	Discovery discovery.ServerResourcesInterface
}

// Informers of the two clusters. Target is nil if there is no target cluster: then nothing is known
// of pods, and replicas are left alone.
type Informers struct {
	Machines *stores.Informers
	Target   *target.Informers
}

// Options of a Controller.
type Options struct {
	Namespace string
	Settings  plan.Settings
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Control and Target report whether the clusters answer; nil if that is not known.
	Control, Target *reachability.Cluster
	// Rights that the process may lack. Unless set, the controller has its own.
	Rights *access.Rights
	// WorkersRead is called once Gardener's Workers have been read, whose bounds concern all
	// MachineDeployments; optional.
	WorkersRead func()
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer
}

// Controller keeps the MachineDeployments of a namespace together.
type Controller struct {
	clients  Clients
	options  Options
	recorder record.EventRecorder
	clock    clock.WithTicker
	metrics  *metrics
	loop     *loop.Loop
	written  *written.Cache[*v1alpha1.MachineDeployment]
	garden   *garden
	stores   caches
	filled   []cache.DoneChecker
	// devicesAwaited reports whether the devices of some classes will soon be known.
	devicesAwaited func(classes []string) bool
	// moving reports whether some member is balanced or has a move under way, so that pods matter.
	// concerned reports whether machines matter, also for shares and bounds of a pool.
	moving, concerned atomic.Bool
	// took is how long the last decision took, as a time.Duration.
	took atomic.Int64

	// Only sync uses the rest.
	memory    plan.Memory
	templates templates
}

// New returns a controller. The informers may run already. Start them after New, and then call Run,
// always.
func New(clients Clients, informers Informers, recorder record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Rights == nil {
		o.Rights = access.New(o.Clock)
	}
	if o.WorkersRead == nil {
		o.WorkersRead = func() {}
	}
	if informers.Target == nil {
		o.Settings.Enabled = false
	}
	c := &Controller{clients: clients, options: o, recorder: recorder, clock: o.Clock, metrics: newMetrics(o.Registerer)}
	c.devicesAwaited = func([]string) bool { return false }
	c.templates = newTemplates(o.Clock.Now())
	c.garden = newGarden(clients, o, func() { c.loop.Add(o.Namespace) })
	// One worker: all MachineDeployments of the namespace are one key.
	c.loop = loop.New("balance", c.sync, loop.Options{Workers: 1, Clock: o.Clock})
	if err := c.attach(informers); err != nil {
		c.loop.Discard()
		return nil, err
	}
	for _, cluster := range []*reachability.Cluster{o.Control, o.Target} {
		cluster.Subscribe(func() { c.loop.Add(o.Namespace) })
	}
	o.Rights.Subscribe(func() { c.loop.Add(o.Namespace) })
	return c, nil
}

// attach reads and listens to the informers.
func (c *Controller) attach(i Informers) error {
	var errs []error
	listen := func(informer cache.SharedIndexInformer, changed func(was, is any)) cache.Indexer {
		_, err := informer.AddEventHandler(handlers.OnChange(changed))
		errs = append(errs, err)
		c.filled = append(c.filled, informer.HasSyncedChecker())
		return informer.GetIndexer()
	}
	s := &c.stores
	s.deployments = listen(i.Machines.Deployments(), c.deploymentChanged)
	c.written = written.NewCache[*v1alpha1.MachineDeployment](s.deployments, c.clock)
	s.sets, s.machines, s.classes = listen(i.Machines.Sets(), c.machineChanged), listen(i.Machines.Machines(), c.machineChanged), listen(i.Machines.Classes(), c.machineChanged)
	if i.Target != nil {
		s.nodes, s.pods = listen(i.Target.Nodes(), c.nodeChanged), listen(i.Target.Pods(), c.podChanged)
		listen(i.Target.Claims(), c.podChanged)
		listen(i.Target.Volumes(), c.podChanged)
		s.storage = i.Target.Storage()
		s.devices, c.devicesAwaited = i.Target.DeviceCounts(), i.Target.DeviceCounts().Awaited
		i.Target.DeviceCounts().Subscribe(func(string) { c.machineChanged(nil, nil) })
		budgets := i.Target.Budgets()
		_, err := budgets.AddEventHandler(handlers.OnChange(c.podChanged))
		errs = append(errs, err)
		s.budgets, s.budgetsUnknown = budgets.GetIndexer(), i.Target.BudgetsUnknown
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("attach to informers: %w", err)
	}
	return nil
}

// deploymentChanged causes a sync at once, unless only the status of a MachineDeployment has changed.
// A sync reads all MachineDeployments, and machine-controller-manager writes their status often.
func (c *Controller) deploymentChanged(was, is any) {
	before, _ := was.(*v1alpha1.MachineDeployment)
	after, _ := is.(*v1alpha1.MachineDeployment)
	if pool.OnlyStatusDiffers(before, after) {
		c.gather(gatherMachines)
		return
	}
	c.loop.Add(c.options.Namespace)
}

// gather causes a sync after some time, for all events until then.
func (c *Controller) gather(least time.Duration) {
	rest := restFactor * time.Duration(c.took.Load())
	c.loop.AddAfter(c.options.Namespace, max(least, min(rest, gatherLongest)))
}

func (c *Controller) machineChanged(_, _ any) {
	if c.concerned.Load() {
		c.gather(gatherMachines)
	}
}

// nodeChanged causes a sync if pods matter, or if machines do and a Node shows something else of what
// they offer, or begins or ceases to count as not ready.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	if c.moving.Load() || c.concerned.Load() && !(sameOffer(before, after) && isUnready(before) == isUnready(after)) {
		c.gather(gatherPods)
	}
}

func isUnready(n *corev1.Node) bool { return n != nil && pool.Unready(n) }

func (c *Controller) podChanged(_, _ any) {
	if c.moving.Load() {
		c.gather(gatherPods)
	}
}

// Filled are done when the shared caches are complete.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends, and returns after everything that it started has ended.
func (c *Controller) Run(ctx context.Context) {
	defer c.garden.wait()
	c.garden.start(ctx)
	c.loop.Run(ctx, c.filled...)
}

func (c *Controller) sync(ctx context.Context, _ string) (time.Duration, error) {
	if err := c.options.Control.Err(c.stores.deployments, c.stores.machines); err != nil {
		klog.FromContext(ctx).V(2).Info("Deciding nothing", "because", err)
		return reachability.Recheck, nil
	}
	begun := c.clock.Now()
	v, current := c.observe()
	if !current {
		return 0, nil // an event brings the cache up to date, and the next sync
	}
	if slices.ContainsFunc(v.Members, func(m plan.Member) bool { return c.devicesAwaited(pool.DeviceClasses(m.Object)) }) {
		return reachability.Recheck, nil
	}
	p := plan.New(v)
	c.took.Store(int64(c.clock.Since(begun)))
	c.memory = p.Memory
	klog.FromContext(ctx).V(4).Info("Planned", "members", len(v.Members), "skews", p.Skews, "again", p.Again)
	if v.Unreachable != "" && c.stores.nodes != nil && !c.options.Target.Silent() {
		p.Again = reachability.Recheck // it answers again, and caches are behind
	}
	return p.Again, c.apply(ctx, v, p)
}

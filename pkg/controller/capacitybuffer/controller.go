// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	bufferclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// everything is the only key: what one buffer gets can depend on all others.
	everything = "all"
	// gather is how long events are gathered into one sync. restFactor is the pause between two
	// syncs, as a multiple of the duration of the last one.
	gather, restFactor = time.Second, 4
)

// Clients reach the two clusters.
type Clients struct {
	Buffers  bufferclient.CapacityBuffersGetter
	Reserves autoscalingclient.ReservesGetter
}

// Informers of the two clusters. The informer of buffers must have the transform [StripBuffer], and
// Shapes come from [NewShapes].
type Informers struct {
	Buffers, Reserves cache.SharedIndexInformer
	Machines          *stores.Informers
	Target            *target.Informers
	Shapes            Shapes
}

// Options of a Controller.
type Options struct {
	// Namespace of the MachineDeployments and Reserves.
	Namespace string
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// FillOnce serves buffers that fill once.
	FillOnce bool
	// Scales reads the scale subresources of workloads of other kinds; nil reads none.
	Scales *ScaleReader
	// Control and Target report whether a cluster answers; nil means that it always does.
	Control, Target *reachability.Cluster
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer
}

// Controller keeps room for the chunks of CapacityBuffers.
type Controller struct {
	clients Clients
	options Options
	metrics *metrics
	loop    *loop.Loop
	filled  []cache.DoneChecker
	// took is the duration of the last sync.
	took atomic.Int64
	// free is how much free room buffers had lately. Only syncs use it.
	free map[string]plan.Free
	// podsMatter reports whether a buffer depends on the pods that have a node, or on the room beside them.
	podsMatter atomic.Bool
	// searches are those of the last sync for newest pods, by namespace.
	searches atomic.Pointer[map[string][]*search]

	buffers, reserves, deployments, daemons, pods cache.Indexer
	// scales are those of workloads of other kinds.
	scales scaleCache
	// shapes contain what buffers refer to, and ResourceQuotas, by kind.
	shapes Shapes
	kinds  map[string]cache.Indexer
	// lacks returns the missing right to read a kind; empty if it is not missing.
	lacks  func(kind string) string
	source stores.Source
	// These contain the API server's answers to our writes, so that no decision is based on older
	// objects.
	statuses *written.Cache[*v1beta1.CapacityBuffer]
	written  *written.Cache[*autoscaling.Reserve]
}

// New returns a controller. The caller must call Run. Start the informers after New.
func New(clients Clients, informers Informers, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{clients: clients, options: o, shapes: informers.Shapes, lacks: informers.Shapes.missingRight, kinds: map[string]cache.Indexer{}, scales: newScaleCache()}
	c.loop = loop.New("capacitybuffer", c.sync, loop.Options{Clock: o.Clock})
	if err := c.attach(informers); err != nil {
		c.loop.Discard()
		return nil, fmt.Errorf("attach to informers: %w", err)
	}
	c.metrics = newMetrics(o.Registerer, c.buffers)
	o.Control.Subscribe(c.resyncAll)
	o.Target.Subscribe(c.resyncAll)
	return c, nil
}

// attach reads the informers, and listens to those whose changes matter immediately.
func (c *Controller) attach(i Informers) error {
	read := func(informer cache.SharedIndexInformer) cache.Indexer {
		c.filled = append(c.filled, informer.HasSyncedChecker())
		return informer.GetIndexer()
	}
	var errs []error
	listen := func(informer cache.SharedIndexInformer) {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { c.resyncAll() }, DeleteFunc: func(any) { c.resyncAll() },
			UpdateFunc: func(was, is any) {
				if differ(was, is) {
					c.resyncAll()
				}
			},
		})
		errs = append(errs, err)
	}
	watch := func(informer cache.SharedIndexInformer) cache.Indexer {
		listen(informer)
		return read(informer)
	}
	c.buffers, c.reserves, c.deployments = watch(i.Buffers), watch(i.Reserves), watch(i.Machines.Deployments())
	for kind, informer := range i.Shapes.byKind {
		c.kinds[kind] = informer.GetIndexer()
		listen(informer)
	}
	i.Shapes.rights.Subscribe(c.resyncAll)
	c.source.Kinds = stores.Kinds{
		Sets: read(i.Machines.Sets()), Machines: read(i.Machines.Machines()), Classes: watch(i.Machines.Classes()), Nodes: read(i.Target.Nodes()),
	}
	resync := func(any) { c.resyncAll() }
	errs = append(errs, stores.OnSpares(i.Machines.Machines(), resync), stores.OnSets(i.Machines.Sets(), resync))
	c.daemons = read(i.Target.DaemonSets())
	c.pods = read(i.Target.Pods())
	for _, informer := range []cache.SharedIndexInformer{i.Target.Pods(), i.Target.Nodes(), i.Machines.Machines()} {
		_, err := informer.AddEventHandler(handlers.OnChange(c.roomChanged))
		errs = append(errs, err)
	}
	_, err := i.Target.Pods().AddEventHandler(handlers.OnChange(c.shapeChanged))
	errs = append(errs, err)
	c.statuses = written.NewCache[*v1beta1.CapacityBuffer](c.buffers, c.options.Clock)
	c.written = written.NewCache[*autoscaling.Reserve](c.reserves, c.options.Clock)
	return errors.Join(errs...)
}

// shapeChanged queues a sync if a pod that shows the shape of chunks comes or goes.
func (c *Controller) shapeChanged(was, is any) {
	if c.showsShape(was) != c.showsShape(is) {
		c.resyncAll()
	}
}

// roomChanged queues a sync if a pod takes room on a machine or leaves some, or a machine begins or ends
// to accept pods, and a buffer depends on that.
func (c *Controller) roomChanged(was, is any) {
	if c.podsMatter.Load() && !equality.Semantic.DeepEqual(roomOf(was), roomOf(is)) {
		c.resyncAll()
	}
}

// roomOf returns what decides about the room on a machine; nil if the object takes and offers none. Which
// machines are in reserve, [stores.OnSpares] watches.
func roomOf(item any) any {
	switch o := item.(type) {
	case *corev1.Pod:
		if node := placeOf(o); node != "" {
			return taken{node, fit.Requests(o)}
		}
	case *corev1.Node:
		if pool.NodeReady(o) && !o.Spec.Unschedulable {
			return o.Spec.Taints
		}
	case *mcm.Machine:
		return pool.Ready(o.Status.CurrentStatus.Phase) && !pool.BeingDeleted(o) && !pool.Condemned(o)
	}
	return nil
}

// taken is the room that a pod takes on a node. Its requests may change while it runs.
type taken struct {
	Node     string
	Requests corev1.ResourceList
}

// differ reports whether an update of a cached object matters.
func differ(was, is any) bool {
	switch a := was.(type) {
	case *workload:
		b, same := is.(*workload)
		return !same || a.UID != b.UID || !reflect.DeepEqual(a.Workload, b.Workload)
	case *corev1.ResourceQuota:
		b, same := is.(*corev1.ResourceQuota)
		return !same || !reflect.DeepEqual(a.Spec, b.Spec) || !reflect.DeepEqual(a.Status, b.Status)
	}
	return true
}

// resyncAll queues a sync, later if the last one took long: however often users of the target
// cluster change something, the controller works only part of the time.
func (c *Controller) resyncAll() {
	c.loop.AddAfter(everything, max(gather, restFactor*time.Duration(c.took.Load())))
}

// Filled are done when the caches are complete.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	filled := slices.Clone(c.filled)
	for kind, informer := range c.shapes.byKind {
		filled = append(filled, read{informer.HasSyncedChecker(), ctx, c.shapes, kind})
	}
	var polling sync.WaitGroup
	defer polling.Wait()
	if c.options.Scales != nil {
		filled = append(filled, &c.scales)
		polling.Go(func() { c.pollScales(ctx) })
	}
	c.loop.Run(ctx, filled...)
}

func (c *Controller) sync(ctx context.Context, _ string) (time.Duration, error) {
	err := errors.Join(c.options.Control.Err(c.reserves, c.deployments), c.options.Target.Err(c.buffers, c.source.Kinds.Nodes))
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Deciding nothing", "because", err)
		return reachability.Recheck, nil
	}
	began := c.options.Clock.Now()
	p := plan.New(c.observe())
	c.took.Store(int64(c.options.Clock.Since(began)))
	c.free = p.Free
	return p.Again, errors.Join(c.apply(ctx, p), c.report(ctx, p))
}

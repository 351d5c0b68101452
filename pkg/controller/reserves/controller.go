// SPDX-License-Identifier: Apache-2.0

package reserves

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	autoscalinginformers "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// gather is how long the events of a namespace are gathered into one sync.
const gather = 20 * time.Millisecond

// Clients reach the control cluster.
type Clients struct {
	Reserves autoscalingclient.ReservesGetter
	Machines machineclient.MachineDeploymentsGetter
}

// Informers of the two clusters. Target is nil if there is no target cluster.
type Informers struct {
	Reserves autoscalinginformers.ReserveInformer
	Machines *stores.Informers
	Target   *target.Informers
}

// Options of a Controller.
type Options struct {
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Cluster reports whether the control cluster answers; nil means that it always does.
	Cluster *reachability.Cluster
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer
}

// Controller spreads the machines of Reserves.
type Controller struct {
	clients  Clients
	recorder record.EventRecorder
	clock    clock.WithTicker
	cluster  *reachability.Cluster
	metrics  *metrics

	loop                  *loop.Loop
	reserves, deployments cache.Indexer
	source                stores.Source
	devices               *target.DeviceCounts
	filled                []cache.DoneChecker
	// statuses and written contain the API server's answers to our writes, so that no decision is
	// based on older objects.
	statuses *written.Cache[*v1alpha1.Reserve]
	written  *written.Cache[*machine.MachineDeployment]
}

// New returns a controller. The caller must call Run. Start the informers after New.
func New(clients Clients, informers Informers, recorder record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{clients: clients, recorder: recorder, clock: o.Clock, cluster: o.Cluster}
	c.loop = loop.New("reserves", c.sync, loop.Options{Clock: o.Clock, Panicked: c.panicked})
	if err := c.attach(informers); err != nil {
		c.loop.Discard()
		return nil, fmt.Errorf("attach to informers: %w", err)
	}
	c.metrics = newMetrics(o.Registerer, c.reserves)
	c.cluster.Subscribe(c.lookAtAll)
	return c, nil
}

// attach reads and listens to the informers.
func (c *Controller) attach(i Informers) error {
	read := func(informer cache.SharedIndexInformer) cache.Indexer {
		c.filled = append(c.filled, informer.HasSyncedChecker())
		return informer.GetIndexer()
	}
	c.reserves, c.deployments = read(i.Reserves.Informer()), read(i.Machines.Deployments())
	c.source.Kinds = stores.Kinds{Sets: read(i.Machines.Sets()), Machines: read(i.Machines.Machines()), Classes: read(i.Machines.Classes())}
	if i.Target != nil {
		c.source.Kinds.Nodes = read(i.Target.Nodes())
		c.devices = i.Target.DeviceCounts()
		c.source.Counter = c.devices
		c.devices.Subscribe(c.devicesChanged)
	}
	c.statuses = written.NewCache[*v1alpha1.Reserve](c.reserves, c.clock)
	c.written = written.NewCache[*machine.MachineDeployment](c.deployments, c.clock)
	var errs []error
	for _, informer := range []cache.SharedIndexInformer{i.Reserves.Informer(), i.Machines.Deployments(), i.Machines.Classes()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: c.changed, UpdateFunc: func(_, is any) { c.changed(is) }, DeleteFunc: c.changed,
		})
		errs = append(errs, err)
	}
	errs = append(errs, stores.OnSpares(i.Machines.Machines(), c.changed), stores.OnSets(i.Machines.Sets(), c.changed))
	if i.Target != nil {
		_, err := i.Target.Nodes().AddEventHandler(handlers.OnChange(c.nodeChanged))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// changed queues a namespace.
func (c *Controller) changed(item any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(item)
	if err != nil {
		return // not an object
	}
	namespace, _, _ := cache.SplitMetaNamespaceKey(key)
	c.loop.AddAfter(namespace, gather)
}

// nodeChanged queues the namespaces of a Node's machines if the Node offers something else: what a
// Reserve requests in resources depends on it.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	if before != nil && after != nil && pool.NodeReady(before) == pool.NodeReady(after) &&
		equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) {
		return
	}
	if node := cmp.Or(after, before); node != nil {
		c.devicesChanged(node.Name)
	}
}

// devicesChanged queues the namespaces of the machines of a Node, or all if it has no name.
func (c *Controller) devicesChanged(node string) {
	if node == "" {
		c.lookAtAll()
		return
	}
	for _, m := range stores.Indexed[*mcm.Machine](c.source.Kinds.Machines, stores.ByNode, node) {
		c.changed(m)
	}
}

func (c *Controller) lookAtAll() {
	for _, store := range []cache.Indexer{c.reserves, c.deployments} {
		for _, item := range store.List() {
			c.changed(item)
		}
	}
}

// Filled returns the checks that the caches are complete.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) { c.loop.Run(ctx, c.filled...) }

// sync decides about one namespace, because what one Reserve requests can depend on all objects in
// it.
func (c *Controller) sync(ctx context.Context, namespace string) (time.Duration, error) {
	if err := c.cluster.Err(c.reserves, c.deployments); err != nil {
		klog.FromContext(ctx).V(2).Info("Deciding nothing", "because", err)
		return reachability.Recheck, nil
	}
	v := c.observe(namespace)
	if c.devices.Awaited(v.DeviceClasses()) {
		return reachability.Recheck, nil
	}
	p := plan.New(v)
	return p.Again, errors.Join(c.apply(ctx, p), c.report(ctx, p))
}

func (c *Controller) panicked(namespace string, value any) {
	for _, r := range c.reservesIn(namespace) {
		c.recorder.Eventf(r, corev1.EventTypeWarning, "UnableToSpread", "Controller panicked: %v. Retrying in 1m; please report this bug", value)
	}
}

// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	autoscalinginformers "k8s.io/client-go/informers/autoscaling/v2"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	balancerclient "github.com/evenkeel/evenkeel/pkg/client/clientset/workloads/typed/balancer/v1alpha1"
	balancerinformers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// gather is how long the events of a workload's pods are gathered into one sync.
const gather = 20 * time.Millisecond

// Clients reach the cluster of the Balancers and their targets.
type Clients struct {
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	Balancers balancerclient.BalancersGetter
}

// Informers are shared ones that have not been started.
type Informers struct {
	Balancers   balancerinformers.BalancerInformer
	Pods        coreinformers.PodInformer
	Autoscalers autoscalinginformers.HorizontalPodAutoscalerInformer
	// Nodes report which pods are out of reach. Without the right to list them, pods on Nodes that are
	// not ready count as running until they are evicted.
	Nodes coreinformers.NodeInformer
}

// Options of a Controller.
type Options struct {
	// Namespace is the only one to look at; empty means all.
	Namespace string
	// Kinds may be scaled, and no others; DefaultKinds unless set.
	Kinds []schema.GroupKind
	// Workers sync at the same time; 2 unless set.
	Workers int
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Cluster reports whether the API server answers; nil means that it always does.
	Cluster *reachability.Cluster
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer
}

// DefaultKinds may be scaled unless others are set.
var DefaultKinds = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"},
	{Kind: "ReplicationController"}, {Group: machineGroup, Kind: "MachineDeployment"}, {Group: machineGroup, Kind: "MachineSet"},
}

// Controller distributes the replicas of Balancers.
type Controller struct {
	clients  Clients
	recorder record.EventRecorder
	clock    clock.WithTicker
	allowed  map[schema.GroupKind]bool
	metrics  *metrics
	cluster  *reachability.Cluster

	loop      *loop.Loop
	written   *written.Cache[*v1alpha1.Balancer]
	kinds     kinds
	watches   watches
	scales    scales
	refusals  refusals
	interests interests

	balancers, pods, autoscalers, nodes cache.Indexer
	nodesKnown                          *nodesKnown
	filled                              []cache.DoneChecker
}

// New returns a controller. The caller must call Run. Start the informers after New.
func New(clients Clients, informers Informers, recorder record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = 2
	}
	if o.Kinds == nil {
		o.Kinds = DefaultKinds
	}
	c := &Controller{clients: clients, recorder: recorder, clock: o.Clock, cluster: o.Cluster, allowed: map[schema.GroupKind]bool{}}
	for _, kind := range o.Kinds {
		c.allowed[kind] = true
	}
	c.kinds = kinds{discovery: clients.Discovery, clock: o.Clock}
	c.watches = watches{
		client: clients.Dynamic, namespace: o.Namespace, clock: o.Clock, caches: map[schema.GroupVersionResource]*kindCache{},
		changed: c.workloadChanged, gone: c.forget, filled: c.enqueueAll,
	}
	if err := c.attach(informers); err != nil {
		return nil, err
	}
	c.metrics = newMetrics(o.Registerer, c.balancers)
	c.loop = loop.New("balancer", c.sync, loop.Options{Workers: o.Workers, Clock: o.Clock, Panicked: c.panicked})
	return c, nil
}

// attach reads and listens to the shared informers.
func (c *Controller) attach(i Informers) error {
	b, p, a, n := i.Balancers.Informer(), i.Pods.Informer(), i.Autoscalers.Informer(), i.Nodes.Informer()
	_, onBalancer := b.AddEventHandler(handlers.OnVersions(c.balancerChanged))
	_, onPod := p.AddEventHandler(handlers.OnVersions(c.podChanged))
	_, onAutoscaler := a.AddEventHandler(handlers.OnVersions(c.autoscalerChanged))
	_, onNode := n.AddEventHandler(handlers.OnChange(c.nodeChanged))
	c.nodesKnown = newNodesKnown(n.HasSyncedChecker())
	err := errors.Join(
		b.AddIndexers(cache.Indexers{byTarget: indexByTarget}), b.SetTransform(stripBalancer), onBalancer,
		p.AddIndexers(cache.Indexers{byLabel: indexByLabel, byNode: indexByNode}), p.SetTransform((&podStripper{}).stripObject), onPod,
		a.AddIndexers(cache.Indexers{byTarget: indexByTarget}), a.SetTransform(stripAutoscaler), onAutoscaler,
		n.SetTransform(stripNode), n.SetWatchErrorHandlerWithContext(c.nodesKnown.failed), onNode,
	)
	if err != nil {
		return fmt.Errorf("attach to informers: %w", err)
	}
	c.balancers, c.pods, c.autoscalers, c.nodes = b.GetIndexer(), p.GetIndexer(), a.GetIndexer(), n.GetIndexer()
	c.written = written.NewCache[*v1alpha1.Balancer](c.balancers, c.clock)
	c.filled = []cache.DoneChecker{b.HasSyncedChecker(), p.HasSyncedChecker(), a.HasSyncedChecker(), c.nodesKnown}
	return nil
}

// Run works until ctx ends, and returns after everything that it started has ended.
func (c *Controller) Run(ctx context.Context) {
	defer c.watches.wait()
	c.watches.running.Go(func() { c.nodesKnown.run(ctx, c.clock) })
	c.loop.Run(ctx, c.filled...)
}

func (c *Controller) sync(ctx context.Context, key string) (time.Duration, error) {
	b, ok := c.balancerCopy(key)
	if !ok {
		return 0, nil
	}
	if err := c.silence(); err != nil {
		klog.FromContext(ctx).V(2).Info("Deciding nothing", "because", err)
		return reachability.Recheck, nil
	}
	v, wait, err := c.observe(ctx, b)
	if errors.Is(err, errBehind) {
		return fillTime, nil // an event arrives before that, unless a cache never fills
	}
	if err != nil {
		return 0, err
	}
	p := plan.New(v)
	if p.ChangesBlocked(v) {
		return requeue.Sooner(wait, p.Again), c.report(ctx, v, p, p.Current()) // its event brings the sync that acts on it
	}
	o, err := c.apply(ctx, v, p)
	if errors.Is(err, errRefused) {
		c.loop.Add(key)
		return 0, nil
	}
	return requeue.Sooner(wait, p.Again), errors.Join(err, c.report(ctx, v, p, o))
}

// silence returns why the caches may not show the cluster as it is now, or nil. A pod that was
// pending when the API server stopped answering may have been running for long.
func (c *Controller) silence() error {
	return c.cluster.Err(append(c.watches.stores(), c.balancers, c.pods, c.autoscalers, c.nodes)...)
}

// balancerCopy returns a copy of a Balancer, if the cache has seen all of this controller's writes
// to it.
func (c *Controller) balancerCopy(key string) (*v1alpha1.Balancer, bool) {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	item, found, _ := c.balancers.GetByKey(key)
	b, ok := item.(*v1alpha1.Balancer)
	if !found || !ok || b.DeletionTimestamp != nil {
		c.interests.setSelectors(namespace, name, nil)
		return nil, false
	}
	if !c.written.UpToDate(b) {
		return nil, false
	}
	b = b.DeepCopy()
	b.Spec.Targets = b.Spec.Targets[:min(len(b.Spec.Targets), plan.MaxTargets+1)] // more than one makes it invalid
	return b, true
}

func (c *Controller) panicked(key string, value any) {
	if b, ok := c.balancerCopy(key); ok {
		c.recorder.Eventf(b, corev1.EventTypeWarning, "UnableToBalance", "Controller panicked: %v. Retrying in 1m; please report this bug", value)
	}
}

func (c *Controller) balancerChanged(items ...any) {
	for _, item := range items {
		b, ok := item.(*v1alpha1.Balancer)
		if !ok {
			continue
		}
		c.loop.Add(b.Namespace + "/" + b.Name)
		for _, key := range targetKeys(b) {
			c.enqueueOwners(key)
		}
	}
}

func (c *Controller) podChanged(items ...any) {
	var sets []labels.Set
	namespace := ""
	for _, item := range items {
		if pod, ok := item.(*cachedPod); ok {
			namespace, sets = pod.Namespace, append(sets, labels.Set(pod.Labels))
		}
	}
	for _, key := range c.interests.interested(namespace, sets...) {
		c.loop.AddAfter(key, gather)
	}
}

// workloadChanged is called with targets and machines.
func (c *Controller) workloadChanged(_ schema.GroupVersionResource, objects ...*unstructured.Unstructured) {
	for _, object := range objects {
		c.enqueueOwners(targetKey(object.GetNamespace(), object.GetAPIVersion(), object.GetKind(), object.GetName()))
		if object.GetKind() == "Machine" {
			for _, key := range c.interests.interested(object.GetNamespace(), labels.Set(object.GetLabels())) {
				c.loop.AddAfter(key, gather)
			}
		}
	}
}

// forget removes what is known of a target that is gone.
func (c *Controller) forget(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	id := plan.Object{Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}.ID()
	c.refusals.forget(id)
	c.scales.forget(object)
}

// enqueueOwners queues the Balancers that target a workload.
func (c *Controller) enqueueOwners(target string) {
	items, _ := c.balancers.ByIndex(byTarget, target)
	for _, item := range items {
		if b, ok := item.(*v1alpha1.Balancer); ok {
			c.loop.Add(b.Namespace + "/" + b.Name)
		}
	}
}

func (c *Controller) enqueueAll() {
	for _, key := range c.balancers.ListKeys() {
		c.loop.Add(key)
	}
	klog.Background().V(4).Info("Checking all Balancers, because the view of the cluster has changed")
}

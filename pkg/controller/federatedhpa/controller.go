// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/workloads/typed/autoscaling/v1alpha1"
	autoscalinginformers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// Finalizer keeps an object until everything that was created in clusters is gone.
const Finalizer = v1alpha1.GroupName + "/federatedhpa"

// gather is how long events of an object's clusters are gathered into one sync.
const gather = 20 * time.Millisecond

// Options of a Controller.
type Options struct {
	// Namespace is the only one to look at, in the hub and in clusters; empty means all.
	Namespace string
	// Workers sync at the same time; 2 unless set. None of them waits for a cluster.
	Workers int
	// Connect makes a configuration for a cluster; that of the registry unless set.
	Connect func(Registration) (*rest.Config, error)
	// ProbePeriod is how often a cluster is probed, 10 s unless set. After Patience failed probes,
	// 2 unless set, it counts as unreachable.
	ProbePeriod time.Duration
	Patience    int
	// RequestTimeout is how long a cluster may take to answer, 10 s unless set.
	RequestTimeout time.Duration
	// MaxClusters are watched at the same time, 1000 unless set.
	MaxClusters int
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer

	metrics   *metrics
	maxCached int
}

func (o *Options) complete() {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Connect == nil {
		o.Connect = func(r Registration) (*rest.Config, error) { return r.Config, nil }
	}
	o.Workers = max(o.Workers, 2)
	o.Patience = max(o.Patience, 2)
	o.ProbePeriod = cmp.Or(o.ProbePeriod, 10*time.Second)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 10*time.Second)
	o.MaxClusters = cmp.Or(o.MaxClusters, 1000)
	o.maxCached = cmp.Or(o.maxCached, maxCached)
}

// Controller partitions the bounds of federated autoscalers.
type Controller struct {
	client   autoscalingclient.FederatedHorizontalPodAutoscalersGetter
	registry Registry
	recorder record.EventRecorder
	o        Options
	loop     *loop.Loop
	written  *written.Cache[*v1alpha1.FederatedHorizontalPodAutoscaler]
	fleet    fleet
	objects  cache.Indexer
	filled   []cache.DoneChecker
}

// New returns a controller. The caller must call Run. Start the informer after New; the registry is
// run by the controller.
func New(client autoscalingclient.FederatedHorizontalPodAutoscalersGetter, informer autoscalinginformers.FederatedHorizontalPodAutoscalerInformer, registry Registry, recorder record.EventRecorder, o Options) (*Controller, error) {
	o.complete()
	c := &Controller{client: client, registry: registry, recorder: recorder, o: o}
	shared := informer.Informer()
	if err := shared.AddIndexers(cache.Indexers{byTarget: indexObject, byKind: indexKind}); err != nil {
		return nil, fmt.Errorf("index objects: %w", err)
	}
	if err := shared.SetTransform(stripObject); err != nil {
		return nil, fmt.Errorf("strip objects: %w", err)
	}
	if _, err := shared.AddEventHandler(handlers.OnVersions(c.objectChanged)); err != nil {
		return nil, fmt.Errorf("listen to objects: %w", err)
	}
	c.objects = shared.GetIndexer()
	c.written = written.NewCache[*v1alpha1.FederatedHorizontalPodAutoscaler](c.objects, c.o.Clock)
	c.o.metrics = newMetrics(o.Registerer, c.objects)
	c.fleet = fleet{registry: registry, o: &c.o, changed: c.clusterChanged, members: map[string]*member{}, expelled: map[string]string{}}
	registry.Notify(func() { c.fleet.follow(); c.enqueueAll() })
	c.filled = append(registry.Filled(), shared.HasSyncedChecker())
	c.loop = loop.New("federatedhpa", c.sync, loop.Options{Workers: c.o.Workers, Clock: c.o.Clock, Panicked: c.panicked})
	return c, nil
}

// Filled returns the checks for the hub's own caches. The caches of clusters may fill later, or
// never.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends. It returns after everything that it started has ended.
func (c *Controller) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.registry.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
		c.fleet.stopMembers()
	}()
	if cache.WaitFor(ctx, "", c.filled...) {
		c.fleet.startMembers(ctx)
	}
	c.loop.Run(ctx, c.filled...)
}

func (c *Controller) sync(ctx context.Context, key string) (time.Duration, error) {
	o, ok := c.objectCopy(key)
	if !ok {
		return 0, nil
	}
	v, d := c.observe(o)
	p := plan.New(v)
	if done, err := c.handleFinalizer(ctx, v, p); done || err != nil {
		return 0, err
	}
	// The status must be written before anything is sent.
	if err := c.report(ctx, v, p); err != nil {
		return 0, err
	}
	c.apply(v, p, d)
	c.verify(v, p)
	return requeue.Sooner(p.Again, d.again), nil
}

// objectCopy returns a copy of an object, if the cache has seen all of this controller's writes to
// it.
func (c *Controller) objectCopy(key string) (*v1alpha1.FederatedHorizontalPodAutoscaler, bool) {
	item, found, _ := c.objects.GetByKey(key)
	o, ok := item.(*v1alpha1.FederatedHorizontalPodAutoscaler)
	if !found || !ok {
		for _, m := range c.fleet.allMembers() {
			m.outbox.forget(key)
		}
		return nil, false
	}
	if !c.written.UpToDate(o) {
		return nil, false
	}
	return o.DeepCopy(), true
}

func (c *Controller) panicked(key string, value any) {
	if o, ok := c.objectCopy(key); ok {
		c.recorder.Eventf(o, corev1.EventTypeWarning, "UnableToFederate", "Controller panicked: %v. Retrying in 1m; please report this bug", value)
	}
}

func keyOf(o *v1alpha1.FederatedHorizontalPodAutoscaler) string { return o.Namespace + "/" + o.Name }

// editionOf identifies what the user wrote last. The generations of an object that is created again under
// its name begin with 1 again.
func editionOf(o *v1alpha1.FederatedHorizontalPodAutoscaler) string {
	return fmt.Sprintf("%s/%d", o.UID, o.Generation)
}

func indexObject(item any) ([]string, error) {
	if o, ok := item.(*v1alpha1.FederatedHorizontalPodAutoscaler); ok {
		return []string{targetOf(o)}, nil
	}
	return nil, nil
}

func indexKind(item any) ([]string, error) {
	if o, ok := item.(*v1alpha1.FederatedHorizontalPodAutoscaler); ok {
		return []string{kindOf(o).String()}, nil
	}
	return nil, nil
}

// objectChanged is called with an object, or with both versions of a changed one. Other objects for
// the same workload are affected only if it is new, or gone.
func (c *Controller) objectChanged(items ...any) {
	var targets []string
	for _, item := range items {
		if o, ok := item.(*v1alpha1.FederatedHorizontalPodAutoscaler); ok {
			c.loop.Add(keyOf(o))
			targets = append(targets, targetOf(o))
			if users, _ := c.objects.IndexKeys(byKind, kindOf(o).String()); len(users) == 0 {
				c.fleet.forgetKind(kindOf(o))
			}
		}
	}
	if len(targets) == 2 && targets[0] == targets[1] {
		return
	}
	for i, target := range targets {
		c.enqueueTarget(target, keyOf(items[i].(*v1alpha1.FederatedHorizontalPodAutoscaler)))
	}
}

// clusterChanged is called with keys of objects and of workloads, or without any.
func (c *Controller) clusterChanged(keys ...string) {
	if len(keys) == 0 {
		c.enqueueAll()
		return
	}
	if _, found, _ := c.objects.GetByKey(keys[0]); found {
		c.loop.AddAfter(keys[0], gather)
	}
	for _, target := range keys[1:] {
		c.enqueueTarget(target, keys[0])
	}
}

func (c *Controller) enqueueTarget(target, but string) {
	items, _ := c.objects.ByIndex(byTarget, target)
	for _, item := range items {
		if o, ok := item.(*v1alpha1.FederatedHorizontalPodAutoscaler); ok && keyOf(o) != but {
			c.loop.AddAfter(keyOf(o), gather)
		}
	}
}

func (c *Controller) enqueueAll() {
	keys := c.objects.ListKeys()
	slices.SortFunc(keys, strings.Compare)
	for _, key := range keys {
		c.loop.AddAfter(key, gather)
	}
}

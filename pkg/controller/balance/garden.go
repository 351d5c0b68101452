// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"context"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

var (
	gardenVersion = schema.GroupVersion{Group: "extensions.gardener.cloud", Version: "v1alpha1"}
	workers       = gardenVersion.WithResource("workers")
	clusters      = gardenVersion.WithResource("clusters")
)

const (
	// gardenRetry is how often to look for Gardener's kinds while the API server does not serve them.
	// Most clusters never do, and with Gardener, they exist before this process.
	gardenRetry = 5 * time.Minute
	// silentRetry is how often to look while it is not known whether it serves them: until then,
	// MachineDeployments of Gardener have no max.
	silentRetry = 10 * time.Second
)

// garden watches Gardener's objects of a namespace, once their kinds are served.
type garden struct {
	clients   Clients
	namespace string
	clock     clock.WithTicker
	// changed is called when there is something new to look at, and workersRead once all Workers
	// have been read.
	changed, workersRead func()
	running              sync.WaitGroup

	rights                    *access.Rights
	workersRule, clustersRule access.Rule

	mu sync.Mutex
	// absent reports whether the API server does not serve the kinds.
	absent            bool
	workers, clusters cache.SharedIndexInformer
}

func newGarden(clients Clients, o Options, changed func()) *garden {
	return &garden{
		clients: clients, namespace: o.Namespace, clock: o.Clock, changed: changed, workersRead: o.WorkersRead, absent: clients.Garden == nil, rights: o.Rights,
		workersRule: access.Rule{
			Cluster: "control", Resource: workers.GroupResource(), Namespace: o.Namespace,
			Without: "Evenkeel reads minimum and maximum of a pool from the worker annotation " + v1alpha1.BoundsAnnotation + " instead of the Worker",
		},
		clustersRule: access.Rule{
			Cluster: "control", Resource: clusters.GroupResource(), Name: o.Namespace,
			Without: "Evenkeel considers the Shoot hibernated only while replicas of all its MachineDeployments are 0",
		},
	}
}

func (g *garden) start(ctx context.Context) {
	if g.clients.Garden != nil {
		g.running.Go(func() { g.waitForKinds(ctx) })
	}
}

// wait returns after everything that start began has ended.
func (g *garden) wait() { g.running.Wait() }

// waitForKinds looks for the kinds until they are served, and then watches them until ctx ends.
func (g *garden) waitForKinds(ctx context.Context) {
	for {
		_, err := connect.Within(ctx, func() (*metav1.APIResourceList, error) {
			return g.clients.Discovery.ServerResourcesForGroupVersion(gardenVersion.String())
		})
		if err == nil {
			g.watchKinds(ctx)
			return
		}
		if apierrors.IsNotFound(err) && !g.snapshot().Known {
			g.update(func() { g.absent = true })
		}
		retry := gardenRetry
		if !written.Answered(err) {
			retry = silentRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-g.clock.After(retry):
		}
	}
}

func (g *garden) watchKinds(ctx context.Context) {
	klog.FromContext(ctx).Info("Found Gardener: watching its Workers and Clusters", "namespace", g.namespace)
	w := g.informer(g.workersRule, g.clients.Garden.Resource(workers).Namespace(g.namespace), fields.Everything())
	c := g.informer(g.clustersRule, g.clients.Garden.Resource(clusters), fields.OneTermEqualSelector("metadata.name", g.namespace))
	for _, informer := range []cache.SharedIndexInformer{w, c} {
		_, _ = informer.AddEventHandler(handlers.OnEvent(g.changed))
		g.running.Go(func() { informer.RunWithContext(ctx) })
		g.running.Go(func() {
			if cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
				g.changed()
			}
		})
	}
	g.update(func() { g.absent, g.workers, g.clusters = false, w, c })
	if cache.WaitFor(ctx, "", w.HasSyncedChecker()) {
		g.workersRead()
	}
}

// informer waits while the process lacks the right that it needs.
func (g *garden) informer(rule access.Rule, client dynamic.ResourceInterface, selector fields.Selector) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(g.rights.ListWatch(rule, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector.String()
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector.String()
			return client.Watch(ctx, o)
		},
	}, g.clients.Garden), &unstructured.Unstructured{}, 0, cache.Indexers{})
}

func (g *garden) update(change func()) {
	g.mu.Lock()
	change()
	g.mu.Unlock()
	g.changed()
}

// snapshot returns what is known now.
func (g *garden) snapshot() plan.Garden {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.workers == nil {
		return plan.Garden{Known: g.absent}
	}
	view := plan.Garden{Here: true, Forbidden: g.rights.Lacks(g.workersRule), Bounds: map[string]v1alpha1.Bounds{}}
	view.Known = view.Forbidden || g.workers.HasSynced()
	mayRead, read := !g.rights.Lacks(g.clustersRule), g.clusters.HasSynced()
	view.ClusterKnown, view.ClusterAwaited = mayRead && read, mayRead && !read
	for _, item := range g.workers.GetIndexer().List() {
		if worker, ok := item.(*unstructured.Unstructured); ok && !view.Forbidden {
			readWorker(worker, view.Bounds)
		}
	}
	for _, item := range g.clusters.GetIndexer().List() {
		if cluster, ok := item.(*unstructured.Unstructured); ok && cluster.GetName() == g.namespace && view.ClusterKnown {
			view.Hibernated, _, _ = unstructured.NestedBool(cluster.Object, "spec", "shoot", "spec", "hibernation", "enabled")
		}
	}
	return view
}

// readWorker reads the bounds of MachineDeployments from a Worker's status. It omits invalid entries.
func readWorker(worker *unstructured.Unstructured, into map[string]v1alpha1.Bounds) {
	if worker.GetDeletionTimestamp() != nil {
		return
	}
	list, _, _ := unstructured.NestedSlice(worker.Object, "status", "machineDeployments")
	for _, item := range list {
		entry, ok := item.(map[string]any)
		if !ok {
			continue
		}
		name, _, _ := unstructured.NestedString(entry, "name")
		low, _, errLow := unstructured.NestedInt64(entry, "minimum")
		high, _, errHigh := unstructured.NestedInt64(entry, "maximum")
		if name == "" || errLow != nil || errHigh != nil || low < 0 || high < low || high > math.MaxInt32 {
			continue
		}
		into[name] = v1alpha1.Bounds{Min: int32(low), Max: int32(high)}
	}
}

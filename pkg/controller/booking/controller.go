// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	provisioningclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/controller/booking/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// everything is the only key: what one request gets can depend on all others.
	everything = "all"
	// gather is how long events are gathered into one sync.
	gather = 100 * time.Millisecond
)

// Clients reach the two clusters.
type Clients struct {
	Requests provisioningclient.ProvisioningRequestsGetter
	Reserves autoscalingclient.ReservesGetter
}

// Informers of the two clusters. The informer of requests must have the transform [StripRequest].
type Informers struct {
	Requests, Reserves cache.SharedIndexInformer
	Machines           *stores.Informers
	Target             *target.Informers
}

// Options of a Controller.
type Options struct {
	// Namespace of the MachineDeployments and Reserves.
	Namespace string
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Control and Target report whether a cluster answers; nil means that it always does.
	Control, Target *reachability.Cluster
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer
}

// Controller books machines for ProvisioningRequests.
type Controller struct {
	clients Clients
	options Options
	metrics *metrics
	loop    *loop.Loop
	filled  []cache.DoneChecker
	// unknown returns why PodTemplates are not known; empty if they are.
	unknown func() string

	requests, reserves, deployments, daemons, pods, templates cache.Indexer
	source                                                    stores.Source
	// These contain the API server's answers to our writes, so that no decision is based on older
	// objects.
	statuses *written.Cache[*provisioningv1.ProvisioningRequest]
	written  *written.Cache[*autoscaling.Reserve]
}

// New returns a controller. The caller must call Run. Start the informers after New.
func New(clients Clients, informers Informers, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{clients: clients, options: o, unknown: informers.Target.PodTemplatesUnknown}
	c.loop = loop.New("booking", c.sync, loop.Options{Clock: o.Clock})
	if err := c.attach(informers); err != nil {
		c.loop.Discard()
		return nil, fmt.Errorf("attach to informers: %w", err)
	}
	c.metrics = newMetrics(o.Registerer, c.requests)
	o.Control.Subscribe(c.resync)
	o.Target.Subscribe(c.resync)
	return c, nil
}

// attach reads the informers, and listens to those whose changes matter immediately.
func (c *Controller) attach(i Informers) error {
	var errs []error
	read := func(informer cache.SharedIndexInformer) cache.Indexer {
		c.filled = append(c.filled, informer.HasSyncedChecker())
		return informer.GetIndexer()
	}
	listen := func(informer cache.SharedIndexInformer, changed func(was, is any)) {
		_, err := informer.AddEventHandler(handlers.OnChange(changed))
		errs = append(errs, err)
	}
	resync := func(any, any) { c.resync() }
	c.requests, c.reserves, c.deployments = read(i.Requests), read(i.Reserves), read(i.Machines.Deployments())
	c.source.Kinds = stores.Kinds{
		Sets: read(i.Machines.Sets()), Machines: read(i.Machines.Machines()), Classes: read(i.Machines.Classes()), Nodes: read(i.Target.Nodes()),
	}
	c.daemons, c.pods = read(i.Target.DaemonSets()), read(i.Target.Pods())
	c.templates = i.Target.PodTemplates().GetIndexer() // not waited for: the process may lack the right to read them
	for _, informer := range []cache.SharedIndexInformer{i.Requests, i.Reserves, i.Machines.Deployments(), i.Target.PodTemplates()} {
		listen(informer, resync)
	}
	listen(i.Target.Pods(), c.podChanged)
	again := func(any) { c.resync() }
	errs = append(errs, stores.OnSpares(i.Machines.Machines(), again), stores.OnSets(i.Machines.Sets(), again))
	c.statuses = written.NewCache[*provisioningv1.ProvisioningRequest](c.requests, c.options.Clock)
	c.written = written.NewCache[*autoscaling.Reserve](c.reserves, c.options.Clock)
	return errors.Join(errs...)
}

// podChanged syncs if a pod that uses a request is bound.
func (c *Controller) podChanged(was, is any) {
	before, _ := was.(*corev1.Pod)
	after, _ := is.(*corev1.Pod)
	if after != nil && after.Spec.NodeName != "" && machine.RequestOf(after) != "" && (before == nil || before.Spec.NodeName == "") {
		c.resync()
	}
}

func (c *Controller) resync() { c.loop.AddAfter(everything, gather) }

// Filled are done when the caches are complete.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) { c.loop.Run(ctx, c.filled...) }

func (c *Controller) sync(ctx context.Context, _ string) (time.Duration, error) {
	err := errors.Join(c.options.Control.Err(c.reserves, c.deployments), c.options.Target.Err(c.requests, c.source.Kinds.Nodes))
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Deciding nothing", "because", err)
		return reachability.Recheck, nil
	}
	p := plan.New(c.observe())
	return p.Again, errors.Join(c.apply(ctx, p), c.report(ctx, p))
}

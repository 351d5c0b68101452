// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/internal/tracing"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/fit/devices"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// queueKey is the only key of the queue: which pods go where is one decision.
	queueKey = "pods that wait"
	// gatherTime is how long pods that begin to wait are gathered into one decision.
	gatherTime = 3 * time.Millisecond
	// otherEventsDelay is how long other events are gathered, while pods wait that the last
	// decision could not help.
	otherEventsDelay = 100 * time.Millisecond
	// maxAttempts bounds how often a decision is repeated at once because another client wrote a
	// MachineDeployment meanwhile.
	maxAttempts = 5
	// maxTime bounds a decision on a machine that is too slow for the work that fit.MaxWork allows.
	// The results until then are used.
	maxTime = 5 * time.Second
	// maxPause is the longest time between two decisions.
	maxPause = 500 * time.Millisecond
)

// Informers of the two clusters.
type Informers struct {
	Machines *stores.Informers
	Target   *target.Informers
}

// Options of a Controller.
type Options struct {
	plan.Settings
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Raised is called with each MachineDeployment whose replicas were raised, as it is after that;
	// optional.
	Raised func(context.Context, *v1alpha1.MachineDeployment)
	// PodGroupsServed and DevicesServed wait until the target cluster serves PodGroups, or what decides about
	// claims to devices, and report false if their context ends before that. If nil, they are assumed to be
	// served.
	PodGroupsServed, DevicesServed func(context.Context) bool
	// GroupRecorder writes events about PodGroups, if set.
	GroupRecorder record.EventRecorder
	// Pods writes nominations for dedicated machines; nil writes none.
	Pods corev1client.PodsGetter
	// Control and Target report whether the two clusters answer. If nil, they are assumed to
	// answer.
	Control, Target *reachability.Cluster
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer
}

// Controller releases machines of the reserve.
type Controller struct {
	client   machineclient.MachineDeploymentsGetter
	recorder record.EventRecorder
	clock    clock.WithTicker
	settings plan.Settings
	raised   func(context.Context, *v1alpha1.MachineDeployment)
	metrics  *metrics
	pods     corev1client.PodsGetter

	control, target *reachability.Cluster

	loop     *loop.Loop
	stores   caches
	source   pool.Source // without pods: each decision reads these once
	podCache podCache
	filled   []cache.DoneChecker
	optional []cache.DoneChecker
	groups   onDemand
	devices  deviceKinds
	// groupRecorder writes events about PodGroups.
	groupRecorder record.EventRecorder
	// informers are those of the target cluster.
	informers *target.Informers
	// tried contains the shapes of waiting pods that the scheduler has found no node for, at the
	// last decision; nil if there are none. It is empty during the first decision.
	tried atomic.Pointer[shapes]

	// Only the worker uses the rest.
	memory plan.Memory
	// decided is when the last decision began, and again how long after it another one is due.
	decided  time.Time
	again    time.Duration
	bursts   plan.Bursts
	refusals refusals
	refused  refusedRaises
	claimed  plan.Claimed
	// said is what was last said about groups that lack machines, by namespace/name.
	said map[string]string
	// rested is when the next decision may begin: as long after the last one as that took, so that
	// half of the time is left for others.
	rested time.Time
	// latest contains MachineDeployments as the API server returned them, so that nothing is raised
	// twice and no decision waits for the store.
	latest *written.Cache[*v1alpha1.MachineDeployment]
}

// New returns a controller. The caller must call Run. Start the informers after New.
func New(client machineclient.MachineDeploymentsGetter, informers Informers, recorder record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Patience == 0 {
		o.Patience = plan.DefaultPatience
	}
	for _, served := range []*func(context.Context) bool{&o.PodGroupsServed, &o.DevicesServed} {
		if *served == nil {
			*served = func(context.Context) bool { return true }
		}
	}
	if o.Raised == nil {
		o.Raised = func(context.Context, *v1alpha1.MachineDeployment) {}
	}
	c := &Controller{
		raised: o.Raised, client: client, pods: o.Pods, recorder: recorder, clock: o.Clock, settings: o.Settings,
		metrics: newMetrics(o.Registerer), informers: informers.Target, control: o.Control, target: o.Target, refusals: refusals{}, refused: refusedRaises{}, claimed: plan.Claimed{}, bursts: plan.Bursts{},
	}
	c.loop = loop.New("release", c.sync, loop.Options{Workers: 1, Clock: o.Clock})
	if c.groupRecorder = o.GroupRecorder; c.groupRecorder == nil {
		c.groupRecorder = &record.FakeRecorder{}
	}
	c.groups.served, c.groups.wanted = o.PodGroupsServed, make(chan struct{})
	c.devices.served, c.devices.wanted, c.devices.selectors = o.DevicesServed, make(chan struct{}), devices.NewSelectors()
	c.podCache.lookups = c.stores.storage.Lookups()
	if err := c.attach(informers); err != nil {
		c.loop.Discard()
		return nil, fmt.Errorf("attach to informers: %w", err)
	}
	c.latest = written.NewCache[*v1alpha1.MachineDeployment](c.stores.deployments, c.clock)
	for _, cluster := range []*reachability.Cluster{c.control, c.target} {
		cluster.Subscribe(func() { c.loop.Add(queueKey) })
	}
	return c, nil
}

// attach reads and listens to the informers.
func (c *Controller) attach(i Informers) error {
	s := &c.stores
	all := []struct {
		informer cache.SharedIndexInformer
		store    *cache.Indexer
		changed  func(was, is any)
	}{
		{i.Machines.Deployments(), &s.deployments, c.deploymentChanged},
		{i.Machines.Sets(), &s.sets, c.specChanged},
		{i.Machines.Machines(), &s.machines, c.somethingChanged},
		{i.Machines.Classes(), &s.machineClasses, c.somethingChanged},
		{i.Target.Pods(), &s.pods, c.podChanged},
		{i.Target.Nodes(), &s.nodes, c.nodeChanged},
		{i.Target.Claims(), &s.storage.Claims, c.somethingChanged},
		{i.Target.Volumes(), &s.storage.Volumes, c.somethingChanged},
		{i.Target.DaemonSets(), &s.daemons, c.specChanged},
	}
	for _, a := range all {
		*a.store = a.informer.GetIndexer()
		c.filled = append(c.filled, a.informer.HasSyncedChecker())
	}
	s.storage = i.Target.Storage()
	s.replicaSets = i.Target.ReplicaSets().GetIndexer() // not waited for: some clusters do not let us read them
	c.source = &stores.Source{Kinds: stores.Kinds{Sets: s.sets, Machines: s.machines, Classes: s.machineClasses, Nodes: s.nodes}}
	// Handlers come last: they use the stores, and informers that run already call them at once.
	var errs []error
	for _, a := range all {
		_, err := a.informer.AddEventHandler(handlers.OnChange(a.changed))
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.listenToStorage(i.Target))...)
}

// listenToStorage listens to what decides where a volume can be created. It is not waited for: the
// process may lack the right to read it.
func (c *Controller) listenToStorage(i *target.Informers) error {
	var errs []error
	for _, informer := range []cache.SharedIndexInformer{i.StorageClasses(), i.Drivers()} {
		c.optional = append(c.optional, informer.HasSyncedChecker())
		_, err := informer.AddEventHandler(handlers.OnChange(c.somethingChanged))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Filled are done when the caches are complete.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends, and returns after everything that it started has ended.
func (c *Controller) Run(ctx context.Context) {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		if cache.WaitFor(ctx, "", c.optional...) { // an empty list causes no event
			c.somethingChanged(nil, nil)
		}
	})
	waiting.Go(func() {
		c.readOnDemand(ctx, &c.groups, func() []cache.SharedIndexInformer { return []cache.SharedIndexInformer{c.informers.PodGroups()} })
	})
	waiting.Go(func() {
		c.readOnDemand(ctx, &c.devices.onDemand, func() []cache.SharedIndexInformer {
			c.devices.Devices = c.informers.Devices()
			return c.devices.All()
		})
	})
	c.loop.Run(ctx, c.filled...)
}

// sync decides, and decides again at once if a MachineDeployment has changed meanwhile, so that
// pods do not wait for that. It decides nothing while a cluster does not answer.
func (c *Controller) sync(ctx context.Context, _ string) (time.Duration, error) {
	if rest := c.rested.Sub(c.clock.Now()); rest > 0 {
		return rest, nil
	}
	if !c.podsWait() {
		c.forgetPods()
		return c.nominationsAgain(), nil
	}
	if err := c.clusterError(); err != nil {
		c.memory.KeepDoubtful(c.decided, c.settings.Patience)
		klog.FromContext(ctx).V(2).Info("Deciding nothing", "because", err)
		return reachability.Recheck, nil
	}
	for attempt := 1; ; attempt++ {
		if err := c.decide(ctx); !outdated(err) || attempt == maxAttempts {
			return requeue.Sooner(requeue.Sooner(c.nominationsAgain(), c.again), c.refused.retryAfter(c.clock.Now())), err
		}
	}
}

// nominationsAgain is when to look again for nominations that mean nothing any more: no event of the
// pod tells.
func (c *Controller) nominationsAgain() time.Duration {
	if len(c.nominatedPods()) == 0 {
		return 0
	}
	return c.settings.Patience
}

// clusterError returns which cluster may have changed since it was last read, nil if none.
func (c *Controller) clusterError() error {
	return errors.Join(c.control.Err(c.stores.deployments, c.stores.machines), c.target.Err(c.stores.pods, c.stores.nodes))
}

// forgetPods forgets what was known of waiting pods.
func (c *Controller) forgetPods() {
	c.tried.Store(nil)
	c.memory, c.said = nil, nil
	c.metrics.decided(plan.Plan{}, 0)
}

// look observes the pods that wait and what there is for them.
func (c *Controller) look(ctx context.Context, begun time.Time) plan.View {
	ctx, span := tracing.Start(ctx, "observe")
	defer span.End()
	c.tried.CompareAndSwap(nil, &shapes{}) // from now on, what changes may be too late for this decision
	v := c.observe(begun)
	c.readJobs(ctx, v.Waiting)
	v.Interrupted = func() bool { return ctx.Err() != nil || c.clock.Since(begun) > maxTime }
	c.tried.Store(triedShapes(v))
	return v
}

func (c *Controller) decide(ctx context.Context) error {
	begun := c.clock.Now()
	c.refused.forgetExpired(begun)
	v := c.look(ctx, begun)
	end := tracing.Step(ctx, "plan")
	p := plan.New(v)
	end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.memory, c.decided, c.again = p.Memory, begun, p.Again
	took := c.clock.Since(begun)
	c.rested = c.clock.Now().Add(min(took, maxPause))
	c.metrics.decided(p, took)
	klog.FromContext(ctx).V(4).Info("Looked at waiting pods", "pods", len(v.Waiting)+v.Beyond, "counting", len(p.Pods), "raises", len(p.Raises), "took", took)
	c.recordShortages(p.Shortages)
	return errors.Join(c.withdrawNominations(ctx), c.nominate(ctx, p.Nominations), c.applyRaises(ctx, p))
}

// podChanged reads a pod at once, so that decisions find it in the cache. It starts a decision if
// the pod waits, also if the scheduler has not tried it yet but a similar pod waits.
func (c *Controller) podChanged(was, is any) {
	before, _ := was.(*corev1.Pod)
	after, _ := is.(*corev1.Pod)
	if after == nil {
		if before != nil {
			c.podCache.forget(before)
		}
		c.somethingChanged(was, is)
		return
	}
	c.podCache.addPod(after)
	if after.Status.NominatedNodeName != "" && after.Spec.NodeName == "" {
		c.loop.AddAfter(queueKey, c.settings.Patience)
	}
	if counts, tried := c.settings.Evaluate(c.withoutVoid(after)); tried || counts && c.tried.Load().contains(c.podCache.podFor(after)) {
		c.loop.AddAfter(queueKey, c.gatherTimeFor(after))
		return
	}
	if before == nil || affectsOthers(before, after) {
		c.somethingChanged(was, is)
	}
}

// affectsOthers reports whether a change of a pod may change where others can run: its place, its
// requests, which may change while it runs, or its labels. Topology spread does not count a pod that
// is being deleted.
func affectsOthers(was, is *corev1.Pod) bool {
	return was.Status.Phase != is.Status.Phase || was.Status.NominatedNodeName != is.Status.NominatedNodeName ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) || !maps.Equal(was.Labels, is.Labels) ||
		!equality.Semantic.DeepEqual(&was.Spec, &is.Spec)
}

// gatherTimeFor is how long a decision about a pod that begins to wait is delayed. The first pod of a
// ReplicaSet or a Job need not wait for the others: the decision knows how many there will be.
func (c *Controller) gatherTimeFor(pod *corev1.Pod) time.Duration {
	if c.tried.Load() == nil && plan.CreatorOf(pod) != nil {
		return 0
	}
	return gatherTime
}

// deploymentChanged forgets a MachineDeployment that no longer exists.
func (c *Controller) deploymentChanged(was, is any) {
	if gone, ok := was.(*v1alpha1.MachineDeployment); ok && is == nil {
		c.metrics.forget(gone.Namespace + "/" + gone.Name)
	}
	c.somethingChanged(was, is)
}

// nodeChanged ignores the many changes of a Node's status that do not matter here.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	if before != nil && after != nil && before.Spec.Unschedulable == after.Spec.Unschedulable && before.Spec.ProviderID == after.Spec.ProviderID &&
		equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) && maps.Equal(before.Labels, after.Labels) &&
		equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) && pool.NodeReady(before) == pool.NodeReady(after) {
		return
	}
	c.somethingChanged(was, is)
}

// specChanged ignores changes of the status. Each kind is watched on its own, so that a MachineSet
// may be seen after its machines. An object that was created again may have the same generation.
func (c *Controller) specChanged(was, is any) {
	before, _ := was.(metav1.Object)
	after, _ := is.(metav1.Object)
	if before == nil || after == nil || before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) {
		c.somethingChanged(was, is)
	}
}

// somethingChanged starts a decision if pods wait.
func (c *Controller) somethingChanged(any, any) {
	if c.tried.Load() != nil {
		c.loop.AddAfter(queueKey, otherEventsDelay)
	}
}

// shapes are the shapes of pods; see fit.Pod.Shape.
type shapes map[string]bool

// contains is false for nil, too.
func (s *shapes) contains(p *fit.Pod) bool { return s != nil && (*s)[p.Shape()] }

// triedShapes returns the shapes of pods that the scheduler has found no node for.
func triedShapes(v plan.View) *shapes {
	all := shapes{}
	for _, p := range v.Waiting {
		if _, tried := v.Settings.Evaluate(p.Object); tried {
			all[p.Shape()] = true
		}
	}
	return &all
}

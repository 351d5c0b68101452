// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/internal/tracing"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/fit"
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
	keep.Settings
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
	settings keep.Settings
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

// attach reads and listens to the informers.
func (c *Controller) attach(i Informers) error {
	m := i.Machine
	all := []subscription{
		{m.Deployments(), nil, c.deploymentChanged, &c.stores.deployments},
		{m.Sets(), nil, c.setChanged, &c.stores.sets},
		{m.Machines(), nil, c.machineChanged, &c.stores.machines},
		{m.Classes(), nil, c.classChanged, &c.stores.classes},
		{i.Seen.MachineDeployments().Informer(), nil, nil, &c.stores.seenDeployments},
		{i.Seen.Machines().Informer(), stores.OwnerIndex(), c.seenMachineChanged, &c.stores.seenMachines},
		{i.Seen.MachineSets().Informer(), stores.OwnerIndex(), c.seenSetChanged, &c.stores.seenSets},
	}
	if i.Target != nil {
		all = append(all,
			subscription{i.Target.Nodes(), nil, c.nodeChanged, &c.stores.nodes},
			subscription{i.Target.Pods(), nil, c.podChanged, &c.stores.pods})
		c.stores.budgets, c.stores.budgetsUnknown = i.Target.Budgets().GetIndexer(), i.Target.BudgetsUnknown
	}
	var errs []error
	for _, s := range all {
		errs = append(errs, s.addIndexers())
		c.filled = append(c.filled, s.informer.HasSyncedChecker())
		if s.store != &c.stores.seenDeployments && s.store != &c.stores.seenMachines && s.store != &c.stores.seenSets && s.store != &c.stores.pods {
			c.ownStores = append(c.ownStores, s.informer.HasSyncedChecker())
		}
	}
	c.latest = newLatest(&c.stores, c.clock)
	c.guards = &guards{latest: c.latest, states: c.states, clock: c.clock, syncAfter: func(key string, after time.Duration) { c.loop.AddAfter(key, after) }}
	// Handlers come last: they use the stores, and informers that run already call them at once.
	for _, s := range all {
		errs = append(errs, s.listen())
	}
	return errors.Join(errs...)
}

// subscription is what the controller needs of one informer.
type subscription struct {
	informer cache.SharedIndexInformer
	indexers cache.Indexers // nil to add none
	changed  func(was, is any)
	store    *cache.Indexer
}

func (s subscription) addIndexers() error {
	*s.store = s.informer.GetIndexer()
	if s.indexers == nil {
		return nil
	}
	return s.informer.AddIndexers(s.indexers)
}

func (s subscription) listen() error {
	if s.changed == nil {
		return nil
	}
	_, err := s.informer.AddEventHandler(handlers.OnChange(s.changed))
	return err
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
func canWait(p keep.Plan) bool {
	acts := func(c keep.MachineChange) bool { return c.Mark != keep.Keep || c.Priority != 0 }
	return !slices.ContainsFunc(p.Machines, acts) && len(p.Nodes) == 0 && p.Deployment.Replicas == 0
}

// decide observes a MachineDeployment and plans for it, if there is one.
func (c *Controller) decide(ctx context.Context, key string) (v keep.View, p keep.Plan, ok bool) {
	defer tracing.Step(ctx, "decide")()
	if v, ok = c.observe(key); ok {
		p = keep.New(v)
	}
	return v, p, ok
}

// rememberPlan keeps the memory of a plan that was carried out. The memory belongs to the applied
// excess. If that was reduced, or may have been, because of a machine that cannot be created, it must
// not be reduced again for the same machine, whatever else failed.
func (c *Controller) rememberPlan(d *v1alpha1.MachineDeployment, p keep.Plan, err error) {
	if is := pool.AppliedOf(d, d.Spec.Replicas); is.Excess == p.Rule.Applied.Excess && is.Absorbed == 0 || errors.Is(err, errUnknown) {
		c.states.remember(keyOf(d), p.Memory)
	}
}

// nextCheck returns the time until the next sync without an event. It is short while caches have
// yet to catch up with a cluster that responds again. Nor does an event show that a write of a
// MachineSet whose outcome is unknown counts no more.
func (c *Controller) nextCheck(v keep.View, p keep.Plan) time.Duration {
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

// gatherTime is how long changes are gathered that are not urgent: when many pods are bound or many
// machines boot at once, other components need the CPU more.
const gatherTime = 100 * time.Millisecond

// ResyncAll syncs all MachineDeployments: when the target cluster stops or resumes responding, or
// when it becomes known where reserves are counted.
func (c *Controller) ResyncAll() {
	for _, key := range c.stores.deployments.ListKeys() {
		c.loop.Add(key)
	}
}

// deploymentChanged causes a sync at once, unless only the status of a MachineDeployment has changed:
// machine-controller-manager and this controller write it often.
func (c *Controller) deploymentChanged(was, is any) {
	before, _ := was.(*v1alpha1.MachineDeployment)
	after, _ := is.(*v1alpha1.MachineDeployment)
	if before != nil && after != nil && before.UID == after.UID {
		c.states.noteNames(before, after, c.clock.Now(), c.latest.inReserve)
	}
	if hasReplicas(before) != hasReplicas(after) {
		c.syncEmpty(cmp.Or(before, after).Namespace)
	}
	d := cmp.Or(after, before)
	if d == nil {
		return
	}
	c.add(keyOf(d), !pool.OnlyStatusDiffers(before, after))
	c.states.notify(keyOf(d))
}

func hasReplicas(d *v1alpha1.MachineDeployment) bool { return d != nil && d.Spec.Replicas > 0 }

// syncEmpty syncs the MachineDeployments of a namespace that have no replicas: whether these have a
// reserve depends on the replicas of the others, see [Controller.allLeaving].
func (c *Controller) syncEmpty(namespace string) {
	for d := range stores.All[*v1alpha1.MachineDeployment](c.stores.deployments) {
		if d.Namespace == namespace && !hasReplicas(d) {
			c.loop.Add(keyOf(d))
		}
	}
}

func (c *Controller) setChanged(was, is any) {
	for _, item := range []any{was, is} {
		if set, ok := item.(*mcm.MachineSet); ok {
			if key, found := keyOfSet(set); found {
				c.add(key, was == nil || is == nil)
			}
		}
	}
}

// seenSetChanged forgets the resizes of MachineSets that no longer exist.
func (c *Controller) seenSetChanged(was, is any) {
	if set, ok := was.(*mcm.MachineSet); ok && is == nil {
		if key, owned := keyOfSet(set); owned {
			c.states.locked(key, func(s *state) { delete(s.resizes, keyOf(set)) })
		}
	}
	c.setChanged(was, is)
}

func (c *Controller) machineChanged(was, is any) {
	for _, item := range []any{was, is} {
		if m, ok := item.(*mcm.Machine); ok {
			if key, found := c.stores.deploymentOf(m); found {
				if is == nil && pool.Marked(m) {
					c.states.noteDeparture(key, m.Name, c.clock.Now())
				}
				c.add(key, was == nil || is == nil)
			}
		}
	}
}

// seenMachineChanged forgets removals that the store shows.
func (c *Controller) seenMachineChanged(was, is any) {
	if m, ok := cmp.Or(is, was).(*mcm.Machine); ok && (is == nil || pool.BeingDeleted(m)) {
		c.states.forgetRemoval(m.UID)
	}
	c.machineChanged(was, is)
}

// classChanged syncs the MachineDeployments whose machines are of a class: an excess in resources
// depends on the capacity of a machine.
func (c *Controller) classChanged(was, is any) {
	for _, item := range []any{is, was} {
		class, ok := item.(*mcm.MachineClass)
		if !ok {
			continue
		}
		for d := range stores.All[*v1alpha1.MachineDeployment](c.stores.deployments) {
			if d.Namespace == class.Namespace && d.Spec.Template.Spec.Class.Name == class.Name {
				c.add(keyOf(d), false)
			}
		}
		return
	}
}

// add queues a key at once if a change is urgent, and otherwise together with what changes until then.
func (c *Controller) add(key string, urgent bool) {
	if urgent {
		c.loop.Add(key)
		return
	}
	c.loop.AddAfter(key, gatherTime)
}

// nodeAnnotations are the annotations of a Node that this controller reads.
var nodeAnnotations = []string{
	v1alpha1.ReserveAnnotation, v1alpha1.ScaleDownDisabledAnnotation, keep.KeptByRollout, machineutils.LastAppliedALTAnnotation,
}

// nodeChanged ignores the many changes of a Node's status that do not matter here. A Node that is new is
// urgent, and one that loses the taint or an annotation of the reserve: pods may be bound to it.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	differs := func(key string) bool { return before.Annotations[key] != after.Annotations[key] }
	if before != nil && after != nil && slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, fit.SameTaint) &&
		!slices.ContainsFunc(nodeAnnotations, differs) && pool.NodeReady(before) == pool.NodeReady(after) && before.Spec.ProviderID == after.Spec.ProviderID && before.Spec.Unschedulable == after.Spec.Unschedulable &&
		equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) {
		return
	}
	urgent := before == nil || after == nil ||
		pool.HasReserveTaint(before.Spec.Taints) && (!pool.HasReserveTaint(after.Spec.Taints) || slices.ContainsFunc(nodeAnnotations, differs))
	for _, node := range []*corev1.Node{before, after} {
		if node == nil {
			continue
		}
		for _, key := range c.stores.deploymentsOfNode(node.Name) {
			c.add(key, urgent)
		}
	}
}

// podChanged causes a sync if a machine may have become busy or empty, or if its pods may be
// evicted now.
func (c *Controller) podChanged(was, is any) {
	before, _ := was.(*corev1.Pod)
	after, _ := is.(*corev1.Pod)
	from, to := busyNode(before), busyNode(after)
	if from == to && (to == "" || c.pin(before) == c.pin(after)) {
		return
	}
	for _, node := range []string{from, to} {
		if node == "" {
			continue
		}
		for _, key := range c.stores.deploymentsOfNode(node) {
			c.add(key, false)
		}
	}
}

// pin returns why a pod must not be evicted, as far as that does not depend on budgets.
func (c *Controller) pin(pod *corev1.Pod) string {
	return pool.NewEvictor(c.settings.Eviction, nil, "", c.clock.Now()).WhyNot(pod)
}

// busyNode returns the Node that a pod makes busy; empty if the pod does not count.
func busyNode(pod *corev1.Pod) string {
	if pod == nil || !pool.IsWorkload(pod) {
		return ""
	}
	return pod.Spec.NodeName
}

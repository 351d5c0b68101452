// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// gather is how long the events of a key are gathered into one sync: when many machines boot at
// once, each of them causes some.
const gather = 20 * time.Millisecond

// recheck is after how long MachineSets are looked at again although nothing has happened.
const recheck = 10 * time.Minute

// inHand is after how long a key is synced again at the earliest while another one releases machines of it. The
// end of a release is an event.
const inHand = time.Second

// Informers of the two clusters, which other controllers share. Target is nil if there is no target
// cluster.
type Informers struct {
	Machines *stores.Informers
	Target   *target.Informers
}

// Options of a Controller.
type Options struct {
	// Workers is the number of concurrent syncs; 5 unless set.
	Workers int
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Cluster reports whether the control cluster answers, and Target whether the target cluster does; nil
	// means that it always does.
	Cluster, Target *reachability.Cluster
	// Settings are those of the decisions.
	Settings plan.Settings
	// Registerer gets the metrics, which are named as machine-controller-manager's. It must not be the
	// default one. Nil means that nobody reads them.
	Registerer prometheus.Registerer
	// Reserve are the settings of reserves.
	Reserve machinetaint.Settings
}

// Clients read and write the two clusters. Target is nil if there is no target cluster.
type Clients struct {
	Machines machineclient.MachineV1alpha1Interface
	Target   corev1client.CoreV1Interface
}

// Controller runs MachineDeployments and MachineSets.
type Controller struct {
	client   machineclient.MachineV1alpha1Interface
	recorder record.EventRecorder
	clock    clock.WithTicker
	cluster  *reachability.Cluster
	target   *reachability.Cluster

	nodeClient                         corev1client.NodeInterface
	podClient                          corev1client.PodInterface
	settings                           plan.Settings
	reserves                           *reserves
	pruned                             pruned
	loop                               *loop.Loop
	deployments, sets, machines, nodes cache.Indexer
	filled                             []cache.DoneChecker
	// These contain the API server's answers, so that no decision is based on older objects.
	writtenDeployments *written.Cache[*machine.MachineDeployment]
	writtenSets        *written.Cache[*mcm.MachineSet]
	writtenMachines    *written.Cache[*mcm.Machine]
	writtenNodes       *written.Cache[*corev1.Node]
	memory             *memory
	metrics            *metrics
	// releasing are releases under way.
	releasing sync.WaitGroup
	// begun is when this process began to work.
	begun time.Time
}

// New returns a controller. The caller must call Run. Start the informers after New.
func New(clients Clients, informers Informers, recorder record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		client: clients.Machines, recorder: recorder, clock: o.Clock, cluster: o.Cluster, target: o.Target, settings: o.Settings, reserves: newReserves(o.Reserve), memory: newMemory(),
	}
	if clients.Target != nil {
		c.nodeClient, c.podClient = clients.Target.Nodes(), clients.Target.Pods(metav1.NamespaceAll)
	}
	c.loop = loop.New("machinedeployment", c.sync, loop.Options{Workers: cmp.Or(o.Workers, 5), Clock: o.Clock, Panicked: c.panicked})
	if err := c.attach(informers); err != nil {
		c.loop.Discard()
		return nil, fmt.Errorf("attach to informers: %w", err)
	}
	c.metrics = newMetrics(o.Registerer, c.deployments, c.sets)
	c.reserves.metrics = newReserveMetrics(o.Registerer, c)
	c.cluster.Subscribe(c.LookAtAll)
	c.target.Subscribe(c.LookAtAll)
	return c, nil
}

// attach reads and listens to the informers.
func (c *Controller) attach(i Informers) error {
	read := func(informer cache.SharedIndexInformer) cache.Indexer {
		c.filled = append(c.filled, informer.HasSyncedChecker())
		return informer.GetIndexer()
	}
	m, r := i.Machines, c.reserves
	c.deployments, c.sets, c.machines, r.classes = read(m.Deployments()), read(m.Sets()), read(m.Machines()), read(m.Classes())
	c.writtenDeployments = written.NewCache[*machine.MachineDeployment](c.deployments, c.clock)
	c.writtenSets = written.NewCache[*mcm.MachineSet](c.sets, c.clock)
	c.writtenMachines = written.NewCache[*mcm.Machine](c.machines, c.clock)
	changed := map[cache.SharedIndexInformer]func(was, is any){
		m.Deployments(): c.deploymentChanged, m.Sets(): c.setChanged, m.Machines(): c.machineChanged, m.Classes(): c.classChanged,
	}
	if t := i.Target; t != nil {
		c.nodes = read(t.Nodes())
		c.writtenNodes = written.NewCache[*corev1.Node](c.nodes, c.clock)
		r.pods, r.podsFilled = t.Pods().GetIndexer(), t.Pods().HasSynced // they are read once there is a reserve
		r.budgets, r.budgetsUnknown = t.Budgets().GetIndexer(), t.BudgetsUnknown
		changed[t.Nodes()], changed[t.Pods()] = c.nodeChanged, c.podChanged
		r.devices, r.devicesAwaited = t.DeviceCounts(), t.DeviceCounts().Awaited
		t.DeviceCounts().Subscribe(c.devicesChanged)
	}
	var errs []error
	for informer, on := range changed {
		_, err := informer.AddEventHandler(handlers.OnChange(on))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// LookAtAll syncs everything: a cluster answers again, or it has become known where reserves are counted.
func (c *Controller) LookAtAll() {
	for d := range stores.All[*machine.MachineDeployment](c.deployments) {
		c.add(key{deploymentKind, d.Namespace, d.Name})
	}
	for set := range stores.All[*mcm.MachineSet](c.sets) {
		c.add(c.keyOf(set))
	}
}

// Filled returns the checks that the caches are complete.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends, and returns after everything that it started has ended.
func (c *Controller) Run(ctx context.Context) {
	defer c.releasing.Wait()
	c.begun = c.clock.Now()
	c.loop.Run(ctx, c.filled...)
}

func (c *Controller) sync(ctx context.Context, text string) (time.Duration, error) {
	if err := c.cluster.Err(c.deployments, c.sets, c.machines); err != nil {
		klog.FromContext(ctx).V(2).Info("Deciding nothing", "because", err)
		return reachability.Recheck, nil
	}
	k := parseKey(text)
	switch k.kind {
	case releaseKind:
		return 0, c.release(ctx, k)
	case nodeKind:
		return c.admit(ctx, k.name)
	}
	if d := c.deploymentOf(k); d != nil && c.reserves.devicesAwaited(pool.DeviceClasses(d)) {
		return reachability.Recheck, nil
	}
	sets := c.setsFor(k)
	held, free := c.memory.hold(uidsOf(sets))
	if !free {
		return gather, nil // another key decides about one of the MachineSets, which changes its owner now
	}
	defer c.endSync(sets, held)
	v, err := c.observe(ctx, k)
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(v.Sets, func(s plan.Set) bool { return !slices.Contains(held, s.Object.UID) }) {
		return gather, nil // it came meanwhile
	}
	p := c.decide(ctx, v)
	c.deferNumbers(text, v, &p)
	elsewhere, err := c.apply(ctx, v, p)
	if elsewhere && p.Again > 0 {
		p.Again = max(p.Again, inHand)
	}
	if len(v.Sets) > 0 {
		p.Again = requeue.Sooner(p.Again, recheck)
	}
	if v.Reserve != nil && v.Reserve.Unreachable != "" && !c.target.Silent() {
		return requeue.Sooner(p.Again, reachability.Recheck), err // caches have yet to catch up
	}
	return p.Again, err
}

// decide makes a plan.
func (c *Controller) decide(ctx context.Context, v plan.View) plan.Plan {
	defer tracing.Step(ctx, "decide")()
	return plan.New(v)
}

// deferNumbers has statuses in which only numbers change written at most once a second.
func (c *Controller) deferNumbers(key string, v plan.View, p *plan.Plan) {
	if wait := c.memory.reportIn(key, v.Now); wait > 0 {
		p.DeferNumbers(v, wait)
	}
	if p.DeploymentStatus != nil || len(p.Statuses) > 0 {
		c.memory.noteReported(key, v.Now)
	}
}

// remember keeps what a plan remembers of the reserve of a MachineDeployment for the next view, unless that
// has gone meanwhile.
func (c *Controller) remember(v plan.View, p plan.Plan) {
	d := v.Deployment
	if d == nil || p.Memory == nil && v.Reserve != nil {
		return
	}
	c.reserves.remember(d.UID, p.Memory)
	if shown := stores.Find[machine.MachineDeployment](c.deployments, d.Namespace+"/"+d.Name); shown == nil || shown.UID != d.UID {
		c.reserves.remember(d.UID, nil)
	}
}

// endSync ends a sync of MachineSets, and forgets those that went meanwhile.
func (c *Controller) endSync(sets []*mcm.MachineSet, held []types.UID) {
	c.memory.release(held, uidsOf(slices.DeleteFunc(slices.Clone(sets), c.isSetShown)))
}

func uidsOf(sets []*mcm.MachineSet) (all []types.UID) {
	for _, set := range sets {
		all = append(all, set.UID)
	}
	return all
}

// LookAtMachines queues the MachineDeployments of machines.
func (c *Controller) LookAtMachines(machines []types.UID) {
	for m := range stores.All[*mcm.Machine](c.machines) {
		if slices.Contains(machines, m.UID) {
			c.addSetOf(m)
		}
	}
}

// ObserveUpdate takes a MachineDeployment whose replicas another controller of this process has raised,
// so that machines are released before a watch shows that.
func (c *Controller) ObserveUpdate(ctx context.Context, d *machine.MachineDeployment) {
	c.writtenDeployments.Record(d)
	c.loop.AddFor(ctx, key{releaseKind, d.Namespace, d.Name}.String())
	c.add(key{deploymentKind, d.Namespace, d.Name})
}

func (c *Controller) panicked(text string, value any) {
	k := parseKey(text)
	if d := c.deploymentOf(k); d != nil {
		c.recorder.Eventf(referenceTo(deploymentKind, d), corev1.EventTypeWarning, "UnableToManage", "Controller panicked: %v. Retrying in 1m; please report this bug", value)
		return
	}
	for _, set := range c.setsOf(k) {
		c.recorder.Eventf(referenceTo(setKind, set), corev1.EventTypeWarning, "UnableToManage", "Controller panicked: %v. Retrying in 1m; please report this bug", value)
	}
}

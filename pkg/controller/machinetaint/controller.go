// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// Clients reach the two clusters.
type Clients struct {
	// Machine is the control cluster, not seen through any lens.
	Machine machineclient.MachineV1alpha1Interface
	// Target is the cluster of the Nodes; nil where there is none.
	Target kubernetes.Interface
}

// Informers are shared ones.
type Informers struct {
	// Machine shows the control cluster as it is; Seen what machine-controller-manager's controllers in this process have seen of it,
	// and has not been started.
	Machine *stores.Informers
	Seen    machineinformers.Interface
	// Target is nil if there is no target cluster.
	Target *target.Informers
}

// Options of a Controller.
type Options struct {
	Settings
	// Workers sync at the same time; 2 unless set.
	Workers int
	// Cluster reports whether the target cluster answers. Where it is nil, that is taken for granted.
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

// soon is how long after machines were freed the rest is put off: until then others may be needed already.
const soon = 300 * time.Millisecond

// Controller keeps reserves.
type Controller struct {
	clients  Clients
	recorder record.EventRecorder
	clock    clock.WithTicker
	cluster  *reachability.Cluster
	settings Settings
	metrics  *metrics

	loop *loop.Loop
	// written are MachineDeployments as we wrote them: a look waits until the store shows that, and Born does not.
	written  *written.Cache[*v1alpha1.MachineDeployment]
	machines *written.Cache[*mcm.Machine]
	nodes    *written.Cache[*corev1.Node]
	// told are MachineDeployments as others in this process wrote them.
	told   *written.Cache[*v1alpha1.MachineDeployment]
	stores caches
	source newest
	filled []cache.DoneChecker
	raw    []cache.DoneChecker

	mu       sync.Mutex
	memories map[string]Memory
	// resizes are those of MachineSets and removals those of Machines that are under way, reductions those of the number of machines that
	// MachineDeployments show, and releases the Machines that are being released; see Guards.
	resizes    map[string]*resize
	removals   map[types.UID]*removal
	reductions map[string]*reduction
	releases   map[types.UID]bool
	// listening are the waves that want to hear of changes, by MachineDeployment.
	listening map[string]chan struct{}
	// freed is when the last machine was, by MachineDeployment, until the rest has been written.
	freed map[string]time.Time
	// pruned says that the API server has dropped spec.excessReplicas from a write of ours, and shows it nowhere.
	pruned bool
}

// New returns a controller that works once it is Run, which has to be called. The informers are to be started after New.
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
	c := &Controller{
		clients: clients, recorder: recorder, clock: o.Clock, cluster: o.Cluster, settings: o.Settings,
		memories: map[string]Memory{},
		resizes:  map[string]*resize{}, removals: map[types.UID]*removal{}, reductions: map[string]*reduction{}, releases: map[types.UID]bool{}, listening: map[string]chan struct{}{}, freed: map[string]time.Time{},
	}
	c.loop = loop.New("machinetaint", c.sync, loop.Options{Workers: o.Workers, Clock: o.Clock, Panicked: c.panicked})
	if err := c.attach(informers); err != nil {
		return nil, fmt.Errorf("attach to informers: %w", err)
	}
	c.metrics = newMetrics(o.Registerer, &c.stores)
	o.Cluster.Subscribe(c.LookEverywhere)
	return c, nil
}

// Tell of a MachineDeployment as somebody else in this process was answered when replicas were raised, so that machines are
// freed before any watch shows that.
func (c *Controller) Tell(d *v1alpha1.MachineDeployment) {
	c.told.Note(d)
	c.deploymentChanged(nil, d)
}

// Raw are done when the stores of its own are complete that Born and Guards read, which are all but pods: before that they know nothing.
func (c *Controller) Raw() []cache.DoneChecker { return c.raw }

// Filled are done when the caches are complete.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends, and returns when all that it started has ended.
func (c *Controller) Run(ctx context.Context) { c.loop.Run(ctx, c.filled...) }

func (c *Controller) sync(ctx context.Context, key string) (time.Duration, error) {
	v, ok := c.observe(key)
	if !ok {
		return 0, nil
	}
	p := NewPlan(v)
	if p.Idle {
		c.forget(key)
		return p.Again, nil
	}
	if left := c.hurry(key); left > 0 && p.canWait() {
		return left, nil
	}
	d, err := c.apply(ctx, v, p)
	// What is to be remembered belongs to the excess applied. Where that has fallen, or may have, because of a machine that cannot be
	// made, it must not fall for that machine again, whatever else failed.
	if is := applied(d); is.Excess == p.Rule.Applied.Excess && is.Absorbed == 0 || errors.Is(err, errUnknown) {
		c.remember(key, p.Memory)
	}
	if err != nil {
		return 0, err
	}
	if p.frees() {
		c.noteFreed(key)
		return soon, nil
	}
	return c.again(v, p), c.report(ctx, d, p)
}

// again is when to look again though nothing happens: also while watches have yet to catch up with a cluster that answers again.
func (c *Controller) again(v View, p Plan) time.Duration {
	if v.Unreachable != "" && !c.cluster.Silent() {
		return reachability.Recheck
	}
	return p.Again
}

func (c *Controller) remember(key string, m Memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memories[key] = m
}

// hurry is how long what can wait is still put off for machines that were freed.
func (c *Controller) hurry(key string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.freed[key]
	if !ok {
		return 0
	}
	left := soon - c.clock.Since(at)
	if left <= 0 {
		delete(c.freed, key)
	}
	return left
}

func (c *Controller) noteFreed(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freed[key] = c.clock.Now()
}

// forget a MachineDeployment that is gone, or has no reserve.
func (c *Controller) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memories, key)
	delete(c.freed, key)
}

func (c *Controller) panicked(key string, value any) {
	if d, ok := c.stores.deployment(key); ok {
		c.recorder.Eventf(v1alpha1.ReferenceTo(d), corev1.EventTypeWarning, "ReserveUnattended", "Controller panicked: %v. Retrying in 5m; please report this bug", value)
	}
}

// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// everything is the one key there is: which pods go where is one decision.
	everything = "pods that wait"
	// gather is how long pods that begin to wait are gathered into one decision.
	gather = 3 * time.Millisecond
	// ponder is how long other events are, while somebody waits whom the last decision could not help.
	ponder = 100 * time.Millisecond
	// attempts bounds how often is decided anew at once because somebody wrote a MachineDeployment meanwhile.
	attempts = 5
)

// Informers of the two clusters.
type Informers struct {
	Machines *stores.Informers
	Target   *target.Informers
}

// Options of a Controller.
type Options struct {
	Settings
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Raised is told of each MachineDeployment whose replicas were raised, as it is then; optional.
	Raised func(*v1alpha1.MachineDeployment)
	// Control and Target report whether the two clusters answer; nil takes that for granted.
	Control, Target *reachability.Cluster
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer
}

// Defaults of the settings.
const (
	// DefaultCutoff is cluster-autoscaler's.
	DefaultCutoff   = -10
	DefaultPatience = 30 * time.Second
)

// DefaultSchedulers place pods by the usual rules: Kubernetes' own, and the one that Gardener runs beside it.
func DefaultSchedulers() []string { return []string{"default-scheduler", "bin-packing-scheduler"} }

// Controller releases machines of the reserve.
type Controller struct {
	client   machineclient.MachineDeploymentsGetter
	recorder record.EventRecorder
	clock    clock.WithTicker
	settings Settings
	raised   func(*v1alpha1.MachineDeployment)
	metrics  *metrics

	control, target *reachability.Cluster

	loop    *loop.Loop
	stores  caches
	source  pool.Source
	reading reading
	filled  []cache.DoneChecker
	// tried has the shapes of pods that wait and that the scheduler has found no place for, as of the last look; nil where none does.
	tried atomic.Pointer[shapes]

	// took is how long the last decision took, in nanoseconds. The next one waits as long, so that half of the time is for others.
	took atomic.Int64

	// Of the one worker alone.
	memory Memory
	// latest are MachineDeployments as they were answered: so nothing is raised twice, and nobody waits for the store.
	latest *written.Cache[*v1alpha1.MachineDeployment]
}

// New returns a controller that works once it is Run, which has to be called. Start the informers after New.
func New(client machineclient.MachineDeploymentsGetter, informers Informers, recorder record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Raised == nil {
		o.Raised = func(*v1alpha1.MachineDeployment) {}
	}
	c := &Controller{
		raised: o.Raised, client: client, recorder: recorder, clock: o.Clock, settings: o.Settings,
		metrics: newMetrics(o.Registerer), control: o.Control, target: o.Target,
	}
	c.loop = loop.New("release", c.sync, loop.Options{Workers: 1, Clock: o.Clock})
	c.reading.lookups = c.stores.storage.Lookups()
	if err := c.attach(informers); err != nil {
		return nil, fmt.Errorf("attach to informers: %w", err)
	}
	c.latest = written.NewCache[*v1alpha1.MachineDeployment](c.stores.deployments, c.clock)
	for _, cluster := range []*reachability.Cluster{c.control, c.target} {
		cluster.Subscribe(func() { c.loop.Add(everything) })
	}
	return c, nil
}

// Filled are done when the caches are complete.
func (c *Controller) Filled() []cache.DoneChecker { return c.filled }

// Run works until ctx ends, and returns when all that it started has ended.
func (c *Controller) Run(ctx context.Context) { c.loop.Run(ctx, c.filled...) }

// sync decides, and decides anew at once where a MachineDeployment has changed meanwhile: pods should not wait for that. Nothing is
// decided on what was last seen of a cluster that does not answer.
func (c *Controller) sync(ctx context.Context, _ string) (time.Duration, error) {
	if !c.waits() {
		c.rest()
		return 0, nil
	}
	if err := c.silence(); err != nil {
		klog.FromContext(ctx).V(2).Info("Deciding nothing", "because", err)
		return reachability.Recheck, nil
	}
	for attempt := 1; ; attempt++ {
		if err := c.decide(ctx); !outdated(err) || attempt == attempts {
			return 0, err
		}
	}
}

// silence says which cluster is not seen as it is now; nil where both are.
func (c *Controller) silence() error {
	return errors.Join(c.control.Err(c.stores.deployments, c.stores.machines), c.target.Err(c.stores.pods, c.stores.nodes))
}

// rest forgets what was known of pods that waited.
func (c *Controller) rest() {
	c.tried.Store(nil)
	c.took.Store(0)
	c.memory = nil
	c.metrics.decided(Plan{}, 0)
}

func (c *Controller) decide(ctx context.Context) error {
	begun := c.clock.Now()
	v := c.observe(begun)
	v.Interrupted = func() bool { return ctx.Err() != nil || c.clock.Since(begun) > MaxTime }
	c.tried.Store(v.tried())
	p := NewPlan(v)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.memory = p.Memory
	took := c.clock.Since(begun)
	c.took.Store(int64(min(took, MaxPause)))
	c.metrics.decided(p, took)
	klog.FromContext(ctx).V(4).Info("Looked at pods that wait", "pods", len(v.Waiting)+v.Beyond, "counting", len(p.Pods), "raises", len(p.Raises), "took", took)
	return c.apply(ctx, p)
}

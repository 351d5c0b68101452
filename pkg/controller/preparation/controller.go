// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// gather is how long events are gathered into one sync.
	gather = 100 * time.Millisecond
	// refusedFor is how long no pod is created again that the API server has refused.
	refusedFor = time.Minute
	// rereads is after how long Reserves are looked at again that have not been read yet.
	rereads = 10 * time.Second
	// everything is the only key: what is pulled from a registry depends on all machines.
	everything = "machines"
)

// Options of a Controller.
type Options struct {
	// Clock is the real one unless set.
	Clock clock.WithTicker
	// Cluster and Target report whether the clusters answer; nil means that they always do.
	Cluster, Target *reachability.Cluster
	// Registerer takes the metrics, if set.
	Registerer prometheus.Registerer
	Limits     plan.Limits
	// Image is that of the container that waits.
	Image string
	// States is told how far machines are.
	States *States
	// Requests are those of Reserves; nil if there are none.
	Requests *Requests
}

// Controller has images pulled on machines in reserve.
type Controller struct {
	o       Options
	core    kubernetes.Interface
	metrics *metrics

	loop        *loop.Loop
	deployments cache.Indexer
	source      stores.Source
	pods        cache.SharedIndexInformer
	podFactory  informers.SharedInformerFactory
	workloads   *workloads
	filled      []cache.DoneChecker
	ctx         context.Context // of Run
	begun       time.Time       // is when Run began

	// What follows belongs to sync, which never runs twice at once.

	// created are pods that no store shows yet, by machine and wish, and refused those that could not be
	// created.
	created map[attempt]*corev1.Pod
	refused map[attempt]refusal
	// sizes are those of what pods have pulled.
	sizes map[types.UID]*measurement
}

// attempt is to create a pod.
type attempt struct {
	machine types.UID
	wish    string
}

type refusal struct {
	plan.Failure
	until time.Time
}

// New returns a controller. The caller must call Run. Start the informers of the machines after New.
func New(core kubernetes.Interface, machines *stores.Informers, nodes *target.Informers, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		o: o, core: core, created: map[attempt]*corev1.Pod{}, refused: map[attempt]refusal{}, sizes: map[types.UID]*measurement{},
		podFactory: informers.NewSharedInformerFactoryWithOptions(core, 0, informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.LabelSelector = plan.Label })),
	}
	c.loop = loop.New("preparation", c.sync, loop.Options{Clock: o.Clock})
	c.workloads = &workloads{client: core, changed: c.changed, followed: map[workload]*follower{}}
	c.pods = c.podFactory.Core().V1().Pods().Informer()
	read := func(informer cache.SharedIndexInformer) cache.Indexer {
		c.filled = append(c.filled, informer.HasSyncedChecker())
		return informer.GetIndexer()
	}
	c.deployments = read(machines.Deployments())
	c.source.Kinds = stores.Kinds{Sets: read(machines.Sets()), Machines: read(machines.Machines()), Nodes: read(nodes.Nodes()), Pods: read(c.pods)}
	var errs []error
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		machines.Deployments(): handlers.OnChange(c.deploymentChanged), nodes.Nodes(): handlers.OnChange(c.nodeChanged), c.pods: handlers.OnEvent(c.changed),
	} {
		_, err := informer.AddEventHandler(handler)
		errs = append(errs, err)
	}
	again := func(any) { c.changed() }
	errs = append(errs, stores.OnSpares(machines.Machines(), again), stores.OnSets(machines.Sets(), again))
	if err := errors.Join(errs...); err != nil {
		c.loop.Discard()
		return nil, fmt.Errorf("listen to informers: %w", err)
	}
	c.metrics = newMetrics(o.Registerer)
	o.Cluster.Subscribe(c.changed)
	o.Target.Subscribe(c.changed)
	o.Requests.Subscribe(c.changed)
	return c, nil
}

func (c *Controller) changed() { c.loop.AddAfter(everything, gather) }

// deploymentChanged queues a sync if something else is asked for, or Reserves may select the MachineDeployment or no
// longer do.
func (c *Controller) deploymentChanged(was, is any) {
	before, _ := was.(*v1alpha1.MachineDeployment)
	after, _ := is.(*v1alpha1.MachineDeployment)
	if before == nil || after == nil || before.Generation != after.Generation || pool.PrepareText(before) != pool.PrepareText(after) || !maps.Equal(before.Labels, after.Labels) {
		c.changed()
	}
}

// nodeChanged queues a sync if a Node has become able to run pods, or unable.
func (c *Controller) nodeChanged(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	if before == nil || after == nil || isAble(before) != isAble(after) {
		c.changed()
	}
}

// Run works until ctx ends, and returns after everything that it started has ended.
func (c *Controller) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer c.workloads.running.Wait()
	defer c.podFactory.Shutdown()
	defer cancel()
	c.ctx, c.begun = ctx, c.o.Clock.Now()
	c.podFactory.StartWithContext(ctx)
	c.changed()
	c.loop.Run(ctx, c.filled...)
}

func (c *Controller) sync(ctx context.Context, _ string) (time.Duration, error) {
	if err := errors.Join(c.o.Cluster.Err(c.deployments, c.source.Kinds.Machines), c.o.Target.Err(c.source.Kinds.Nodes, c.source.Kinds.Pods)); err != nil {
		klog.FromContext(ctx).V(2).Info("Deciding nothing", "because", err)
		return reachability.Recheck, nil
	}
	again := c.measure(ctx)
	unread := c.o.Requests.unread() // before they are read
	asked := c.askedFor()
	c.workloads.follow(c.ctx, wantedWorkloads(asked))
	p := plan.New(c.o.Clock.Now(), c.observe(asked, unread), c.o.Limits)
	p.Again = requeue.Sooner(p.Again, again)
	if unread {
		p.Again = requeue.Sooner(p.Again, rereads)
	}
	c.o.States.set(p.Progress)
	c.metrics.report(p)
	var errs []error
	for _, pod := range p.Deletions {
		errs = append(errs, c.delete(ctx, pod))
	}
	for _, one := range p.Creations {
		if again := c.create(ctx, one); again > 0 {
			p.Again = requeue.Sooner(p.Again, again)
		}
	}
	return p.Again, errors.Join(errs...)
}

func (c *Controller) delete(ctx context.Context, pod plan.Pod) error {
	err := c.core.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted pod that pulled images", "pod", klog.KRef(pod.Namespace, pod.Name))
	return nil
}

// create creates a pod. If that fails, the machine does without for a while: the status says why.
func (c *Controller) create(ctx context.Context, one plan.Creation) (again time.Duration) {
	key := attempt{one.Machine.UID, one.Wish.Key}
	pods, wanted := c.core.CoreV1().Pods(one.Wish.Namespace), podFor(one, c.o.Image)
	pod, err := pods.Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // the answer was lost, or the last one has yet to go
		if pod, err = pods.Get(ctx, wanted.Name, metav1.GetOptions{}); err == nil && pod.DeletionTimestamp != nil {
			return time.Second
		}
	}
	if err == nil {
		delete(c.refused, key)
		c.created[key] = pod
		klog.FromContext(ctx).V(2).Info("Pulling images", "pod", klog.KObj(pod), "node", one.Machine.Node, "images", one.Wish.Images)
		return 0
	}
	message := fmt.Sprintf("create pod in namespace %s: %v", one.Wish.Namespace, err)
	if apierrors.IsInvalid(err) && strings.Contains(err.Error(), "must specify a volume type") {
		message = "the target cluster has no image volumes, which pull the images: they need Kubernetes 1.35"
	}
	c.refused[key] = refusal{plan.Failure{Reason: plan.Refused, Message: message}, c.o.Clock.Now().Add(refusedFor)}
	return time.Millisecond // the progress of the machine has changed
}

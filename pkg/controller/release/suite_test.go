// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var suite *testing.T

func TestRelease(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Release")
}

const ns = fixture.Namespace

var (
	deploymentGVR = v1alpha1.SchemeGroupVersion.WithResource("machinedeployments")
	setGVR        = v1alpha1.SchemeGroupVersion.WithResource("machinesets")
	machineGVR    = v1alpha1.SchemeGroupVersion.WithResource("machines")
	nodeGVR       = corev1.SchemeGroupVersion.WithResource("nodes")
	podGVR        = corev1.SchemeGroupVersion.WithResource("pods")
	eventGVR      = corev1.SchemeGroupVersion.WithResource("events")
)

// served are the kinds that are watched.
var served = slices.Concat(sim.Core, sim.Machine, sim.Workloads, sim.Shapes, sim.Devices, []sim.Resource{
	sim.PodGroups,
	{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses", Kind: "StorageClass", Type: &storagev1.StorageClass{}},
	{Group: "storage.k8s.io", Version: "v1", Name: "csidrivers", Kind: "CSIDriver", Type: &storagev1.CSIDriver{}},
})

// controller is the program under test, which some may see.
func controller(o Options, seen ...func(*Controller)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		core, ours := kubernetes.NewForConfigOrDie(storm.Target(config)), versioned.NewForConfigOrDie(storm.Control(config))
		nodes, machines := target.New(core, nil), stores.New(ours, metav1.NamespaceAll)
		// Another controller of the process has started some informers already. They end with this one.
		ctx, end := context.WithCancel(ctx)
		defer end()
		machines.Deployments()
		machines.Start(ctx)
		nodes.Pods()
		nodes.Start(ctx)
		o.Pods, o.GroupRecorder = core.CoreV1(), &world.Recorder{Core: core}
		c, err := New(ours.MachineV1alpha1(), Informers{Machines: machines, Target: nodes}, &world.Recorder{Core: core}, o)
		if err != nil {
			return err
		}
		for _, see := range seen {
			see(c)
		}
		process := world.Process{Informers: []world.Informers{nodes, machines}}
		if o.Control != nil {
			process.Clusters = []*reachability.Cluster{o.Control, o.Target}
		}
		process.Run(ctx, func(ctx context.Context) {
			defer end()
			c.Run(ctx)
		})
		return nil
	}
}

// aware is the controller with probes of both clusters. It ends, as our daemons do, where resourceVersions of either go back.
func aware(o Options) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		core, ours := world.Clients(config)
		o.Control, o.Target = world.ControlCluster(ours), world.TargetCluster(core)
		return controller(o)(ctx, config)
	}
}

// cluster has pools whose reserve is kept, and a scheduler.
type cluster struct {
	*storm.World
	*world.Waker
	core kubernetes.Interface
	ours versioned.Interface

	// scheduler and taintController may be stopped.
	scheduler, taintController *storm.Process
	// boot is how long a machine takes.
	boot time.Duration
	born int
	// harmed are pods on machines that were deleted.
	harmed []string
	// growing reports whether a pool is being created, so that no actor completes it meanwhile.
	growing bool
}

// alone is a cluster without actors.
func alone(w *storm.World) *cluster {
	core, ours := world.Clients(w.ConfigFor("user"))
	return &cluster{World: w, Waker: world.NewWaker(w), core: core, ours: ours, boot: time.Minute}
}

func adopt(w *storm.World) *cluster {
	return adoptWith(w, func(c *cluster, ctx context.Context, config *rest.Config) error {
		return c.actor(c.keep)(ctx, config)
	})
}

// adoptWith has a program of the cluster keep the reserve.
func adoptWith(w *storm.World, keep func(*cluster, context.Context, *rest.Config) error) *cluster {
	c := alone(w)
	c.scheduler = w.Start("scheduler", c.actor(schedule))
	c.taintController = w.Start("machinetaint", func(ctx context.Context, config *rest.Config) error { return keep(c, ctx, config) })
	return c
}

// actor does something soon after each write, and again after the time that it returns.
func (c *cluster) actor(reconcile world.Reconcile) storm.Program {
	return world.Actor{Waker: c.Waker, Delay: 4 * time.Millisecond, Reconcile: reconcile}.Run
}

// play runs body on a cluster in virtual time.
func play(body func(c *cluster)) { playOn(served, body) }

// playOn runs body on a cluster that serves these kinds and no others.
func playOn(kinds []sim.Resource, body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := adopt(storm.NewWorld(sim.Options{Seed: 1, Resources: kinds}))
		defer c.End()
		c.Latency(time.Millisecond)
		body(c)
	})
}

// playApart runs body on two clusters.
func playApart(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := adopt(storm.NewApart(sim.Options{Seed: 1, Resources: served}))
		defer c.End()
		c.Latency(time.Millisecond)
		body(c)
	})
}

// grow creates a pool with this many serving machines, each filled by a pod, and this many in reserve.
func (c *cluster) grow(name string, replicas, excess int, bounds string, change ...func(*v1alpha1.MachineDeployment)) {
	GinkgoHelper()
	c.set(func() { c.growing = true })
	defer c.create(Pod("last-"+name, 0, func(p *corev1.Pod) { p.Spec.NodeName = "elsewhere" })) // wakes the actors that waited
	defer c.set(func() { c.growing = false })
	d := world.MachineDeployment(name, int32(replicas))
	d.Spec.ExcessReplicas = ptr.To(int32(excess))
	d.Annotations[v1alpha1.AppliedExcessAnnotation] = fmt.Sprint(excess)
	if bounds != "" {
		d.Annotations[v1alpha1.BoundsAnnotation] = bounds
	}
	for _, f := range change {
		f(d)
	}
	world.CreatePool(c.ours.MachineV1alpha1(), d, name)
	for i := range replicas + excess {
		made := world.Create(c.ours.MachineV1alpha1().Machines(ns), c.machine(name, i >= replicas))
		if i < replicas {
			c.create(Pod("filler-"+made.Name, 4000, func(p *corev1.Pod) { p.Spec.NodeName = made.Name }))
		}
	}
}

// set changes something under the lock, and wakes no actor.
func (c *cluster) set(change func()) { c.Do(change) }

// machine is a new one of a pool. It boots.
func (c *cluster) machine(pool string, inReserve bool) *mcm.Machine {
	number, owner := 0, &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: pool}}
	c.set(func() { c.born++; number = c.born })
	for _, set := range c.sets() {
		if set.Name == pool {
			owner = &set
		}
	}
	return world.NewMachine(pool, fmt.Sprintf("%s-%03d", pool, number), owner, inReserve)
}

func (c *cluster) create(pods ...*corev1.Pod) {
	GinkgoHelper()
	for _, p := range pods {
		p.UID = ""
		if p.Status.NominatedNodeName != "" {
			world.CreateWithStatus(c.core.CoreV1().Pods(ns), p)
			continue
		}
		p.Status = corev1.PodStatus{}
		world.Create(c.core.CoreV1().Pods(ns), p)
	}
}

// fresh are pods that the scheduler has not tried yet.
func fresh(n int, name string, milli int64, change ...func(*corev1.Pod)) []*corev1.Pod {
	return Pods(n, name, milli, append(change, Untried)...)
}

func (c *cluster) patch(name, format string, args ...any) {
	GinkgoHelper()
	world.Patch(c.ours.MachineV1alpha1().MachineDeployments(ns), name, format, args...)
}

func (c *cluster) settle() {
	GinkgoHelper()
	Expect(c.Settle(5*time.Minute, 12*time.Hour)).To(Succeed())
}

func stored[T any](c *cluster, kind schema.GroupVersionResource) (all []T) {
	for _, o := range world.List[T](c, kind) {
		all = append(all, *o)
	}
	return all
}

func (c *cluster) pods() []corev1.Pod      { return stored[corev1.Pod](c, podGVR) }
func (c *cluster) nodes() []corev1.Node    { return stored[corev1.Node](c, nodeGVR) }
func (c *cluster) sets() []mcm.MachineSet  { return stored[mcm.MachineSet](c, setGVR) }
func (c *cluster) machines() []mcm.Machine { return stored[mcm.Machine](c, machineGVR) }
func (c *cluster) deployments() []v1alpha1.MachineDeployment {
	return stored[v1alpha1.MachineDeployment](c, deploymentGVR)
}

// replicas are those of all pools, as in "a=2 b=1".
func (c *cluster) replicas() string {
	var words []string
	for _, d := range c.deployments() {
		words = append(words, fmt.Sprintf("%s=%d", d.Name, d.Spec.Replicas))
	}
	return strings.Join(words, " ")
}

// waiting is how many pods have no node.
func (c *cluster) waiting() int {
	n := 0
	for _, p := range c.pods() {
		if p.Spec.NodeName == "" {
			n++
		}
	}
	return n
}

// writes are what the controller has written since a number of writes, as "a {...}".
func (c *cluster) writes(since int) []string {
	var all []string
	for _, w := range world.WritesOf(c.World, "release", since) {
		all = append(all, w.Verb+" "+w.Resource+" "+w.Name)
	}
	return all
}

// events are the messages so far.
func (c *cluster) events() (all []string) {
	for _, e := range stored[corev1.Event](c, eventGVR) {
		all = append(all, e.Reason+": "+e.Message)
	}
	return all
}

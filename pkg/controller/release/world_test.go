// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan/plantest"
)

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
var served = slices.Concat(sim.Core, sim.Machine, sim.Workloads, sim.Shapes, []sim.Resource{
	{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses", Kind: "StorageClass", Type: &storagev1.StorageClass{}},
	{Group: "storage.k8s.io", Version: "v1", Name: "csidrivers", Kind: "CSIDriver", Type: &storagev1.CSIDriver{}},
})

// controller is the program under test, which some may see.
func controller(o Options, seen ...func(*Controller)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		config.QPS = -1
		core, ours := kubernetes.NewForConfigOrDie(storm.Target(config)), versioned.NewForConfigOrDie(storm.Control(config))
		nodes, machines := target.New(core, nil), stores.New(ours, metav1.NamespaceAll)
		// Another controller of the process has started some informers already.
		machines.Deployments()
		machines.Start(ctx)
		nodes.Pods()
		nodes.Start(ctx)
		o.Pods = core.CoreV1()
		c, err := New(ours.MachineV1alpha1(), Informers{Machines: machines, Target: nodes}, &scribe{core: core}, o)
		if err != nil {
			return err
		}
		for _, see := range seen {
			see(c)
		}
		nodes.Start(ctx)
		machines.Start(ctx)
		defer nodes.Shutdown()
		defer machines.Shutdown()
		c.Run(ctx)
		return nil
	}
}

// aware is the controller with probes of both clusters. It ends, as our daemons do, where resourceVersions of either go back.
func aware(o Options) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		probes := rest.CopyConfig(config)
		probes.QPS = -1
		core, ours := kubernetes.NewForConfigOrDie(probes), versioned.NewForConfigOrDie(probes)
		o.Control = reachability.New("control", reachability.MachineDeployments(ours.MachineV1alpha1(), ns), reachability.Options{})
		o.Target = reachability.New("target", reachability.Nodes(core), reachability.Options{})
		var probing sync.WaitGroup
		defer probing.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for _, cluster := range []*reachability.Cluster{o.Control, o.Target} {
			probing.Go(func() {
				defer cancel()
				_ = cluster.Run(ctx)
			})
		}
		return controller(o)(ctx, config)
	}
}

// scribe writes events at once, as a client like any other.
type scribe struct {
	record.EventRecorder
	core kubernetes.Interface
}

func (s *scribe) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	about := object.(*corev1.ObjectReference)
	_, _ = s.core.CoreV1().Events(about.Namespace).Create(context.Background(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: about.Name + "-", Namespace: about.Namespace},
		InvolvedObject: *about, Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...),
	}, metav1.CreateOptions{})
}

// cluster has pools whose reserve is kept, and a scheduler.
type cluster struct {
	*storm.World
	core *kubernetes.Clientset
	ours *versioned.Clientset

	mu   sync.Mutex
	beat chan struct{}
	// scheduler and keeper may be stopped.
	scheduler, keeper *storm.Process
	// boot is how long a machine takes.
	boot time.Duration
	born int
	// harmed are pods on machines that were deleted.
	harmed []string
	// growing says that a pool is being made, which nobody is to complete meanwhile.
	growing bool
}

// alone is a cluster in which nobody does anything.
func alone(w *storm.World) *cluster {
	config := w.ConfigFor("user")
	config.QPS = -1
	return &cluster{World: w, core: kubernetes.NewForConfigOrDie(config), ours: versioned.NewForConfigOrDie(config), beat: make(chan struct{}), boot: time.Minute}
}

func adopt(w *storm.World) *cluster {
	return adoptWith(w, func(c *cluster, ctx context.Context, config *rest.Config) error {
		return c.actor(c.keep)(ctx, config)
	})
}

// adoptWith has a program of the cluster keep the reserve.
func adoptWith(w *storm.World, keep func(*cluster, context.Context, *rest.Config) error) *cluster {
	c := alone(w)
	w.AfterWrite(func(w sim.Write) error {
		if w.Resource == "leases" {
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.beat)
		c.beat = make(chan struct{})
		return nil
	})
	c.scheduler = w.Start("scheduler", c.actor(c.schedule))
	c.keeper = w.Start("keeper", func(ctx context.Context, config *rest.Config) error { return keep(c, ctx, config) })
	return c
}

// actor does something soon after each write, and after as long as it says.
func (c *cluster) actor(act func(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (again time.Duration)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		config.QPS = -1
		core, ours := kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)
		for ctx.Err() == nil {
			c.mu.Lock()
			beat := c.beat
			c.mu.Unlock()
			again := act(ctx, core, ours)
			if again == 0 {
				again = 1000 * time.Hour
			}
			timer := time.NewTimer(again)
			select {
			case <-ctx.Done():
			case <-timer.C:
			case <-beat:
				time.Sleep(4 * time.Millisecond)
			}
			timer.Stop()
		}
		return nil
	}
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

// grow makes a pool of so many serving machines, of which each runs a pod that fills it, and so many in reserve.
func (c *cluster) grow(name string, replicas, excess int, bounds string, change ...func(*v1alpha1.MachineDeployment)) {
	GinkgoHelper()
	ctx := context.Background()
	c.set(func() { c.growing = true })
	defer c.create(Pod("last-"+name, 0, func(p *corev1.Pod) { p.Spec.NodeName = "elsewhere" })) // wakes who waited
	defer c.set(func() { c.growing = false })
	plain := fixture.MachineDeployment(name, int32(replicas))
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: v1alpha1.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec}}
	d.Spec.ExcessReplicas = ptr.To(int32(excess))
	d.Annotations = map[string]string{v1alpha1.AppliedExcessAnnotation: fmt.Sprint(excess)}
	if bounds != "" {
		d.Annotations[v1alpha1.BoundsAnnotation] = bounds
	}
	for _, f := range change {
		f(d)
	}
	d, err := c.ours.MachineV1alpha1().MachineDeployments(ns).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, v1alpha1.SchemeGroupVersion.WithKind("MachineDeployment"))}}}
	set.Spec.Template = d.Spec.Template
	_, err = c.ours.MachineV1alpha1().MachineSets(ns).Create(ctx, set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for i := range replicas + excess {
		made, err := c.ours.MachineV1alpha1().Machines(ns).Create(ctx, c.machine(name, i >= replicas), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		if i < replicas {
			c.create(Pod("filler-"+made.Name, 4000, func(p *corev1.Pod) { p.Spec.NodeName = made.Name }))
		}
	}
}

// set changes something under the lock, under which the server must not be asked: its hooks take it, too.
func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// machine is a new one of a pool. It boots.
func (c *cluster) machine(pool string, inReserve bool) *mcm.Machine {
	number := 0
	c.set(func() { c.born++; number = c.born })
	m := fixture.Machine(fmt.Sprintf("%s-%03d", pool, number), func(m *mcm.Machine) {
		m.Labels = map[string]string{"name": pool}
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "MachineSet", Name: pool, Controller: ptr.To(true)}}
		for _, set := range c.Objects(setGVR) {
			if set.GetName() == pool {
				m.OwnerReferences[0].UID = set.GetUID()
			}
		}
	})
	if inReserve {
		m.Annotations = map[string]string{v1alpha1.ReserveAnnotation: v1alpha1.Reserve{Since: time.Now().Truncate(time.Second)}.String()}
	}
	return m
}

func (c *cluster) create(pods ...*corev1.Pod) {
	GinkgoHelper()
	for _, p := range pods {
		status := p.Status
		p.UID, p.Status = "", corev1.PodStatus{}
		_, err := c.core.CoreV1().Pods(ns).Create(context.Background(), p, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		if status.NominatedNodeName == "" {
			continue
		}
		patch, err := json.Marshal(map[string]any{"status": status}) // on no version: the scheduler may have looked at the pod already
		Expect(err).NotTo(HaveOccurred())
		_, err = c.core.CoreV1().Pods(ns).Patch(context.Background(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
	}
}

// fresh are pods that nobody has looked at.
func fresh(n int, name string, milli int64, change ...func(*corev1.Pod)) []*corev1.Pod {
	return Pods(n, name, milli, append(change, Untried)...)
}

func (c *cluster) patch(name, format string, args ...any) {
	GinkgoHelper()
	_, err := c.ours.MachineV1alpha1().MachineDeployments(ns).Patch(context.Background(), name, types.MergePatchType, []byte(fmt.Sprintf(format, args...)), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (c *cluster) settle() {
	GinkgoHelper()
	Expect(c.Settle(5*time.Minute, 12*time.Hour)).To(Succeed())
}

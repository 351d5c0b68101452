// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/mcm"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/internal/sim/world"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	ours "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/lens"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

const (
	ns = fixture.Namespace
	// evenkeel is the process under test: machine-controller-manager's controllers behind the lens, and ours.
	evenkeel = "evenkeel"
)

var (
	machinesGVR    = mcmapi.SchemeGroupVersion.WithResource("machines")
	deploymentsGVR = mcmapi.SchemeGroupVersion.WithResource("machinedeployments")
	nodesGVR       = corev1.SchemeGroupVersion.WithResource("nodes")
	podsGVR        = corev1.SchemeGroupVersion.WithResource("pods")
)

// program runs machine-controller-manager's controllers through the lens with ours beside them, as the binary does.
func program(o machinetaint.Options) storm.Program { return programWith(o, nil) }

// programWith runs another controller beside it.
func programWith(o machinetaint.Options, beside neighbor) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return mcm.RunControllers(ctx, storm.Control(config), storm.Target(config), func(ctx context.Context, inner stock.Interface) mcm.Lens {
			return (&together{inner: inner, ctx: ctx, config: config, options: o, beside: beside, running: &running}).look()
		})
	}
}

// neighbor starts another controller of the process on the same informers.
type neighbor func(t *together, machines *stores.Informers, nodes *target.Informers) error

// together is the whole lens with the controller that it needs.
type together struct {
	*lens.Consistent
	inner   stock.Interface
	ctx     context.Context
	config  *rest.Config
	options machinetaint.Options
	beside  neighbor
	running *sync.WaitGroup
	taint   *machinetaint.Controller
	client  ours.Interface
	core    kubernetes.Interface
	bound   machineinformers.Interface
}

func (t *together) Bind(in machineinformers.Interface) (machineinformers.Interface, error) {
	var err error
	if t.bound, err = t.Consistent.Bind(in); err != nil {
		return nil, err
	}
	client, core := ours.NewForConfigOrDie(storm.Control(t.config)), kubernetes.NewForConfigOrDie(storm.Target(t.config))
	t.client, t.core = client, core
	machines, nodes := stores.New(client, metav1.NamespaceAll), target.New(core, nil)
	t.options.Cluster = reachability.New("target", probe(core), reachability.Options{})
	t.taint, err = machinetaint.New(machinetaint.Clients{Machine: client.MachineV1alpha1(), Target: core},
		machinetaint.Informers{Machine: machines, Seen: t.bound, Target: nodes},
		&record.FakeRecorder{}, t.options)
	if err != nil {
		return nil, err
	}
	if t.beside != nil {
		if err := t.beside(t, machines, nodes); err != nil {
			return nil, err
		}
	}
	machines.Start(t.ctx)
	nodes.Start(t.ctx)
	t.running.Go(func() { _ = t.options.Cluster.Run(t.ctx) })
	t.running.Go(func() {
		defer machines.Shutdown()
		defer nodes.Shutdown()
		t.taint.Run(t.ctx)
	})
	cache.WaitFor(t.ctx, "", t.taint.OwnStores()...)
	return t.bound, nil
}

// probe asks for no Node at all, which costs less than reachability.Nodes in a month of virtual time.
func probe(target kubernetes.Interface) reachability.Probe {
	return func(ctx context.Context) (string, error) {
		list, err := target.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=none"})
		if err != nil {
			return "", err
		}
		return list.ResourceVersion, nil
	}
}

// look builds the lens; births ask the controller, which is there before the first.
func (t *together) look() *together {
	shown := view.New(t.ctx, t.inner, view.Options{CreationOptions: view.CreationOptions{
		ReserveMark: func(b view.Creation) *api.Reserve { return t.taint.ReserveMark(b) },
		Seen:        func(version string) bool { return t.taint.Seen(version) },
		Superfluous: func(b view.Creation) error { return t.taint.Superfluous(b) },
		DeploymentOf: func(namespace string, m *mcmapi.Machine) (types.NamespacedName, bool) {
			return view.OwnedThrough(t.bound.MachineSets().Lister())(namespace, m)
		},
	}, Guards: view.Guards{
		Shrink: func(after *mcmapi.MachineSet) (func(*mcmapi.MachineSet, error), error) {
			return t.taint.Guards().Shrink(after)
		},
		Remove: func(namespace, name string) (string, func(error), error) {
			return t.taint.Guards().Remove(namespace, name)
		},
	}, Spares: func(d *mcmapi.MachineDeployment) ([]view.Spare, int32) { return t.taint.Spares(d) }})
	t.Consistent = lens.New(t.ctx, shown, lens.Options{First: func(m *mcmapi.Machine) bool { return t.taint.InReserve(m) }})
	return t
}

// cluster is a simulated cluster with machines that boot, a machine-controller that keeps Nodes as their templates say, and workload.
type cluster struct {
	*storm.World
	user    ours.Interface
	stock   stock.Interface
	core    kubernetes.Interface
	process *storm.Process
	cloud   *cloud
	pulse   *world.Pulse
	// occupied are the machines that pods run on, as the scheduler last saw or bound them.
	occupied map[string]bool
	// reports says that the scheduler reports which pods it finds no Node for.
	reports bool
}

func adopt(w *storm.World, o machinetaint.Options) *cluster { return adoptAs(w, evenkeel, o) }

// adoptAs runs the process by another name.
func adoptAs(w *storm.World, name string, o machinetaint.Options) *cluster {
	c := inhabit(w)
	c.process = w.Start(name, program(o))
	c.start()
	return c
}

// inhabit returns a cluster in which nothing runs yet.
func inhabit(w *storm.World) *cluster {
	config := w.ConfigFor("user")
	core, user := world.Clients(config)
	c := &cluster{World: w, user: user, stock: stock.NewForConfigOrDie(config), core: core, pulse: world.NewPulse(w)}
	c.cloud = newCloud(c.pulse)
	return c
}

// start the machine-controller, which it returns, and the workload.
func (c *cluster) start() *storm.Process {
	machines := c.Start("machines", c.actor(c.cloud.Look))
	c.Start("workload", c.actor(c.workload().Look))
	return machines
}

func (c *cluster) actor(look world.Look) storm.Program {
	return world.Actor{Pulse: c.pulse, Every: time.Second, Look: look}.Run
}

var served = slices.Concat(sim.Core, sim.Machine)

// play runs body on a cluster in virtual time.
func play(body func(c *cluster)) { playWith(sim.Options{Seed: 1, Resources: served}, body) }

func playWith(o sim.Options, body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := adopt(storm.NewWorld(o), machinetaint.Options{})
		defer c.End()
		c.Latency(2 * time.Millisecond)
		body(c)
	})
}

// pool makes a MachineDeployment, and a pod for each of its replicas.
func (c *cluster) pool(replicas int32, change ...func(*api.MachineDeployment)) {
	GinkgoHelper()
	world.Create(c.user.MachineV1alpha1().MachineDeployments(ns), world.MachineDeployment("pool", replicas, change...))
}

// work makes pods that each take a whole machine.
func (c *cluster) work(pods int) {
	GinkgoHelper()
	for i := range pods {
		world.Create(c.core.CoreV1().Pods(ns), fixture.Pod(fmt.Sprintf("work-%d-%d", time.Now().Unix(), i), replicated))
	}
}

// safeToEvict annotates the pods on these machines.
func (c *cluster) safeToEvict(value string, machines ...string) {
	GinkgoHelper()
	for _, pod := range world.List[corev1.Pod](c, podsGVR) {
		if slices.Contains(machines, pod.Spec.NodeName) {
			world.Patch(c.core.CoreV1().Pods(ns), pod.Name, `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":%q}}}`, value)
		}
	}
}

// strangers are Nodes that no pod runs on and that no Machine here has; ready says whether they are.
func (c *cluster) strangers(n int, ready corev1.ConditionStatus) {
	GinkgoHelper()
	ctx, nodes := context.Background(), c.core.CoreV1().Nodes()
	for i := range n {
		node := fixture.Node(fmt.Sprintf("stranger-%d", i), func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}}
		})
		if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			Expect(err).NotTo(HaveOccurred())
		}
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, ready)
		_, err := nodes.Patch(ctx, node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
	}
}

// busy are the machines that pods run on.
func (c *cluster) busy() (names []string) {
	for _, pod := range world.List[corev1.Pod](c, podsGVR) {
		if pod.Spec.NodeName != "" {
			names = append(names, pod.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return names
}

// name names a machine for deletion as an autoscaler does, in one write with fewer replicas, and beside those that are named still.
func (c *cluster) name(replicas int, machine string) {
	GinkgoHelper()
	now := time.Now().UTC().Format(time.RFC3339)
	names := machine + "~" + now
	if others := c.deployment().Annotations[machineutils.TriggerDeletionByMCM]; others != "" {
		names = others + "," + names
	}
	c.patch(`{"spec":{"replicas":%d},"metadata":{"annotations":{"node.machine.sapcloud.io/trigger-deletion-by-mcm":"%s","machine.sapcloud.io/last-deployment-replica-change-by-scaler-time":"%s"}}}`,
		replicas, names, now)
}

// typed writes the whole object as a client does that knows only machine-controller-manager's own types.
func (c *cluster) typed(change func(*mcmapi.MachineDeployment)) {
	GinkgoHelper()
	world.Change(c.stock.MachineV1alpha1().MachineDeployments(ns), "pool", change)
}

func excess(n int32) func(*api.MachineDeployment) {
	return func(d *api.MachineDeployment) { d.Spec.ExcessReplicas = &n }
}

func bounds(text string) func(*api.MachineDeployment) {
	return func(d *api.MachineDeployment) { d.Annotations = map[string]string{api.BoundsAnnotation: text} }
}

func (c *cluster) patch(format string, args ...any) {
	GinkgoHelper()
	world.Patch(c.user.MachineV1alpha1().MachineDeployments(ns), "pool", format, args...)
}

func (c *cluster) scale(replicas int) { GinkgoHelper(); c.patch(`{"spec":{"replicas":%d}}`, replicas) }
func (c *cluster) want(excess int)    { GinkgoHelper(); c.patch(`{"spec":{"excessReplicas":%d}}`, excess) }
func (c *cluster) settle()            { GinkgoHelper(); Expect(c.Settle(quiet, 24*time.Hour)).To(Succeed()) }

// quiet is longer than anything here waits before it looks again, patience included.
const quiet = 25 * time.Minute

func (c *cluster) deployment() *api.MachineDeployment {
	GinkgoHelper()
	return world.Stored[api.MachineDeployment](c, deploymentsGVR, ns, "pool")
}

func (c *cluster) machines() []*mcmapi.Machine { return world.List[mcmapi.Machine](c, machinesGVR) }

func (c *cluster) node(name string) *corev1.Node {
	if o := c.Get(nodesGVR, "", name); o != nil {
		return world.Decoded[corev1.Node](o.Object)
	}
	return nil
}

func marked(m *mcmapi.Machine) bool { return m.Annotations[api.ReserveAnnotation] != "" }

// names of the machines that serve and of those in reserve. Every part of every mark is where it belongs.
func (c *cluster) names() (serving, reserve []string) {
	GinkgoHelper()
	for _, m := range c.machines() {
		Expect(tainted(m.Spec.NodeTemplateSpec.Spec.Taints)).To(Equal(marked(m)), "template of "+m.Name)
		if node := c.node(m.Name); node != nil {
			Expect(tainted(node.Spec.Taints)).To(Equal(marked(m)), "taint of "+m.Name)
			Expect(node.Annotations[api.ReserveAnnotation] != "").To(Equal(marked(m)), "annotation of "+m.Name)
			Expect(node.Annotations[api.ScaleDownDisabledAnnotation] == "true").To(Equal(marked(m)), "scale-down of %s: %v", m.Name, node.Annotations)
			expectState(m)
		}
		if marked(m) {
			reserve = append(reserve, m.Name)
		} else {
			serving = append(serving, m.Name)
		}
	}
	return serving, reserve
}

// expectState compares what a Machine with a Node says of itself with what it is.
func expectState(m *mcmapi.Machine) {
	GinkgoHelper()
	state := m.Annotations[api.ReserveStateAnnotation]
	if !marked(m) {
		// One that was released while it booted had no Node to speak of.
		Expect(state).To(Or(BeEmpty(), MatchRegexp(`^Released at \S+( \(\w+\))?(; node %s does not carry the reserve taint)?$`, m.Name)), "state of "+m.Name)
		return
	}
	mark, err := api.ParseReserve(m.Annotations[api.ReserveAnnotation])
	Expect(err).NotTo(HaveOccurred())
	Expect(state).To(Equal(fmt.Sprintf("Held since %s; node %s carries the reserve taint", mark.Since.Format(time.RFC3339), m.Name)), "state of "+m.Name)
}

func tainted(taints []corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == api.ReserveTaintKey })
}

// numbers are S/V as they are, then the status, then the condition.
func (c *cluster) numbers() string {
	GinkgoHelper()
	serving, reserve := c.names()
	d := c.deployment()
	said := ""
	for _, condition := range d.Status.Conditions {
		if condition.Type == api.ReserveReady {
			said = fmt.Sprintf(" %s %s", condition.Status, condition.Reason)
		}
	}
	return fmt.Sprintf("%d+%d status %d/%d%s", len(serving), len(reserve), d.Status.ReadyExcessReplicas, d.Status.ExcessReplicas, said)
}

// written are the writes of the process since a number of writes, without Events and Leases.
func (c *cluster) written(since int) []string {
	var all []string
	for _, w := range c.Writes()[since:] {
		if w.User == evenkeel && w.Resource != "events" && w.Resource != "leases" {
			all = append(all, strings.Join([]string{w.Verb, w.Resource, w.Name, w.Subresource}, " "))
		}
	}
	return all
}

// countMoves counts pods that had to be replaced.
func (c *cluster) countMoves(moved *int) func(sim.Write) error {
	return func(w sim.Write) error {
		if w.Resource == "pods" && w.Verb == "delete" && w.User == "workload" {
			*moved++
		}
		return nil
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	ours "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

const (
	ns = fixture.Namespace
	// evenkeel is the process under test.
	evenkeel = "evenkeel"
)

var (
	machinesGVR    = mcmapi.SchemeGroupVersion.WithResource("machines")
	deploymentsGVR = mcmapi.SchemeGroupVersion.WithResource("machinedeployments")
	nodesGVR       = corev1.SchemeGroupVersion.WithResource("nodes")
	podsGVR        = corev1.SchemeGroupVersion.WithResource("pods")
)

// cluster is a simulated cluster with machines that boot, a machine-controller that keeps Nodes as their templates say, and workload.
type cluster struct {
	*storm.World
	user    ours.Interface
	stock   stock.Interface
	core    kubernetes.Interface
	process *storm.Process
	cloud   *cloud
	waker   *world.Waker
	// occupied are the machines that pods run on, as the scheduler last saw or bound them.
	occupied map[string]bool
	// worked is how many pods work has made.
	worked int
	// reports means that the scheduler reports the pods for which it finds no Node.
	reports bool
}

func adopt(w *storm.World, o machinetaint.Settings) *cluster { return adoptAs(w, evenkeel, o) }

// adoptAs runs the process by another name.
func adoptAs(w *storm.World, name string, o machinetaint.Settings) *cluster {
	c := inhabit(w)
	c.process = w.Start(name, manager.Program(o))
	c.start()
	return c
}

// inhabit returns a cluster in which nothing runs yet.
func inhabit(w *storm.World) *cluster {
	config := w.ConfigFor("user")
	core, user := world.Clients(config)
	c := &cluster{World: w, user: user, stock: stock.NewForConfigOrDie(config), core: core, waker: world.NewWaker(w)}
	c.cloud = newCloud(c.waker)
	return c
}

// start the machine-controller, which it returns, and the workload.
func (c *cluster) start() *storm.Process {
	machines := c.Start("machines", c.actor(c.cloud.Reconcile))
	c.Start("workload", c.actor(c.workload().Reconcile))
	return machines
}

func (c *cluster) actor(reconcile world.Reconcile) storm.Program {
	return world.Actor{Waker: c.waker, Delay: time.Second, Reconcile: reconcile}.Run
}

var served = slices.Concat(sim.Core, sim.Machine)

// play runs body on a cluster in virtual time.
func play(body func(c *cluster)) { playWith(sim.Options{Seed: 1, Resources: served}, body) }

func playWith(o sim.Options, body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := adopt(storm.NewWorld(o), machinetaint.Settings{})
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
	for range pods {
		c.worked++
		world.Create(c.core.CoreV1().Pods(ns), fixture.Pod(fmt.Sprintf("work-%d-%d", time.Now().Unix(), c.worked), replicated))
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
		if pod.Spec.NodeName != "" && !pool.IsNodeAgent(pod) {
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

const (
	lastApplied = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
	bootTime    = 20 * time.Second
	drainTime   = 10 * time.Second
	settleTime  = 15 * time.Second
)

// cloud does what a machine-controller and its provider do: machines boot, their Nodes get what their templates say, as far as its own
// bookkeeping knows, they fail and recover when told, and go.
type cloud struct {
	*world.Cloud
	// out means that no machine can be created; bare that Nodes register without the taints of their machines.
	out, bare bool
	// broken is a class whose machines cannot be created.
	broken string
	// sick names machines whose Node is not ready.
	sick map[string]bool
	// late names machines that do not boot for now.
	late map[string]bool
	// lost names machines whose Node a restore has left out: they do not recover.
	lost map[string]bool
}

func newCloud(w *world.Waker) *cloud {
	c := &cloud{}
	c.Cloud = &world.Cloud{
		Waker: w, Boot: bootTime, Drain: drainTime, Settle: settleTime, ChangeNode: c.register, SyncNode: syncNode,
		Refused:     func(m *mcmapi.Machine) bool { return c.out || c.broken == m.Spec.Class.Name },
		Unhealthy:   func(m *mcmapi.Machine) bool { return c.sick[m.Name] || c.lost[m.Name] },
		BootBlocked: func(m *mcmapi.Machine) bool { return c.late[m.Name] },
	}
	return c
}

func (c *cloud) set(change func()) { c.Waker.Set(change) }

// register gives a new Node the taints of its machine.
func (c *cloud) register(m *mcmapi.Machine, node *corev1.Node) {
	if c.bare {
		return
	}
	var noted mcmapi.NodeTemplateSpec
	noted.Spec.Taints = m.Spec.NodeTemplateSpec.Spec.Taints
	text, _ := json.Marshal(noted) // it always encodes
	node.Spec.Taints, node.Annotations = noted.Spec.Taints, map[string]string{lastApplied: string(text)}
}

// syncNode brings a Node to what its machine's template says. Only what it has given itself does it take away.
func syncNode(ctx context.Context, core kubernetes.Interface, m *mcmapi.Machine) error {
	node, err := core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var last mcmapi.NodeTemplateSpec
	_ = json.Unmarshal([]byte(node.Annotations[lastApplied]), &last) // absent at first
	want := m.Spec.NodeTemplateSpec
	before := node.DeepCopy()
	for key := range last.Annotations {
		if _, still := want.Annotations[key]; !still {
			delete(node.Annotations, key)
		}
	}
	node.Annotations = maps.Clone(node.Annotations)
	for key, value := range want.Annotations {
		node.Annotations = world.WithEntry(node.Annotations, key, value)
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return slices.Contains(last.Spec.Taints, t) && !slices.Contains(want.Spec.Taints, t)
	})
	for _, taint := range want.Spec.Taints {
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
	forgotten := slices.ContainsFunc(last.Spec.Taints, func(t corev1.Taint) bool { return !slices.Contains(want.Spec.Taints, t) })
	if !forgotten && maps.Equal(before.Annotations, node.Annotations) && len(before.Spec.Taints) == len(node.Spec.Taints) {
		return nil
	}
	text, _ := json.Marshal(want) // it always encodes
	node.Annotations = world.WithEntry(node.Annotations, lastApplied, string(text))
	_, err = core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	return err
}

// workload is a scheduler with pods that each take a whole machine. Those whose machine goes wait again.
func (c *cluster) workload() world.Scheduler {
	return world.Scheduler{OnePodPerNode: true, NoStatus: !c.reports, Replace: reschedule, Occupied: func(nodes map[string]bool) {
		c.waker.Do(func() { c.occupied = nodes })
	}}
}

// holds reports whether the scheduler last saw or bound pods on a machine.
func (c *cluster) holds(machine string) (yes bool) {
	c.waker.Do(func() { yes = c.occupied[machine] })
	return yes
}

// reschedule replaces a pod whose machine drains or is gone.
func reschedule(ctx context.Context, core kubernetes.Interface, pod *corev1.Pod) error {
	if err := core.CoreV1().Pods(ns).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := core.CoreV1().Pods(ns).Create(ctx, fixture.Pod(fmt.Sprintf("%s-%d", "pod", time.Now().UnixNano()), replicated, func(p *corev1.Pod) {
		p.Spec.Containers = pod.Spec.Containers
	}), metav1.CreateOptions{})
	return err
}

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
	for _, w := range world.WritesOf(c.World, evenkeel, since) {
		all = append(all, strings.Join([]string{w.Verb, w.Resource, w.Name, w.Subresource}, " "))
	}
	return all
}

// countMoves counts pods that have to be replaced from now on.
func (c *cluster) countMoves() (moved *int) {
	moved = new(int)
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource == "pods" && w.Verb == "delete" && w.User == "workload" {
			*moved++
		}
		return nil
	})
	return moved
}

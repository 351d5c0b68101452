// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"fmt"
	"slices"
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
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
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

func adopt(w *storm.World, o machinetaint.Options) *cluster { return adoptAs(w, evenkeel, o) }

// adoptAs runs the process by another name.
func adoptAs(w *storm.World, name string, o machinetaint.Options) *cluster {
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

// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing/synctest"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/test/bufconn"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan/plantest"
)

var (
	deploymentsGVR = mcm.SchemeGroupVersion.WithResource("machinedeployments")
	machinesGVR    = mcm.SchemeGroupVersion.WithResource("machines")
)

// serving is the identity of the server under test.
const serving = "nodegroups"

// wire is a network of one cable: whoever serves listens on it, whoever calls dials it.
type wire struct {
	// server is the last that was started.
	server   *Server
	mu       sync.Mutex
	listener *bufconn.Listener
}

func (w *wire) listen() *bufconn.Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener = bufconn.Listen(1 << 16)
	return w.listener
}

func (w *wire) dial(ctx context.Context, _ string) (net.Conn, error) {
	w.mu.Lock()
	listener := w.listener
	w.mu.Unlock()
	if listener == nil {
		return nil, fmt.Errorf("nobody listens")
	}
	return listener.DialContext(ctx)
}

// server is a Server with its informers, on a wire.
func server(w *wire, change ...func(*Options)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		config.QPS = -1
		ours, core := versioned.NewForConfigOrDie(storm.Control(config)), kubernetes.NewForConfigOrDie(storm.Target(config))
		machines, nodes := stores.New(ours, metav1.NamespaceAll), target.New(core, nil)
		options := Options{
			Namespace: ns, GPULabel: DefaultGPULabel,
			Control: reachability.New("control", reachability.MachineDeployments(ours.MachineV1alpha1(), ns), reachability.Options{}),
			Target:  reachability.New("target", reachability.Nodes(core), reachability.Options{}),
		}
		var probing sync.WaitGroup
		defer probing.Wait()
		for _, cluster := range []*reachability.Cluster{options.Control, options.Target} {
			probing.Go(func() { _ = cluster.Run(ctx) })
		}
		for _, f := range change {
			f(&options)
		}
		s, err := New(Clients{Machines: ours.MachineV1alpha1()},
			Informers{Machines: machines, Target: nodes}, options)
		if err != nil {
			return err
		}
		w.server = s
		machines.Start(ctx)
		defer machines.Shutdown()
		nodes.Start(ctx)
		defer nodes.Shutdown()
		return s.Run(ctx, w.listen(), nil)
	}
}

// cluster is a simulated cluster with a server of node groups and somebody who calls it.
type cluster struct {
	*storm.World
	*caller
	wire    *wire
	process *storm.Process
	core    kubernetes.Interface
	ours    machineclient.MachineV1alpha1Interface
}

// play runs body on a cluster in virtual time.
func play(body func(c *cluster), change ...func(*Options)) {
	GinkgoHelper()
	storm.Bubble(suite, func() {
		c := adopt(storm.NewWorld(sim.Options{Seed: 1}))
		defer c.end()
		c.process = c.Start(serving, server(c.wire, change...))
		c.lull()
		body(c)
	})
}

func adopt(w *storm.World) *cluster {
	config := w.ConfigFor("user")
	config.QPS = -1
	c := &cluster{World: w, wire: &wire{}, core: kubernetes.NewForConfigOrDie(config), ours: versioned.NewForConfigOrDie(config).MachineV1alpha1()}
	c.caller = newCaller(c.wire)
	return c
}

func (c *cluster) end() {
	c.hangUp()
	c.World.End()
}

// lull lets everything that is due happen.
func (c *cluster) lull() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// pool makes a MachineDeployment with its MachineSet.
func (c *cluster) pool(name, bounds string, replicas int32, change ...func(*v1alpha1.MachineDeployment)) {
	GinkgoHelper()
	plain := fixture.MachineDeployment(name, replicas)
	d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: v1alpha1.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec}}
	if bounds != "" {
		d.Annotations = map[string]string{v1alpha1.BoundsAnnotation: bounds}
	}
	for _, f := range change {
		f(d)
	}
	d, err := c.ours.MachineDeployments(ns).Create(context.Background(), d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name + "-1", Namespace: ns, OwnerReferences: []metav1.OwnerReference{ownedBy("MachineDeployment", d)}}}
	_, err = c.ours.MachineSets(ns).Create(context.Background(), set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func ownedBy(kind string, o metav1.Object) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: mcm.SchemeGroupVersion.String(), Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: &yes}
}

// machine makes a Machine of a pool, and its Node if it runs.
func (c *cluster) machine(group, name string, phase mcm.MachinePhase, change ...func(*v1alpha1.Machine)) {
	GinkgoHelper()
	ctx := context.Background()
	set, err := c.ours.MachineSets(ns).Get(ctx, group+"-1", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	m := plantest.Machine(phase, change...)
	m.Name, m.OwnerReferences = name, []metav1.OwnerReference{ownedBy("MachineSet", set)}
	if phase == mcm.MachineRunning {
		m.Labels, m.Spec.ProviderID = map[string]string{mcm.NodeLabelKey: "node-" + name}, "virtual:///node-"+name
	}
	status := m.Status
	made, err := c.ours.Machines(ns).Create(ctx, m, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	made.Status = status
	_, err = c.ours.Machines(ns).UpdateStatus(ctx, made, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	if phase == mcm.MachineRunning {
		node := fixture.Node("node-"+name, func(n *corev1.Node) {
			n.Status.Conditions[0].LastTransitionTime = metav1.Now()
			if pool.Marked(m) {
				n.Annotations = map[string]string{v1alpha1.ReserveAnnotation: plantest.NoonText}
			}
		})
		_, err := c.core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// running makes machines that run.
func (c *cluster) running(pool string, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		c.machine(pool, name, mcm.MachineRunning)
	}
}

func (c *cluster) patch(pool, format string, args ...any) {
	GinkgoHelper()
	_, err := c.ours.MachineDeployments(ns).Patch(context.Background(), pool, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (c *cluster) patchMachine(name, format string, args ...any) {
	GinkgoHelper()
	_, err := c.ours.Machines(ns).Patch(context.Background(), name, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (c *cluster) patchNode(name, format string, args ...any) {
	GinkgoHelper()
	_, err := c.core.CoreV1().Nodes().Patch(context.Background(), name, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (c *cluster) deployment(name string) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(c.Get(deploymentsGVR, ns, name).Object, d)).To(Succeed())
	return d
}

func (c *cluster) replicas(name string) int32 { return c.deployment(name).Spec.Replicas }

// writes are those of the server but for Leases, as in "patch machinedeployments pool".
func (c *cluster) writes() []string {
	var all []string
	for _, w := range c.Writes() {
		if w.User == serving && w.Resource != "leases" {
			all = append(all, fmt.Sprintf("%s %s %s", w.Verb, w.Resource, w.Name))
		}
	}
	return all
}

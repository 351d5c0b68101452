// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// suite is what synctest wants to know; specs run while TestNodeGroup does.
var suite *testing.T

func TestNodeGroup(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Node groups")
}

const ns = builders.Namespace

func code(err error) codes.Code { return status.Code(err) }

var (
	deploymentsGVR = mcm.SchemeGroupVersion.WithResource("machinedeployments")
	machinesGVR    = mcm.SchemeGroupVersion.WithResource("machines")
)

// serving is the identity of the server under test.
const serving = "nodegroups"

// wire is a network in memory: the server listens on it, and clients dial it.
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
		return nil, fmt.Errorf("no server listens")
	}
	return listener.DialContext(ctx)
}

// server is a Server with its informers, on a wire.
func server(w *wire, change ...func(*Options)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		ours, core := versioned.NewForConfigOrDie(storm.Control(config)), kubernetes.NewForConfigOrDie(storm.Target(config))
		machines, nodes := stores.New(ours, metav1.NamespaceAll), target.New(core, nil)
		options := Options{Namespace: ns, GPULabel: DefaultGPULabel, Control: world.ControlCluster(ours), Target: world.TargetCluster(core)}
		for _, f := range change {
			f(&options)
		}
		s, err := New(Clients{Machines: ours.MachineV1alpha1()}, Informers{Machines: machines, Target: nodes}, options)
		if err != nil {
			return err
		}
		w.server = s
		world.Process{Clusters: []*reachability.Cluster{options.Control, options.Target}, Informers: []world.Informers{machines, nodes}}.Run(ctx, func(ctx context.Context) {
			err = s.Run(ctx, w.listen(), nil)
		})
		return err
	}
}

// cluster is a simulated cluster with a server of node groups and a client of it.
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
	core, ours := world.Clients(w.ConfigFor("user"))
	c := &cluster{World: w, wire: &wire{}, core: core, ours: ours.MachineV1alpha1()}
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
	d := world.MachineDeployment(name, replicas)
	if bounds != "" {
		d.Annotations[v1alpha1.BoundsAnnotation] = bounds
	}
	for _, f := range change {
		f(d)
	}
	world.CreatePool(c.ours, d, name+"-1")
}

// machine makes a Machine of a pool, and its Node if it runs.
func (c *cluster) machine(group, name string, phase mcm.MachinePhase, change ...func(*v1alpha1.Machine)) {
	GinkgoHelper()
	set, err := c.ours.MachineSets(ns).Get(context.Background(), group+"-1", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	m := builders.Machine(phase, change...)
	m.Name, m.OwnerReferences = name, world.OwnedBy("MachineSet", set)
	if phase == mcm.MachineRunning {
		m.Labels, m.Spec.ProviderID = map[string]string{mcm.NodeLabelKey: "node-" + name}, "virtual:///node-"+name
	}
	world.CreateWithStatus(c.ours.Machines(ns), m)
	if phase == mcm.MachineRunning {
		world.Create(c.core.CoreV1().Nodes(), fixture.Node("node-"+name, func(n *corev1.Node) {
			n.Status.Conditions[0].LastTransitionTime = metav1.Now()
			if pool.Marked(m) {
				n.Annotations = map[string]string{v1alpha1.ReserveAnnotation: builders.NoonText}
			}
		}))
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
	world.Patch(c.ours.MachineDeployments(ns), pool, format, args...)
}

func (c *cluster) patchMachine(name, format string, args ...any) {
	GinkgoHelper()
	world.Patch(c.ours.Machines(ns), name, format, args...)
}

func (c *cluster) patchNode(name, format string, args ...any) {
	GinkgoHelper()
	world.Patch(c.core.CoreV1().Nodes(), name, format, args...)
}

func (c *cluster) deployment(name string) *v1alpha1.MachineDeployment {
	GinkgoHelper()
	return world.Stored[v1alpha1.MachineDeployment](c, deploymentsGVR, ns, name)
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

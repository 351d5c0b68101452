// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	machines "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var suite *testing.T

func TestMachineDeployment(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Machinedeployment")
}

var (
	setGVR     = mcm.SchemeGroupVersion.WithResource("machinesets")
	machineGVR = mcm.SchemeGroupVersion.WithResource("machines")
)

// name is the identity of the controller.
const name = "controllers"

// controller is the program under test, as a process runs it.
func controller(ctx context.Context, config *rest.Config) error {
	return exposed(func(*Controller) {})(ctx, config)
}

// exposed is the program under test, which shows its controller.
func exposed(show func(*Controller)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		core, ours := world.Clients(config)
		machines, nodes := stores.New(ours, fixture.Namespace), target.New(core, nil)
		cluster := world.ControlCluster(ours)
		c, err := New(Clients{ours.MachineV1alpha1(), core.CoreV1()}, Informers{Machines: machines, Target: nodes}, &world.Recorder{Core: core}, Options{Cluster: cluster, Settings: plan.Settings{ProtectInRollout: true, SafetyUp: 2, SafetyDown: 1}})
		if err != nil {
			return err
		}
		show(c)
		world.Process{Clusters: []*reachability.Cluster{cluster}, Informers: []world.Informers{machines, onlyNodes{nodes}}}.Run(ctx, c.Run)
		return nil
	}
}

// cluster is a simulated cluster whose machines boot, fail and leave.
type cluster struct {
	*storm.World
	*world.Waker
	ours versioned.Interface
	// sick are the names of machines whose Node is not ready.
	sick map[string]bool
	// cloud may be changed by Set.
	cloud *world.Cloud
}

func newCluster(o sim.Options) *cluster { return adopt(storm.NewApart(o)) }

func adopt(w *storm.World) *cluster {
	c := &cluster{World: w, Waker: world.NewWaker(w), ours: versioned.NewForConfigOrDie(w.ConfigFor("user")), sick: map[string]bool{}}
	c.Latency(2 * time.Millisecond)
	c.cloud = &world.Cloud{Waker: c.Waker, Boot: 20 * time.Second, Drain: 10 * time.Second, Unhealthy: func(m *mcm.Machine) bool { return c.sick[m.Name] }}
	w.Start("cloud", world.Actor{Waker: c.Waker, Delay: time.Second, Reconcile: c.cloud.Reconcile}.Run)
	w.Start("garbage", func(ctx context.Context, _ *rest.Config) error {
		w.Control.CollectGarbage(ctx, time.Second)
		return nil
	})
	return c
}

// play runs body on a cluster with the controller, in virtual time.
func play(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		c.Start(name, controller)
		body(c)
	})
}

// settle waits for longer than a watch may be late after a storm.
func (c *cluster) settle() {
	GinkgoHelper()
	Expect(c.Settle(15*time.Minute, 6*time.Hour)).To(Succeed())
}

func (c *cluster) sets() machines.MachineSetInterface {
	return c.ours.MachineV1alpha1().MachineSets(fixture.Namespace)
}

func (c *cluster) machines() machines.MachineInterface {
	return c.ours.MachineV1alpha1().Machines(fixture.Namespace)
}

// create creates a MachineSet.
func (c *cluster) create(name string, replicas int32, change ...func(*mcm.MachineSet)) *mcm.MachineSet {
	GinkgoHelper()
	s := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}}
	s.Spec.Replicas = replicas
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
	s.Spec.Template.Labels = map[string]string{"name": name}
	s.Spec.Template.Spec.Class = mcm.ClassSpec{Kind: "MachineClass", Name: fixture.Class}
	for _, change := range change {
		change(s)
	}
	return world.Create(c.sets(), s)
}

func (c *cluster) scale(name string, replicas int) {
	GinkgoHelper()
	world.Patch(c.sets(), name, `{"spec":{"replicas":%d}}`, replicas)
}

func (c *cluster) set(name string) *mcm.MachineSet {
	GinkgoHelper()
	return world.Stored[mcm.MachineSet](c, setGVR, fixture.Namespace, name)
}

// machinesOf returns the machines that a MachineSet controls, the oldest first.
func (c *cluster) machinesOf(name string) (all []*mcm.Machine) {
	for _, m := range world.List[mcm.Machine](c, machineGVR) {
		if owner := metav1.GetControllerOf(m); owner != nil && owner.Name == name {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *mcm.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// fail makes a machine fail at once.
func (c *cluster) fail(m *mcm.Machine) {
	GinkgoHelper()
	_, err := c.machines().Patch(context.Background(), m.Name, types.MergePatchType,
		[]byte(`{"status":{"currentStatus":{"phase":"Failed"},"lastOperation":{"state":"Failed","type":"HealthCheck"}}}`), metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
}

// events are "type reason" of all events, each once.
func (c *cluster) events() (all []string) {
	for _, e := range world.List[corev1.Event](c, corev1.SchemeGroupVersion.WithResource("events")) {
		all = append(all, e.Type+" "+e.Reason)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// wrote returns the writes of the controller since a number of writes, without names of machines.
func (c *cluster) wrote(since int) (all []string) {
	for _, w := range world.WritesOf(c.World, name, since) {
		all = append(all, strings.TrimSpace(w.Verb+" "+w.Resource+" "+w.Subresource))
	}
	return all
}

// onlyNodes starts none but the informer of Nodes.
type onlyNodes struct{ *target.Informers }

func (n onlyNodes) Start(ctx context.Context) { n.StartNodes(ctx) }

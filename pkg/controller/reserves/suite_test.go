// SPDX-License-Identifier: Apache-2.0

package reserves_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	autoscaling "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"
	machines "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var suite *testing.T

func TestReserves(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reserves")
}

var (
	reserveGVR    = v1alpha1.SchemeGroupVersion.WithResource("reserves")
	deploymentGVR = machine.SchemeGroupVersion.WithResource("machinedeployments")
)

var served = slices.Concat(sim.Core, sim.Machine, sim.Devices, []sim.Resource{{
	Group: v1alpha1.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true,
	Scale: &sim.Scale{SpecReplicas: "spec.replicas", StatusReplicas: "status.replicas", Selector: "status.selector"},
}})

// controller is the program under test, as the process runs it.
func controller(ctx context.Context, config *rest.Config) error {
	return recording(&record.FakeRecorder{})(ctx, config)
}

// recording is the same with a recorder of events.
func recording(recorder record.EventRecorder) storm.Program {
	return func(ctx context.Context, config *rest.Config) error { return run(ctx, config, recorder) }
}

func run(ctx context.Context, config *rest.Config, recorder record.EventRecorder) error {
	core, ours := world.Clients(config)
	cluster, machines, nodes := world.ControlCluster(ours), stores.New(ours, Namespace), target.New(core, nil)
	objects := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithNamespace(Namespace))
	c, err := New(Clients{Reserves: ours.AutoscalingV1alpha1(), Machines: ours.MachineV1alpha1()},
		Informers{Reserves: objects.Autoscaling().V1alpha1().Reserves(), Machines: machines, Target: nodes},
		recorder, Options{Cluster: cluster})
	if err != nil {
		return err
	}
	world.Process{
		Clusters: []*reachability.Cluster{cluster}, Informers: []world.Informers{machines, onlyNodes{nodes}, world.InformersOf(objects)},
	}.Run(ctx, c.Run)
	return nil
}

// onlyNodes starts none but the informer of Nodes.
type onlyNodes struct{ *target.Informers }

func (n onlyNodes) Start(ctx context.Context) { n.StartNodes(ctx) }

// cluster is a simulated cluster whose MachineDeployments get the machines that Reserves request.
type cluster struct {
	*storm.World
	ours         versioned.Interface
	machinetaint *world.Reserve
}

func newCluster(o sim.Options) *cluster {
	o.Resources = served
	return adopt(storm.NewWorld(o))
}

func adopt(w *storm.World) *cluster {
	c := &cluster{World: w, ours: versioned.NewForConfigOrDie(w.ConfigFor("user"))}
	c.machinetaint = &world.Reserve{Store: w, SetStatus: func(d *machine.MachineDeployment, exist, ready int, refused bool) (int, int) {
		p := plan.Pool{Deployment: d, Exist: exist, Ready: ready}
		Work(&p, refused)
		return p.Exist, p.Ready
	}}
	w.Start("machinetaint", c.machinetaint.Run)
	return c
}

func (c *cluster) fail(name string, fails bool) { c.machinetaint.Refuse(name, fails) }

func (c *cluster) pools() machines.MachineDeploymentInterface {
	return c.ours.MachineV1alpha1().MachineDeployments(Namespace)
}

func (c *cluster) reserves() autoscaling.ReserveInterface {
	return c.ours.AutoscalingV1alpha1().Reserves(Namespace)
}

func (c *cluster) pool(name string, replicas int32, change ...func(*machine.MachineDeployment)) {
	GinkgoHelper()
	world.Create(c.pools(), Site(name, replicas, change...).Deployment)
}

func (c *cluster) create(r *v1alpha1.Reserve) { GinkgoHelper(); world.Create(c.reserves(), r) }

func (c *cluster) remove(name string) { GinkgoHelper(); world.Delete(c.reserves(), name) }

func (c *cluster) change(name string, change func(*v1alpha1.Reserve)) {
	GinkgoHelper()
	world.Change(c.reserves(), name, change)
}

func (c *cluster) changePool(name string, change func(*machine.MachineDeployment)) {
	GinkgoHelper()
	world.Change(c.pools(), name, change)
}

func (c *cluster) reserve(name string) *v1alpha1.Reserve {
	GinkgoHelper()
	return world.Stored[v1alpha1.Reserve](c, reserveGVR, Namespace, name)
}

// requested are the annotations, as in "a: shop=2, b: -".
func (c *cluster) requested() string {
	var words []string
	for _, d := range c.Objects(deploymentGVR) {
		text, set := d.GetAnnotations()[machine.RequestedExcessAnnotation]
		if !set {
			text = "-"
		}
		words = append(words, d.GetName()+": "+text)
	}
	return strings.Join(words, ", ")
}

// standing is what a Reserve says of itself, as in "5/5 Complete".
func (c *cluster) standing(name string) string {
	r := c.reserve(name)
	return fmt.Sprintf("%d/%d %s", r.Status.ReadyReplicas, r.Status.DesiredReplicas, ready(r).Reason)
}

func ready(r *v1alpha1.Reserve) metav1.Condition {
	return *meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
}

// writes are how many the controller has made since a number of writes, but for Leases.
func (c *cluster) writes(since int) (all []string) {
	for _, w := range world.WritesOf(c.World, "reserves", since) {
		all = append(all, w.Resource+" "+w.Name)
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	buffers "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var suite *testing.T

func TestCapacityBuffer(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "CapacityBuffer")
}

var (
	bufferGVR     = v1beta1.SchemeGroupVersion.WithResource("capacitybuffers")
	reserveGVR    = autoscaling.SchemeGroupVersion.WithResource("reserves")
	deploymentGVR = machine.SchemeGroupVersion.WithResource("machinedeployments")
)

var served = slices.Concat(sim.Core, sim.Machine, sim.Workloads, sim.Shapes, []sim.Resource{
	{Group: autoscaling.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true},
	{Group: v1beta1.GroupName, Version: "v1beta1", Name: "capacitybuffers", Kind: "CapacityBuffer", Namespaced: true, Status: true, Generation: true},
	{Group: "example.com", Version: "v1", Name: "rollouts", Kind: "Rollout", Namespaced: true, Status: true, Generation: true,
		Scale: &sim.Scale{SpecReplicas: "spec.replicas", StatusReplicas: "status.replicas", Selector: "status.selector"}},
})

// controller is the program under test, as the process runs it.
func controller(ctx context.Context, config *rest.Config) error { return run(ctx, config, nil) }

// slow is the controller whose syncs take this long, and are counted.
func slow(takes time.Duration, syncs *atomic.Int32) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		return run(ctx, config, nil, func(it *Controller) { it.SlowLook(takes, syncs) })
	}
}

// counting is the controller with metrics.
func counting(metrics prometheus.Registerer) storm.Program {
	return func(ctx context.Context, config *rest.Config) error { return run(ctx, config, metrics) }
}

// run is the controller, which some may see.
func run(ctx context.Context, config *rest.Config, metrics prometheus.Registerer, seen ...func(*Controller)) error {
	core, ours := world.Clients(config)
	machines, nodes := stores.New(ours, Namespace), target.New(core, nil)
	buffers := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithTransform(StripBuffer))
	control := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithNamespace(Namespace))
	shapes := NewShapes(core, nil)
	scales, err := NewScaleReader(storm.Target(config), kubernetes.NewForConfigOrDie(storm.Target(config)))
	if err != nil {
		return err
	}
	o := Options{Namespace: Namespace, FillOnce: true, Scales: scales, Control: world.ControlCluster(ours), Target: world.TargetCluster(core), Registerer: metrics}
	it, err := New(Clients{Buffers: ours.CapacityBufferV1beta1(), Reserves: ours.AutoscalingV1alpha1()},
		Informers{Buffers: buffers.CapacityBuffer().V1beta1().CapacityBuffers().Informer(), Reserves: control.Autoscaling().V1alpha1().Reserves().Informer(),
			Machines: machines, Target: nodes, Shapes: shapes}, o)
	if err != nil {
		return err
	}
	for _, see := range seen {
		see(it)
	}
	world.Process{
		Clusters:  []*reachability.Cluster{o.Control, o.Target},
		Informers: []world.Informers{machines, nodes, world.InformersOf(buffers), world.InformersOf(control), world.InformersOf(shapes)},
	}.Run(ctx, it.Run)
	return nil
}

// spreader is the controller of Reserves. It starts afresh if the cluster is restored from a backup.
func spreader(ctx context.Context, config *rest.Config) error {
	core, ours := world.Clients(config)
	for ctx.Err() == nil {
		machines, nodes, cluster := stores.New(ours, Namespace), target.New(core, nil), world.ControlCluster(ours)
		objects := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithNamespace(Namespace))
		it, err := reserves.New(reserves.Clients{Reserves: ours.AutoscalingV1alpha1(), Machines: ours.MachineV1alpha1()},
			reserves.Informers{Reserves: objects.Autoscaling().V1alpha1().Reserves(), Machines: machines, Target: nodes},
			&record.FakeRecorder{}, reserves.Options{Cluster: cluster})
		if err != nil {
			return err
		}
		world.Process{
			Clusters: []*reachability.Cluster{cluster, world.TargetCluster(core)}, Informers: []world.Informers{machines, nodes, world.InformersOf(objects)},
		}.Run(ctx, it.Run)
	}
	return nil
}

// cluster is two simulated clusters, of which one has pods and buffers, and the other MachineDeployments that get the machines that
// Reserves request.
type cluster struct {
	*storm.World
	core kubernetes.Interface
	ours versioned.Interface
	// machinetaint keeps the machines that Reserves request.
	machinetaint *world.Reserve
}

func newCluster(o sim.Options) *cluster {
	o.Resources = served
	return adopt(storm.NewApart(o))
}

// still is a cluster without the double that keeps machines in reserve.
func still(w *storm.World) *cluster {
	core, ours := world.Clients(w.ConfigFor("user"))
	return &cluster{World: w, core: core, ours: ours}
}

func adopt(w *storm.World) *cluster {
	c := still(w)
	c.machinetaint = &world.Reserve{Store: w, SetStatus: func(d *machine.MachineDeployment, _, ready int, refused bool) (int, int) {
		p := plan.Pool{Deployment: d, Ready: ready}
		asked, _ := machine.ParseRequestedExcess(d.Annotations[machine.RequestedExcessAnnotation])
		Keep(&p, int(asked.Machines), refused)
		return p.Ready, p.Ready
	}}
	w.Start("machinetaint", c.machinetaint.Run)
	w.Start("reserves", spreader)
	return c
}

func (c *cluster) fail(name string, fails bool) { c.machinetaint.Refuse(name, fails) }

// startWith creates a buffer, and starts the controller.
func (c *cluster) startWith(b *v1beta1.CapacityBuffer) {
	GinkgoHelper()
	c.create(b)
	c.Start("buffers", controller)
	Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
}

// pool creates a MachineDeployment whose machines have four CPUs, as its MachineClass says.
func (c *cluster) pool(name string, limit int) {
	GinkgoHelper()
	d := Site(name, "cpu=4", limit).Deployment
	d.Spec.Template.Spec.Class.Name = "large"
	class := &mcm.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: Namespace}, NodeTemplate: &mcm.NodeTemplate{Capacity: Amounts("cpu=4,memory=16Gi")}}
	_, _ = c.ours.MachineV1alpha1().MachineClasses(Namespace).Create(context.Background(), class, metav1.CreateOptions{}) // the first time
	world.Create(c.ours.MachineV1alpha1().MachineDeployments(Namespace), d)
}

// deploy creates a Deployment whose pods request two CPUs.
func (c *cluster) deploy(name string, replicas int32) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Shop}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(replicas), Template: corev1.PodTemplateSpec{Spec: PodSpec("cpu=2")},
	}}
	world.Create(c.core.AppsV1().Deployments(Shop), d)
}

func (c *cluster) scale(name string, replicas int32) {
	GinkgoHelper()
	world.Patch(c.core.AppsV1().Deployments(Shop), name, `{"spec":{"replicas":%d}}`, replicas)
}

func (c *cluster) create(b *v1beta1.CapacityBuffer) { GinkgoHelper(); world.Create(c.buffers(), b) }

func (c *cluster) buffers() buffers.CapacityBufferInterface {
	return c.ours.CapacityBufferV1beta1().CapacityBuffers(Shop)
}

// run creates a pod of a workload, and then binds it.
func (c *cluster) run(name, workload string) {
	GinkgoHelper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Shop, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: workload, UID: "u", Controller: ptr.To(true)}}}}
	p.Spec = PodSpec("cpu=3")
	world.Create(c.core.CoreV1().Pods(Shop), p)
	time.Sleep(5 * time.Second)
	world.Patch(c.core.CoreV1().Pods(Shop), name, `{"spec":{"nodeName":"serving"}}`)
}

// serving creates a machine of a MachineDeployment that accepts pods, with four CPUs.
func (c *cluster) serving(deployment, name string) {
	GinkgoHelper()
	d, err := c.ours.MachineV1alpha1().MachineDeployments(Namespace).Get(context.Background(), deployment, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "machine.sapcloud.io/v1alpha1", Kind: "MachineDeployment", Name: d.Name, UID: d.UID, Controller: ptr.To(true)}}}}
	set, err = c.ours.MachineV1alpha1().MachineSets(Namespace).Create(context.Background(), set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	m := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{mcm.NodeLabelKey: name}, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "machine.sapcloud.io/v1alpha1", Kind: "MachineSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}}}}
	m.Status.CurrentStatus.Phase = mcm.MachineRunning
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = Amounts("cpu=4,memory=16Gi,pods=110")
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	world.CreateWithStatus(c.core.CoreV1().Nodes(), n)
	world.CreateWithStatus(c.ours.MachineV1alpha1().Machines(Namespace), m)
}

// percent is a buffer of a Deployment.
func percent(name, deployment string, percentage int) *v1beta1.CapacityBuffer {
	return NewBuffer(name, fmt.Sprintf("{scalableRef: {apiGroup: apps, kind: Deployment, name: %s}, percentage: %d}", deployment, percentage)).Object
}

func (c *cluster) change(name string, change func(*v1beta1.CapacityBuffer)) {
	GinkgoHelper()
	world.Change(c.buffers(), name, change)
}

func (c *cluster) remove(name string) { GinkgoHelper(); world.Delete(c.buffers(), name) }

func (c *cluster) buffer(name string) *v1beta1.CapacityBuffer {
	GinkgoHelper()
	return world.Stored[v1beta1.CapacityBuffer](c, bufferGVR, Shop, name)
}

// requested are the annotations on MachineDeployments, as in "a=2 b=-".
func (c *cluster) requested() string {
	var words []string
	for _, d := range c.Objects(deploymentGVR) {
		text, set := d.GetAnnotations()[machine.RequestedExcessAnnotation]
		if !set {
			text = "=-"
		}
		words = append(words, d.GetName()+text[strings.LastIndex(text, "="):])
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// writes are those of the controller since a number of writes, but for Leases.
func (c *cluster) writes(since int) (all []string) {
	for _, w := range world.WritesOf(c.World, "buffers", since) {
		all = append(all, w.Resource+" "+w.Name)
	}
	return all
}

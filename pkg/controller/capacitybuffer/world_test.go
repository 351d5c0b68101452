// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan/plantest"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves"
)

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

// clients are those of a process, and whether the clusters answer.
type clients struct {
	ours            versioned.Interface
	core            kubernetes.Interface
	control, target *reachability.Cluster
}

func clientsOf(config *rest.Config) clients {
	config.QPS = -1
	c := clients{ours: versioned.NewForConfigOrDie(config), core: kubernetes.NewForConfigOrDie(config)}
	c.control = reachability.New("control", reachability.MachineDeployments(c.ours.MachineV1alpha1(), Namespace), reachability.Options{})
	c.target = reachability.New("target", reachability.Nodes(c.core), reachability.Options{})
	return c
}

// run runs informers and a controller until ctx ends, or a cluster has gone back.
func (c clients) run(ctx context.Context, all []interface {
	Start(context.Context)
	Shutdown()
}, run func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ended sync.WaitGroup
	defer ended.Wait()
	for _, cluster := range []*reachability.Cluster{c.control, c.target} {
		ended.Go(func() {
			defer cancel()
			_ = cluster.Run(ctx) // where resourceVersions go back, the process starts afresh
		})
	}
	for _, each := range all {
		each.Start(ctx)
		defer each.Shutdown()
	}
	run(ctx)
}

// factory is a factory of informers that starts as the others do.
type factory struct {
	informers.SharedInformerFactory
}

func (f factory) Start(ctx context.Context) { f.StartWithContext(ctx) }

type ourFactory struct {
	externalversions.SharedInformerFactory
}

func (f ourFactory) Start(ctx context.Context) { f.StartWithContext(ctx) }

type started = []interface {
	Start(context.Context)
	Shutdown()
}

// controller is the program under test, as the process runs it.
func controller(ctx context.Context, config *rest.Config) error {
	c := clientsOf(config)
	machines, nodes := stores.New(c.ours, Namespace), target.New(c.core, nil)
	buffers := externalversions.NewSharedInformerFactoryWithOptions(c.ours, 0, externalversions.WithTransform(StripBuffer))
	control := externalversions.NewSharedInformerFactoryWithOptions(c.ours, 0, externalversions.WithNamespace(Namespace))
	shapes := NewShapes(c.core, nil)
	scales, err := NewScaleReader(storm.Target(config), kubernetes.NewForConfigOrDie(storm.Target(config)))
	if err != nil {
		return err
	}
	it, err := New(Clients{Buffers: c.ours.CapacityBufferV1beta1(), Reserves: c.ours.AutoscalingV1alpha1()},
		Informers{Buffers: buffers.CapacityBuffer().V1beta1().CapacityBuffers().Informer(), Reserves: control.Autoscaling().V1alpha1().Reserves().Informer(),
			Machines: machines, Target: nodes, Shapes: shapes},
		Options{Namespace: Namespace, Scales: scales, Control: c.control, Target: c.target})
	if err != nil {
		return err
	}
	c.run(ctx, started{machines, nodes, ourFactory{buffers}, ourFactory{control}, factory{shapes}}, it.Run)
	return nil
}

// spreader is the controller of Reserves.
func spreader(ctx context.Context, config *rest.Config) error {
	c := clientsOf(config)
	machines, nodes := stores.New(c.ours, Namespace), target.New(c.core, nil)
	objects := externalversions.NewSharedInformerFactoryWithOptions(c.ours, 0, externalversions.WithNamespace(Namespace))
	it, err := reserves.New(reserves.Clients{Reserves: c.ours.AutoscalingV1alpha1(), Machines: c.ours.MachineV1alpha1()},
		reserves.Informers{Reserves: objects.Autoscaling().V1alpha1().Reserves(), Machines: machines, Target: nodes},
		&record.FakeRecorder{}, reserves.Options{Cluster: c.control})
	if err != nil {
		return err
	}
	c.run(ctx, started{machines, nodes, ourFactory{objects}}, it.Run)
	return nil
}

// cluster is two simulated clusters, of which one has pods and buffers, and the other MachineDeployments that get the machines that
// Reserves request.
type cluster struct {
	*storm.World
	clients

	mu sync.Mutex
	// out names MachineDeployments where machines cannot be created.
	out map[string]bool
}

func newCluster(o sim.Options) *cluster {
	o.Resources = served
	return adopt(storm.NewApart(o))
}

func adopt(w *storm.World) *cluster {
	c := &cluster{World: w, clients: clientsOf(w.ConfigFor("user")), out: map[string]bool{}}
	w.Start("machinetaint", c.keep)
	w.Start("reserves", func(ctx context.Context, config *rest.Config) error {
		for ctx.Err() == nil { // it ends where the cluster is restored from a backup
			if err := spreader(ctx, config); err != nil {
				return err
			}
		}
		return nil
	})
	return c
}

// keep does what the machine-taint controller does, some seconds later.
func (c *cluster) keep(ctx context.Context, _ *rest.Config) error {
	for ctx.Err() == nil {
		time.Sleep(7 * time.Second)
		for _, object := range c.Objects(deploymentGVR) {
			d := &machine.MachineDeployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d); err != nil {
				return err
			}
			_ = c.keepOne(ctx, d) // else the next time
		}
	}
	return nil
}

// keepOne does it for one MachineDeployment, whose status has no field for the numbers, as in Gardener.
func (c *cluster) keepOne(ctx context.Context, d *machine.MachineDeployment) (err error) {
	before, p, spares := d.Status.DeepCopy(), plan.Pool{Deployment: d}, storm.Spares{Client: c.ours.MachineV1alpha1()}
	if _, p.Ready, err = spares.Count(ctx, d); err != nil {
		return err
	}
	asked, _ := machine.ParseRequestedExcess(d.Annotations[machine.RequestedExcessAnnotation])
	Keep(&p, int(asked.Machines), c.fails(d.Name))
	if !equality.Semantic.DeepEqual(*before, d.Status) {
		if _, err = c.ours.MachineV1alpha1().MachineDeployments(Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return spares.Keep(ctx, d, p.Ready, p.Ready)
}

func (c *cluster) fails(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out[name]
}

func (c *cluster) fail(name string, fails bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out[name] = fails
}

// pool creates a MachineDeployment whose machines have four CPUs, as its MachineClass says.
func (c *cluster) pool(name string, limit int) {
	d := Site(name, "cpu=4", limit).Deployment
	d.Spec.Template.Spec.Class.Name = "large"
	class := &mcm.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: Namespace}, NodeTemplate: &mcm.NodeTemplate{Capacity: Amounts("cpu=4,memory=16Gi")}}
	_, _ = c.ours.MachineV1alpha1().MachineClasses(Namespace).Create(context.Background(), class, metav1.CreateOptions{}) // the first time
	_, err := c.ours.MachineV1alpha1().MachineDeployments(Namespace).Create(context.Background(), d, metav1.CreateOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

// deploy creates a Deployment whose pods request two CPUs.
func (c *cluster) deploy(name string, replicas int32) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Shop}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(replicas), Template: corev1.PodTemplateSpec{Spec: PodSpec("cpu=2")},
	}}
	_, err := c.core.AppsV1().Deployments(Shop).Create(context.Background(), d, metav1.CreateOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

func (c *cluster) scale(name string, replicas int32) {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	_, err := c.core.AppsV1().Deployments(Shop).Patch(context.Background(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

func (c *cluster) create(b *v1beta1.CapacityBuffer) {
	_, err := c.ours.CapacityBufferV1beta1().CapacityBuffers(Shop).Create(context.Background(), b, metav1.CreateOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

// percent is a buffer of a Deployment.
func percent(name, deployment string, percentage int) *v1beta1.CapacityBuffer {
	return NewBuffer(name, fmt.Sprintf("{scalableRef: {apiGroup: apps, kind: Deployment, name: %s}, percentage: %d}", deployment, percentage)).Object
}

func (c *cluster) change(name string, change func(*v1beta1.CapacityBuffer)) {
	ExpectWithOffset(1, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		b := c.buffer(name)
		change(b)
		_, err := c.ours.CapacityBufferV1beta1().CapacityBuffers(Shop).Update(context.Background(), b, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

func (c *cluster) remove(name string) {
	Expect(c.ours.CapacityBufferV1beta1().CapacityBuffers(Shop).Delete(context.Background(), name, metav1.DeleteOptions{})).To(Succeed())
}

func (c *cluster) buffer(name string) *v1beta1.CapacityBuffer {
	b := &v1beta1.CapacityBuffer{}
	raw := c.Get(bufferGVR, Shop, name)
	ExpectWithOffset(2, raw).NotTo(BeNil())
	ExpectWithOffset(2, runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, b)).To(Succeed())
	return b
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
	for _, w := range c.Writes()[since:] {
		if w.User == "buffers" && w.Resource != "leases" && !w.NoOp() {
			all = append(all, w.Resource+" "+w.Name)
		}
	}
	return all
}

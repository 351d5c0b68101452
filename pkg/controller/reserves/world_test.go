// SPDX-License-Identifier: Apache-2.0

package reserves_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan/plantest"
)

var (
	reserveGVR    = v1alpha1.SchemeGroupVersion.WithResource("reserves")
	deploymentGVR = machine.SchemeGroupVersion.WithResource("machinedeployments")
)

var served = slices.Concat(sim.Core, sim.Machine, []sim.Resource{{
	Group: v1alpha1.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true,
	Scale: &sim.Scale{SpecReplicas: "spec.replicas", StatusReplicas: "status.replicas", Selector: "status.selector"},
}})

// controller is the program under test, as the process runs it.
func controller(ctx context.Context, config *rest.Config) error {
	config.QPS = -1
	ours := versioned.NewForConfigOrDie(config)
	probe := reachability.MachineDeployments(ours.MachineV1alpha1(), Namespace)
	cluster := reachability.New("control", probe, reachability.Options{})
	machines, nodes := stores.New(ours, Namespace), target.New(kubernetes.NewForConfigOrDie(config), nil)
	objects := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithNamespace(Namespace))
	c, err := New(Clients{Reserves: ours.AutoscalingV1alpha1(), Machines: ours.MachineV1alpha1()},
		Informers{Reserves: objects.Autoscaling().V1alpha1().Reserves(), Machines: machines, Target: nodes},
		&record.FakeRecorder{}, Options{Cluster: cluster})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ended sync.WaitGroup
	defer ended.Wait()
	ended.Go(func() {
		defer cancel()
		_ = cluster.Run(ctx) // where resourceVersions go back, the process starts afresh
	})
	machines.Start(ctx)
	nodes.StartNodes(ctx)
	objects.StartWithContext(ctx)
	defer machines.Shutdown()
	defer nodes.Shutdown()
	defer objects.Shutdown()
	c.Run(ctx)
	return nil
}

// cluster is a simulated cluster whose MachineDeployments get the machines that Reserves request.
type cluster struct {
	*storm.World
	ours versioned.Interface

	mu sync.Mutex
	// out names MachineDeployments where machines cannot be created.
	out map[string]bool
}

func newCluster(o sim.Options) *cluster {
	o.Resources = served
	return adopt(storm.NewWorld(o))
}

func adopt(w *storm.World) *cluster {
	config := w.ConfigFor("user")
	config.QPS = -1
	c := &cluster{World: w, ours: versioned.NewForConfigOrDie(config), out: map[string]bool{}}
	w.Start("machinetaint", c.keep)
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
	if p.Exist, p.Ready, err = spares.Count(ctx, d); err != nil {
		return err
	}
	Work(&p, c.fails(d.Name))
	if !equality.Semantic.DeepEqual(*before, d.Status) {
		if _, err = c.ours.MachineV1alpha1().MachineDeployments(Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return spares.Keep(ctx, d, p.Exist, p.Ready)
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

func (c *cluster) pool(name string, replicas int32, change ...func(*machine.MachineDeployment)) {
	_, err := c.ours.MachineV1alpha1().MachineDeployments(Namespace).Create(context.Background(), Site(name, replicas, change...).Deployment, metav1.CreateOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

func (c *cluster) create(r *v1alpha1.Reserve) {
	_, err := c.ours.AutoscalingV1alpha1().Reserves(Namespace).Create(context.Background(), r, metav1.CreateOptions{})
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

func (c *cluster) remove(name string) {
	Expect(c.ours.AutoscalingV1alpha1().Reserves(Namespace).Delete(context.Background(), name, metav1.DeleteOptions{})).To(Succeed())
}

func (c *cluster) change(name string, change func(*v1alpha1.Reserve)) {
	ExpectWithOffset(1, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		r := c.reserve(name)
		change(r)
		_, err := c.ours.AutoscalingV1alpha1().Reserves(Namespace).Update(context.Background(), r, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

func (c *cluster) changePool(name string, change func(*machine.MachineDeployment)) {
	ExpectWithOffset(1, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d, err := c.ours.MachineV1alpha1().MachineDeployments(Namespace).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(d)
		_, err = c.ours.MachineV1alpha1().MachineDeployments(Namespace).Update(context.Background(), d, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

func (c *cluster) reserve(name string) *v1alpha1.Reserve {
	r := &v1alpha1.Reserve{}
	raw := c.Get(reserveGVR, Namespace, name)
	ExpectWithOffset(2, raw).NotTo(BeNil())
	ExpectWithOffset(2, runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, r)).To(Succeed())
	return r
}

// requested are the annotations, as in "a: shop=2, b: -".
func (c *cluster) requested() string {
	all := map[string]string{}
	for _, d := range c.Objects(deploymentGVR) {
		text, set := d.GetAnnotations()[machine.RequestedExcessAnnotation]
		if !set {
			text = "-"
		}
		all[d.GetName()] = text
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		words = append(words, name+": "+all[name])
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
	for _, w := range c.Writes()[since:] {
		if w.User == "reserves" && w.Resource != "leases" && !w.NoOp() {
			all = append(all, w.Resource+" "+w.Name)
		}
	}
	return all
}

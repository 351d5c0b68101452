// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var suite *testing.T

func TestBalance(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Balance")
}

const ns = fixture.Namespace

var (
	deploymentGVR = v1alpha1.SchemeGroupVersion.WithResource("machinedeployments")
	machineGVR    = v1alpha1.SchemeGroupVersion.WithResource("machines")
	eventGVR      = corev1.SchemeGroupVersion.WithResource("events")
)

// gardenKinds are a Gardener's, as its own CRDs declare them.
var gardenKinds = []sim.Resource{
	{Group: "extensions.gardener.cloud", Version: "v1alpha1", Name: "workers", Kind: "Worker", Namespaced: true, Status: true, Generation: true},
	{Group: "extensions.gardener.cloud", Version: "v1alpha1", Name: "clusters", Kind: "Cluster"},
}

// served are the kinds of a cluster without a Gardener.
var served = slices.Concat(sim.Core, sim.Machine, sim.Devices, []sim.Resource{
	{Group: "storage.k8s.io", Version: "v1", Name: "storageclasses", Kind: "StorageClass"},
	{Group: "storage.k8s.io", Version: "v1", Name: "csidrivers", Kind: "CSIDriver"},
})

// controller is the program under test.
func controller(change ...func(*plan.Settings)) storm.Program { return program(true, change...) }

// exposed shows the controller that it runs.
func exposed(show func(*Controller)) storm.Program { return run(true, func(*Options) {}, show) }

// adjusted has other options.
func adjusted(adjust func(*Options)) storm.Program { return run(true, adjust, func(*Controller) {}) }

// reaching knows whether the target cluster answers.
func reaching(target *reachability.Cluster) storm.Program {
	return adjusted(func(o *Options) { o.Target = target })
}

func program(target bool, change ...func(*plan.Settings)) storm.Program {
	return run(target, func(*Options) {}, func(*Controller) {}, change...)
}

func run(reached bool, adjust func(*Options), show func(*Controller), change ...func(*plan.Settings)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		core, ours := kubernetes.NewForConfigOrDie(storm.Target(config)), versioned.NewForConfigOrDie(storm.Control(config))
		rights := access.New(clock.RealClock{})
		machines, nodes := stores.New(ours, ns), target.New(core, rights)
		informers := Informers{Machines: machines}
		if reached {
			informers.Target = nodes
		}
		s := NewSettings()
		for _, c := range change {
			c(&s)
		}
		// Another controller of the process has started some informers already.
		machines.Deployments()
		machines.Start(ctx)
		nodes.Pods()
		nodes.Start(ctx)
		o := Options{Namespace: ns, Settings: s, Rights: rights}
		adjust(&o)
		c, err := New(
			Clients{Machines: ours.MachineV1alpha1(), Garden: dynamic.NewForConfigOrDie(storm.Control(config)), Discovery: discovery.NewDiscoveryClientForConfigOrDie(storm.Control(config))},
			informers, &world.Recorder{Core: kubernetes.NewForConfigOrDie(storm.Control(config))}, o)
		if err != nil {
			return err
		}
		show(c)
		machines.Start(ctx)
		defer machines.Shutdown()
		nodes.Start(ctx)
		defer nodes.Shutdown()
		c.Run(ctx)
		return nil
	}
}

// cluster has MachineDeployments, machines that follow them, and pods that each take more than half a machine.
type cluster struct {
	*storm.World
	*world.Waker
	core kubernetes.Interface
	ours versioned.Interface

	out map[string]bool
	// moved counts evictions by what a pod is the successor of.
	moved map[string]int
	// created counts the Machines that were asked for, made those that came up, born numbers what is new.
	created, made, born int
}

func newCluster(o sim.Options) *cluster {
	if o.Resources == nil {
		o.Resources = served
	}
	return adopt(storm.NewApart(o))
}

func adopt(w *storm.World) *cluster {
	core, ours := world.Clients(w.ConfigFor("user"))
	c := &cluster{World: w, Waker: world.NewWaker(w), core: core, ours: ours, out: map[string]bool{}, moved: map[string]int{}}
	w.Start("machines", c.follow)
	w.Start("cloud", c.actor(c.cloud().Reconcile))
	w.Start("scheduler", c.actor(c.scheduler().Reconcile))
	return c
}

// play runs body on a cluster in virtual time.
func play(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		body(c)
	})
}

func (c *cluster) set(change func()) { c.Set(change) }

// deploy makes a MachineDeployment in a zone of its name, with its class, its MachineSet, and its machines at once.
func (c *cluster) deploy(m plan.Member) {
	GinkgoHelper()
	d := m.Object.DeepCopy()
	d.ResourceVersion = ""
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: d.Name}
	class := fixture.MachineClass(d.Name, func(k *mcm.MachineClass) {
		k.NodeTemplate = &mcm.NodeTemplate{Capacity: m.Template.Capacity, InstanceType: "large", Region: "here", Zone: d.Name}
	})
	world.Create(c.ours.MachineV1alpha1().MachineClasses(ns), class)
	world.CreatePool(c.ours.MachineV1alpha1(), d, d.Name)
}

// deployment as it is stored.
func (c *cluster) deployment(name string) *v1alpha1.MachineDeployment {
	GinkgoHelper()
	return world.Stored[v1alpha1.MachineDeployment](c, deploymentGVR, ns, name)
}

func (c *cluster) patch(name, merge string) {
	GinkgoHelper()
	world.Patch(c.ours.MachineV1alpha1().MachineDeployments(ns), name, "%s", merge)
}

func (c *cluster) scale(name string, replicas int) {
	c.patch(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// add raises replicas by so many, whatever others write meanwhile.
func (c *cluster) add(name string, more int) {
	GinkgoHelper()
	world.Change(c.ours.MachineV1alpha1().MachineDeployments(ns), name, func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas += int32(more) })
}

func (c *cluster) annotate(name, key, value string) {
	c.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

// sizes are the replicas of MachineDeployments, as in 4/4/4.
func (c *cluster) sizes(names ...string) string {
	return join(names, func(name string) string { return fmt.Sprint(c.deployment(name).Spec.Replicas) })
}

func (c *cluster) annotations(key string, names ...string) string {
	return join(names, func(name string) string {
		if text := c.deployment(name).Annotations[key]; text != "" {
			return text
		}
		return "-"
	})
}

func join(names []string, what func(string) string) string {
	var words []string
	for _, name := range names {
		words = append(words, what(name))
	}
	return strings.Join(words, "/")
}

// ready are the machines that run, in reserve or not.
func (c *cluster) ready(reserve bool, names ...string) string {
	counts := map[string]int{}
	for _, m := range world.List[mcm.Machine](c, machineGVR) {
		if m.Status.CurrentStatus.Phase == mcm.MachineRunning && m.DeletionTimestamp == nil && world.InReserve(m) == reserve {
			counts[m.Labels["name"]]++
		}
	}
	return join(names, func(name string) string { return fmt.Sprint(counts[name]) })
}

func (c *cluster) condition(name string, kind mcm.MachineDeploymentConditionType) string {
	for _, condition := range c.deployment(name).Status.Conditions {
		if condition.Type == kind {
			return string(condition.Status) + " " + condition.Reason
		}
	}
	return ""
}

// events are "name reason" of all events so far.
func (c *cluster) events() []string {
	var all []string
	for _, e := range world.List[corev1.Event](c, eventGVR) {
		all = append(all, e.InvolvedObject.Name+" "+e.Reason)
	}
	return all
}

// values of a metric, by its label.
func values(registry *prometheus.Registry, name string) map[string]float64 {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	all := map[string]float64{}
	for _, family := range families {
		if family.GetName() == name {
			for _, one := range family.GetMetric() {
				all[one.GetLabel()[0].GetValue()] = one.GetGauge().GetValue() + one.GetCounter().GetValue()
			}
		}
	}
	return all
}

// wrote is how many writes the controller has made since a number of writes, but for events and Leases.
func (c *cluster) wrote(since int) int {
	n := 0
	for _, w := range storm.Sent(c.Writes()[since:]) {
		if strings.HasPrefix(w.User, "balance") {
			n++
		}
	}
	return n
}

func (c *cluster) settle() {
	ExpectWithOffset(1, c.Settle(20*time.Minute, 24*time.Hour)).To(Succeed())
}

// run makes pods, each of which takes more than half a machine.
func (c *cluster) run(names ...string) {
	for _, name := range names {
		c.pod(name, nil)
	}
}

func (c *cluster) pod(name string, change func(*corev1.Pod)) {
	GinkgoHelper()
	p := fixture.Pod(name)
	Large(p)
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app", UID: "app", Controller: &yes}}
	p.Labels = map[string]string{"app": "x", "from": name}
	if change != nil {
		change(p)
	}
	world.Create(c.core.CoreV1().Pods(ns), p)
}

// budget has no pod evicted, or any.
func (c *cluster) budget(allowed int32) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: ns}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	ctx, budgets := context.Background(), c.core.PolicyV1().PodDisruptionBudgets(ns)
	if _, err := budgets.Create(ctx, b, metav1.CreateOptions{}); err != nil {
		_, err = budgets.Get(ctx, "x", metav1.GetOptions{})
		ExpectWithOffset(1, err).NotTo(HaveOccurred())
	}
	_, err := budgets.Patch(ctx, "x", types.MergePatchType, fmt.Appendf(nil, `{"status":{"disruptionsAllowed":%d}}`, allowed), metav1.PatchOptions{}, "status")
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	. "github.com/evenkeel/evenkeel/pkg/controller/booking"
	"github.com/evenkeel/evenkeel/pkg/controller/booking/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var suite *testing.T

func TestBooking(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Booking")
}

const (
	ns   = fixture.Namespace
	jobs = "jobs"
)

var (
	requestGVR    = provisioningv1.SchemeGroupVersion.WithResource("provisioningrequests")
	reserveGVR    = autoscaling.SchemeGroupVersion.WithResource("reserves")
	deploymentGVR = machine.SchemeGroupVersion.WithResource("machinedeployments")
)

var served = slices.Concat(sim.Core, sim.Machine, sim.Workloads, sim.Shapes, []sim.Resource{
	{Group: autoscaling.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true},
	{Group: provisioningv1.GroupName, Version: "v1", Name: "provisioningrequests", Kind: "ProvisioningRequest", Namespaced: true, Status: true, Generation: true},
})

// controller is the program under test, as the process runs it.
func controller(ctx context.Context, config *rest.Config) error { return run(ctx, config, nil) }

// counting is the controller with metrics.
func counting(metrics prometheus.Registerer) storm.Program {
	return func(ctx context.Context, config *rest.Config) error { return run(ctx, config, metrics) }
}

func run(ctx context.Context, config *rest.Config, metrics prometheus.Registerer) error {
	core, ours := world.Clients(config)
	machines, nodes := stores.New(ours, ns), target.New(core, nil)
	requests := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithTransform(StripRequest))
	control := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithNamespace(ns))
	o := Options{Namespace: ns, Control: world.ControlCluster(ours), Target: world.TargetCluster(core), Registerer: metrics}
	it, err := New(Clients{Requests: ours.ProvisioningRequestV1(), Reserves: ours.AutoscalingV1alpha1()},
		Informers{Requests: requests.ProvisioningRequest().V1().ProvisioningRequests().Informer(), Reserves: control.Autoscaling().V1alpha1().Reserves().Informer(),
			Machines: machines, Target: nodes}, o)
	if err != nil {
		return err
	}
	world.Process{
		Clusters:  []*reachability.Cluster{o.Control, o.Target},
		Informers: []world.Informers{machines, nodes, world.InformersOf(requests), world.InformersOf(control)},
	}.Run(ctx, it.Run)
	return nil
}

// spreader is the controller of Reserves.
func spreader(ctx context.Context, config *rest.Config) error {
	core, ours := world.Clients(config)
	machines, nodes, cluster := stores.New(ours, ns), target.New(core, nil), world.ControlCluster(ours)
	objects := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithNamespace(ns))
	it, err := reserves.New(reserves.Clients{Reserves: ours.AutoscalingV1alpha1(), Machines: ours.MachineV1alpha1()},
		reserves.Informers{Reserves: objects.Autoscaling().V1alpha1().Reserves(), Machines: machines, Target: nodes},
		&record.FakeRecorder{}, reserves.Options{Cluster: cluster})
	if err != nil {
		return err
	}
	world.Process{
		Clusters: []*reachability.Cluster{cluster, world.TargetCluster(core)}, Informers: []world.Informers{machines, nodes, world.InformersOf(objects)},
	}.Run(ctx, it.Run)
	return nil
}

// cluster is two simulated clusters, one with pods and requests, and one with MachineDeployments.
type cluster struct {
	*storm.World
	core kubernetes.Interface
	ours versioned.Interface
	// double keeps machines in reserve: as many as spec.excessReplicas.
	double *world.Reserve
}

func newCluster(seed uint64) *cluster {
	w := storm.NewApart(sim.Options{Seed: seed, Resources: served})
	core, ours := world.Clients(w.ConfigFor("user"))
	c := &cluster{World: w, core: core, ours: ours}
	c.double = &world.Reserve{Store: w, SetStatus: func(d *machine.MachineDeployment, _, _ int, _ bool) (int, int) {
		n := int(ptr.Deref(d.Spec.ExcessReplicas, 0))
		return n, n
	}}
	w.Start("double", c.double.Run)
	w.Start("reserves", spreader)
	return c
}

// pool creates a MachineDeployment whose machines have four CPUs, with so many in reserve.
func (c *cluster) pool(name string, spare int32) {
	GinkgoHelper()
	d := world.MachineDeployment(name, 1)
	d.Annotations[machine.BoundsAnnotation] = "1:100"
	d.Spec.ExcessReplicas = &spare
	d.Spec.Template.Spec.Class.Name = "large"
	amounts := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")}
	class := &mcm.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: ns}, NodeTemplate: &mcm.NodeTemplate{Capacity: amounts}}
	_, _ = c.ours.MachineV1alpha1().MachineClasses(ns).Create(context.Background(), class, metav1.CreateOptions{}) // the first time
	world.Create(c.ours.MachineV1alpha1().MachineDeployments(ns), d)
}

func (c *cluster) spare(name string, n int32) {
	GinkgoHelper()
	world.Patch(c.ours.MachineV1alpha1().MachineDeployments(ns), name, `{"spec":{"excessReplicas":%d}}`, n)
}

// request creates a request for pods that need a machine each.
func (c *cluster) request(name string, pods int32, change ...func(*provisioningv1.ProvisioningRequest)) {
	GinkgoHelper()
	t := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: jobs, Name: "whole"}}
	t.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("3")}}}}
	_, _ = c.core.CoreV1().PodTemplates(jobs).Create(context.Background(), t, metav1.CreateOptions{}) // the first time
	r := &provisioningv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: jobs}}
	r.Spec.ProvisioningClassName = provisioningv1.ClassReserved
	r.Spec.PodSets = []provisioningv1.PodSet{{PodTemplateRef: provisioningv1.Reference{Name: "whole"}, Count: pods}}
	for _, f := range change {
		f(r)
	}
	world.Create(c.ours.ProvisioningRequestV1().ProvisioningRequests(jobs), r)
}

// hasNode gives a machine a Node of this name.
func (c *cluster) hasNode(name string) {
	GinkgoHelper()
	m := world.List[mcm.Machine](c, mcm.SchemeGroupVersion.WithResource("machines"))[0]
	world.Change(c.ours.MachineV1alpha1().Machines(ns), m.Name, func(m *mcm.Machine) { metav1.SetMetaDataLabel(&m.ObjectMeta, mcm.NodeLabelKey, name) })
	world.Create(c.core.CoreV1().Nodes(), fixture.Node(name))
}

// uses creates a pod that uses a request.
func (c *cluster) uses(request, name string, change ...func(*corev1.Pod)) {
	GinkgoHelper()
	world.Create(c.core.CoreV1().Pods(jobs), fixture.Pod(name, append(change, func(p *corev1.Pod) {
		p.Namespace, p.Annotations = jobs, map[string]string{provisioningv1.OldConsumeAnnotation: request}
	})...))
}

func (c *cluster) remove(name string) {
	GinkgoHelper()
	world.Delete(c.ours.ProvisioningRequestV1().ProvisioningRequests(jobs), name)
}

// booked are the annotations on MachineDeployments about owners, as in "a: q=2 r=1".
func (c *cluster) booked() string {
	var words []string
	for _, d := range c.Objects(deploymentGVR) {
		if text := d.GetAnnotations()[machine.DedicatedAnnotation]; text != "" {
			words = append(words, d.GetName()+": "+strings.ReplaceAll(text, jobs+"/ProvisioningRequest/", ""))
		}
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// states are the requests that are provisioned, have failed, or whose booking has expired, as in "q=Provisioned r=".
func (c *cluster) states() string {
	var words []string
	for _, r := range world.List[provisioningv1.ProvisioningRequest](c, requestGVR) {
		word := r.Name + "="
		for _, kind := range []string{provisioningv1.ConditionProvisioned, provisioningv1.ConditionFailed, provisioningv1.ConditionBookingExpired} {
			if meta.IsStatusConditionTrue(r.Status.Conditions, kind) {
				word += kind
			}
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// writes are those of the controller since a number of writes, but for Leases.
func (c *cluster) writes(since int) (all []string) {
	for _, w := range world.WritesOf(c.World, "booking", since) {
		all = append(all, w.Resource+" "+w.Name)
	}
	return all
}

// begin starts the controller beside a pool with so many machines in reserve.
func (c *cluster) begin(spare int32) {
	GinkgoHelper()
	c.pool("a", spare)
	c.Start("booking", controller)
	c.settle()
}

func (c *cluster) settle() {
	GinkgoHelper()
	Expect(c.Settle(time.Minute, 3*time.Hour)).To(Succeed())
}

func play(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := newCluster(1)
		defer c.End()
		c.Latency(time.Millisecond)
		body(c)
	})
}

func forAnHour(r *provisioningv1.ProvisioningRequest) {
	r.Spec.Parameters = map[string]provisioningv1.Parameter{provisioningv1.BookingParameter: "3600"}
}

var _ = Describe("The controller", func() {
	It("books machines of the reserve for a request, and gives them back when it is deleted", func() {
		play(func(c *cluster) {
			c.begin(3)
			c.request("r", 2, forAnHour)
			time.Sleep(time.Minute)
			Expect(c.states()).To(Equal("r=Provisioned"))
			Expect(c.booked()).To(Equal("a: r=2"))
			c.remove("r")
			c.settle()
			Expect(c.booked()).To(BeEmpty())
			Expect(c.Objects(reserveGVR)).To(BeEmpty())
		})
	})

	It("serves the oldest request first, and the next one when the booking has expired", func() {
		play(func(c *cluster) {
			c.begin(3)
			c.request("q", 2)
			time.Sleep(time.Second)
			c.request("r", 2)
			time.Sleep(time.Minute)
			Expect(c.states()).To(Equal("q=Provisioned r="))
			time.Sleep(10 * time.Minute)
			Expect(c.states()).To(Equal("q=ProvisionedBookingExpired r=Provisioned"))
			Expect(c.booked()).To(Equal("a: r=2"))
		})
	})

	It("serves the oldest request first, whatever its name is", func() {
		play(func(c *cluster) {
			c.begin(3)
			c.request("z", 4, forAnHour)
			time.Sleep(time.Second)
			c.request("b", 4, forAnHour)
			time.Sleep(time.Minute)
			c.spare("a", 4)
			time.Sleep(time.Minute)
			Expect(c.states()).To(Equal("b= z=Provisioned"))
		})
	})

	It("writes a status again that could not be written", func() {
		play(func(c *cluster) {
			c.begin(3)
			c.Trouble("provisioningrequests", sim.Trouble{Writes: 1, Only: []sim.Answer{sim.Forbidden}}, "booking")
			c.request("r", 2, forAnHour)
			time.Sleep(time.Minute)
			Expect(c.booked()).To(Equal("a: r=2"))
			Expect(c.states()).To(Equal("r="))
			c.Trouble("provisioningrequests", sim.Trouble{}, "booking")
			time.Sleep(5 * time.Minute)
			Expect(c.states()).To(Equal("r=Provisioned"))
		})
	})

	It("serves a request once the reserve is large enough, and once its PodTemplate exists", func() {
		play(func(c *cluster) {
			c.begin(1)
			c.request("r", 2, forAnHour, func(r *provisioningv1.ProvisioningRequest) { r.Spec.PodSets[0].PodTemplateRef.Name = "late" })
			time.Sleep(time.Minute)
			Expect(c.states()).To(Equal("r="))
			c.spare("a", 2)
			time.Sleep(time.Minute)
			Expect(c.states()).To(Equal("r="))
			world.Create(c.core.CoreV1().PodTemplates(jobs), &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: jobs, Name: "late"}})
			time.Sleep(time.Minute)
			Expect(c.states()).To(Equal("r=Provisioned"))
		})
	})

	It("books less by the machines that run pods of the request, and no more again", func() {
		play(func(c *cluster) {
			c.begin(3)
			c.request("r", 2, forAnHour)
			time.Sleep(time.Minute)
			c.hasNode("node")
			c.uses("r", "p", func(p *corev1.Pod) { p.Spec.NodeName = "node" })
			time.Sleep(time.Minute)
			Expect(c.booked()).To(Equal("a: r=1"))
			Expect(c.core.CoreV1().Pods(jobs).Delete(context.Background(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})).To(Succeed())
			time.Sleep(time.Minute)
			Expect(c.booked()).To(Equal("a: r=1"))
		})
	})

	It("books less once a pod of the request that has waited is bound", func() {
		play(func(c *cluster) {
			c.begin(3)
			c.request("r", 2, forAnHour)
			time.Sleep(time.Minute)
			c.hasNode("node")
			c.uses("r", "p")
			time.Sleep(time.Minute)
			Expect(c.booked()).To(Equal("a: r=2"))
			world.Patch(c.core.CoreV1().Pods(jobs), "p", `{"spec":{"nodeName":"node"}}`)
			time.Sleep(time.Minute)
			Expect(c.booked()).To(Equal("a: r=1"))
		})
	})

	It("leaves requests of other classes and Reserves of others alone", func() {
		play(func(c *cluster) {
			c.pool("a", 3)
			theirs := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: plan.ReserveName("a")}, Spec: autoscaling.ReserveSpec{Pools: autoscaling.ReservePools{Names: []string{"a"}}, Replicas: 1}}
			world.Create(c.ours.AutoscalingV1alpha1().Reserves(ns), theirs)
			c.Start("booking", controller)
			c.settle()
			c.request("q", 1, func(r *provisioningv1.ProvisioningRequest) {
				r.Spec.ProvisioningClassName = "check-capacity.autoscaling.x-k8s.io"
			})
			c.request("r", 1)
			c.settle()
			Expect(c.states()).To(Equal("q= r="))
			Expect(c.writes(0)).To(HaveEach("provisioningrequests r"))
		})
	})
})

var _ = Describe("Between a write of the controller and its event", func() {
	It("a request keeps the machines that were booked for it, though an older one could be served with them", func() {
		play(func(c *cluster) {
			c.begin(2)
			c.request("q", 3, forAnHour)
			time.Sleep(time.Minute)
			c.Lag("provisioningrequests", sim.Constantly(5*time.Minute), "booking")
			c.request("r", 2, forAnHour)
			time.Sleep(6 * time.Minute)
			Expect(c.states()).To(Equal("q= r=Provisioned"))
			c.spare("a", 3)
			time.Sleep(time.Minute)
			Expect(c.booked()).To(Equal("a: r=2"))
		})
	})

	It("the next request is booked beside what that write has booked", func() {
		play(func(c *cluster) {
			c.begin(3)
			c.request("q", 1, forAnHour)
			time.Sleep(time.Minute)
			c.Lag("reserves", sim.Constantly(5*time.Minute), "booking", "reserves") // nor does another controller write its status
			for _, name := range []string{"r", "s"} {
				c.request(name, 1, forAnHour)
				time.Sleep(time.Minute)
			}
			Expect(world.Stored[autoscaling.Reserve](c, reserveGVR, ns, plan.ReserveName("a")).Spec.Replicas).To(BeEquivalentTo(3))
		})
	})
})

var _ = Describe("Storms", func() {
	It("book each machine once, each request as a whole, and nothing at the end", func() {
		storm.Seeds(suite, 10, func(seed uint64) {
			random := rand.New(rand.NewPCG(seed, 3))
			c := newCluster(seed)
			defer c.End()
			c.Latency(time.Millisecond)
			c.pool("a", 4)
			c.pool("b", 1+random.Int32N(3))
			p := c.Start("booking", controller)
			c.settle()
			var twice []string
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "reserves" && w.User == "booking" && w.Verb != "delete" {
					if r := world.Decoded[autoscaling.Reserve](w.Object); r.Spec.Replicas > 5 {
						twice = append(twice, fmt.Sprintf("%s: %d", r.Name, r.Spec.Replicas))
					}
				}
				return nil
			})
			c.Storm(random, p)
			for step := range 15 {
				name := fmt.Sprintf("r%02d", step)
				switch random.IntN(4) {
				case 0, 1:
					c.request(name, 1+random.Int32N(5))
				case 2:
					if all := world.List[provisioningv1.ProvisioningRequest](c, requestGVR); len(all) > 0 {
						c.remove(all[random.IntN(len(all))].Name)
					}
				case 3:
					p.CrashFor(time.Duration(random.IntN(8000)) * time.Millisecond)
				}
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
			}
			c.Calm()
			Expect(twice).To(BeEmpty())
			time.Sleep(2 * time.Hour)
			Expect(c.booked()).To(BeEmpty(), c.states())
			Expect(c.Objects(reserveGVR)).To(BeEmpty())
			for _, r := range world.List[provisioningv1.ProvisioningRequest](c, requestGVR) {
				served := meta.IsStatusConditionTrue(r.Status.Conditions, provisioningv1.ConditionBookingExpired)
				large := r.Spec.PodSets[0].Count > 4
				Expect(served || large).To(BeTrue(), "%s: %v", r.Name, r.Status)
			}
			before := len(c.Writes())
			time.Sleep(2 * time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})
})

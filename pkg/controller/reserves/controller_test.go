// SPDX-License-Identifier: Apache-2.0

package reserves_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("The controller", func() {
	It("follows an autoscaler from 0 to 5 and back through the scale subresource, which has a selector", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 3)
			c.pool("b", 2)
			c.create(Wish("queue"))
			c.Start("reserves", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a: -, b: -"))
			scale := func(n int32) string {
				client := dynamic.NewForConfigOrDie(c.ConfigFor("autoscaler")).Resource(reserveGVR).Namespace(Namespace)
				is, err := client.Get(context.Background(), "queue", metav1.GetOptions{}, "scale")
				Expect(err).NotTo(HaveOccurred())
				Expect(is.Object["status"]).To(HaveKeyWithValue("selector", HavePrefix("reserve.autoscaling.evenkeel.dev/uid=")))
				is.Object["spec"] = map[string]any{"replicas": int64(n)}
				_, err = client.Update(context.Background(), is, metav1.UpdateOptions{}, "scale")
				Expect(err).NotTo(HaveOccurred())
				Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
				return c.requested() + "; " + c.standing("queue")
			}
			Expect(scale(5)).To(Equal("a: queue=3, b: queue=2; 5/5 Complete"))
			Expect(c.reserve("queue").Status.Replicas).To(BeEquivalentTo(5))
			Expect(scale(0)).To(Equal("a: -, b: -; 0/0 NotRequested"))
		})
	})

	It("restores the annotation when a client removes or changes it, and removes it with the Reserve", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 3)
			c.create(Wish("shop", Replicas(2)))
			c.Start("reserves", controller)
			for _, change := range []func(*machine.MachineDeployment){
				func(d *machine.MachineDeployment) { d.Annotations = nil },
				Annotated(machine.RequestedExcessAnnotation, "shop=7"),
				Annotated(machine.RequestedExcessAnnotation, "?"),
			} {
				Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
				Expect(c.requested()).To(Equal("a: shop=2"))
				c.changePool("a", change)
			}
			c.remove("shop")
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a: -"))
		})
	})

	It("withdraws what Reserves requested where there can be none any more", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 3, Annotated(machine.RequestedExcessAnnotation, "gone=2"))
			c.pool("b", 3)
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			all, err := c.ours.MachineV1alpha1().MachineDeployments(Namespace).List(context.Background(), metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			for i := range all.Items {
				Expect(store.Add(&all.Items[i])).To(Succeed())
			}
			since := len(c.Writes())
			Expect(Withdraw(context.Background(), c.ours.MachineV1alpha1(), store)).To(Succeed())
			Expect(c.requested()).To(Equal("a: -, b: -"))
			Expect(c.Writes()[since:]).To(HaveLen(1))
		})
	})

	It("stands in for a MachineDeployment that fails, and goes back", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 3)
			c.pool("b", 3)
			c.fail("a", true)
			c.create(Wish("shop", Replicas(4)))
			c.Start("reserves", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a: shop=1, b: shop=4"))
			Expect(c.standing("shop")).To(Equal("4/4 Complete"))
			c.fail("a", false)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a: shop=2, b: shop=2"))
		})
	})

	DescribeTable("counts machines also if it sees a kind after all others",
		func(late string) {
			storm.Bubble(suite, func() {
				c := newCluster(sim.Options{Seed: 1})
				defer c.End()
				c.Start("reserves", controller)
				Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
				c.Lag(late, sim.Constantly(5*time.Minute), "reserves")
				c.pool("a", 3)
				c.create(Wish("shop", Replicas(2)))
				Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
				Expect(c.requested()).To(Equal("a: shop=2"))
				Expect(c.standing("shop")).To(Equal("2/2 Complete"))
			})
		},
		Entry(nil, "machinedeployments"),
		Entry(nil, "machinesets"),
		Entry(nil, "machines"),
		Entry(nil, "reserves"),
	)

	DescribeTable("requests as many machines as an amount needs by what Nodes offer, also if it sees a kind after all others",
		func(late string) {
			storm.Bubble(suite, func() {
				c := newCluster(sim.Options{Seed: 1})
				defer c.End()
				core, _ := world.Clients(c.ConfigFor("user"))
				c.Start("reserves", controller)
				Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
				c.Lag(late, sim.Constantly(5*time.Minute), "reserves")
				world.Create(c.ours.MachineV1alpha1().MachineClasses(Namespace), fixture.MachineClass(fixture.Class, func(class *mcm.MachineClass) {
					class.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{"cpu": resource.MustParse("8")}}
				}))
				set := world.CreatePool(c.ours.MachineV1alpha1(), world.MachineDeployment("a", 1), "a-1")
				m := world.NewMachine("a", "serves", set, false)
				m.Labels[mcm.NodeLabelKey] = "node"
				world.Create(c.ours.MachineV1alpha1().Machines(Namespace), m)
				world.CreateWithStatus(core.CoreV1().Nodes(), fixture.Node("node"))
				c.create(Wish("shop", Names("a"), Amount("cpu=16")))
				Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
				Expect(c.requested()).To(Equal("a: shop=4"))
				_, err := core.CoreV1().Nodes().Patch(context.Background(), "node", types.MergePatchType, []byte(`{"status":{"allocatable":{"cpu":"2"}}}`), metav1.PatchOptions{}, "status")
				Expect(err).NotTo(HaveOccurred())
				Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
				Expect(c.requested()).To(Equal("a: shop=8"))
			})
		},
		Entry(nil, "machines"),
		Entry(nil, "nodes"),
	)

	It("requests as many machines as an amount needs by the MachineClass, until a Node is ready", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			core, _ := world.Clients(c.ConfigFor("user"))
			classes, offers := c.ours.MachineV1alpha1().MachineClasses(Namespace), func(cpu string) func(*mcm.MachineClass) {
				return func(class *mcm.MachineClass) {
					class.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
				}
			}
			world.Create(classes, fixture.MachineClass(fixture.Class, offers("16")))
			set := world.CreatePool(c.ours.MachineV1alpha1(), world.MachineDeployment("a", 1), "a-1")
			m := world.NewMachine("a", "serves", set, false)
			m.Labels[mcm.NodeLabelKey] = "node"
			world.Create(c.ours.MachineV1alpha1().Machines(Namespace), m)
			world.CreateWithStatus(core.CoreV1().Nodes(), fixture.Node("node", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }))
			c.create(Wish("shop", Names("a"), Amount("cpu=16")))
			c.Start("reserves", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a: shop=1"))
			world.Change(classes, fixture.Class, offers("8"))
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a: shop=2"))
			_, err := core.CoreV1().Nodes().Patch(context.Background(), "node", types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a: shop=4"))
		})
	})

	It("tells what a Reserve desires, and each new reason once", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 3)
			c.fail("a", true)
			c.create(Wish("shop", Replicas(2)))
			events := record.NewFakeRecorder(100)
			c.Start("reserves", recording(events))
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			c.fail("a", false)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			close(events.Events)
			var all []string
			for e := range events.Events {
				all = append(all, e)
			}
			Expect(all).To(HaveExactElements(
				HavePrefix("Normal DesiredReplicasChanged Desired machines changed from 0 to 2"),
				HavePrefix("Warning CannotBeMade 0 of 2 machines"),
				HavePrefix("Normal Complete 2 of 2 machines"),
			))
		})
	})

	It("requests as many machines as have the devices, by what drivers publish", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			core, _ := world.Clients(c.ConfigFor("user"))
			reserves := c.Start("reserves", controller)
			set := world.CreatePool(c.ours.MachineV1alpha1(), world.MachineDeployment("a", 1), "a-1")
			m := world.NewMachine("a", "serves", set, false)
			m.Labels[mcm.NodeLabelKey] = "node"
			world.Create(c.ours.MachineV1alpha1().Machines(Namespace), m)
			world.CreateWithStatus(core.CoreV1().Nodes(), fixture.Node("node"))
			c.create(Wish("shop", Names("a"), Amount("devices.gpu=8")))
			Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
			Expect(c.standing("shop")).To(Equal("0/0 CapacityUnknown"))
			world.Create(core.ResourceV1().DeviceClasses(), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
			world.Create(core.ResourceV1().ResourceSlices(), &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: resourceapi.ResourceSliceSpec{
				Driver: "gpu.example.com", NodeName: new("node"), Pool: resourceapi.ResourcePool{Name: "node", ResourceSliceCount: 1},
				Devices: []resourceapi.Device{{Name: "a"}, {Name: "b"}},
			}})
			time.Sleep(time.Second)
			Expect(c.requested()).To(Equal("a: shop=4"))
			world.Change(core.ResourceV1().ResourceSlices(), "node", func(s *resourceapi.ResourceSlice) { s.Spec.Devices = s.Spec.Devices[1:] })
			time.Sleep(time.Second)
			Expect(c.requested()).To(Equal("a: shop=8"))
			world.Delete(core.ResourceV1().DeviceClasses(), "gpu")
			time.Sleep(time.Second)
			Expect(c.standing("shop")).To(HaveSuffix("CapacityUnknown"))
			world.Create(core.ResourceV1().DeviceClasses(), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
			Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
			before := len(c.Writes())
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.Resource == "resourceslices" && r.Verb == "list" {
					return time.Second, time.Second
				}
				return time.Millisecond, time.Millisecond
			})
			reserves.Restart()
			time.Sleep(time.Hour)
			Expect(world.WritesOf(c.World, "reserves", before)).To(BeEmpty())
		})
	})

	It("says on each Reserve that a fault of the controller stops it", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 3)
			c.create(Wish("shop", Replicas(2)))
			events := record.NewFakeRecorder(100)
			c.Start("reserves", recording(faulty{events}))
			time.Sleep(time.Second)
			Expect(events.Events).To(Receive(HavePrefix("Warning UnableToSpread Controller panicked: ")))
		})
	})

	It("decides nothing after a silence until the watch of MachineDeployments has caught up", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 3)
			c.create(Wish("shop", Replicas(2)))
			c.Start("reserves", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			before := len(c.Writes())
			c.missInSilence("machinedeployments", func() { c.changePool("a", Bounds("1:4")) })
			c.change("shop", Replicas(3)) // its event arrives at once
			time.Sleep(time.Minute)
			Expect(c.writes(before)).To(BeEmpty())
			time.Sleep(10 * time.Minute)
			Expect(c.standing("shop")).To(HaveSuffix("NoRoom"))
		})
	})

	It("requests nothing after a silence for a Reserve that may be gone, until the watch of Reserves has caught up", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 3)
			c.create(Wish("shop", Replicas(2)))
			c.Start("reserves", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			before := len(c.Writes())
			c.missInSilence("reserves", func() { c.remove("shop") })
			c.pool("b", 3) // its event arrives at once
			time.Sleep(10 * time.Minute)
			Expect(c.writes(before)).To(ConsistOf("machinedeployments a"))
			Expect(c.requested()).To(Equal("a: -, b: -"))
		})
	})

	It("counts machines again when their MachineSet is adopted", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 3)
			c.create(Wish("shop", Replicas(2)))
			c.Start("reserves", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			var owners []metav1.OwnerReference
			sets := c.ours.MachineV1alpha1().MachineSets(Namespace)
			world.Change(sets, "a-set", func(s *mcm.MachineSet) { owners, s.OwnerReferences = s.OwnerReferences, nil })
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.standing("shop")).To(Equal("0/2 Growing"))
			world.Change(sets, "a-set", func(s *mcm.MachineSet) { s.OwnerReferences = owners })
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.standing("shop")).To(Equal("2/2 Complete"))
		})
	})
})

// missInSilence changes objects while the controller sees nothing. After the silence, the watch of their kind is late.
func (c *cluster) missInSilence(kind string, change func()) {
	c.Silence(true, "reserves")
	time.Sleep(time.Minute)
	c.Lag(kind, sim.Constantly(90*time.Second), "reserves")
	change()
	c.Silence(false, "reserves")
	time.Sleep(20 * time.Second)
}

// faulty panics when it is to record an event about a decision.
type faulty struct{ *record.FakeRecorder }

func (faulty) Event(runtime.Object, string, string, string) { panic("broken") }

var _ = Describe("Storms", func() {
	It("end as calm weather does, and then nothing is written", func() {
		storm.Seeds(suite, 8, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 1))
			c.pool("a", 3)
			c.pool("b", 2, Bounds("1:4"))
			c.create(Wish("shop", OfficeHours))
			c.create(Wish("queue", Names("a")))
			first, second := c.Twins("reserves", controller)
			c.Storm(random, first, second)
			c.disturbAll(random)
			c.Calm()
			c.fail("a", false)
			c.change("queue", func(r *v1alpha1.Reserve) { r.Spec.Replicas = 3 })
			c.change("shop", func(r *v1alpha1.Reserve) { r.Spec.Schedules, r.Spec.Replicas, r.Spec.Suspend = nil, 4, false })
			Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a: queue=3, b: shop=2"))
			Expect(c.standing("shop")).To(Equal("4/4 Complete"))
			Expect(c.standing("queue")).To(Equal("3/3 Complete"))
			before := len(c.Writes())
			time.Sleep(time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})

	It("end the same wherever the controller is killed", func() {
		scenario := storm.Scenario{
			Options: sim.Options{Seed: 2, Resources: served},
			Story: func(w *storm.World) {
				c := adopt(w)
				c.pool("a", 3)
				c.pool("b", 3)
				c.create(Wish("shop", Replicas(3)))
				w.Start("reserves", controller)
				Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
				c.fail("b", true)
				c.change("shop", Replicas(6))
				Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
				c.fail("b", false)
				c.create(Wish("more", Replicas(4), Names("a")))
				Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
				c.remove("shop")
				Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
			},
			End: func(w *storm.World) any {
				c := &cluster{World: w}
				return c.requested() + "; " + c.standing("more")
			},
		}
		Expect(storm.CrashPoints(suite, scenario, "reserves")).To(Succeed())
	})
})

// disturbAll does many things that happen in clusters, and restores a backup from the midst of them.
func (c *cluster) disturbAll(random *rand.Rand) {
	c.Require("lease lost", "restore")
	var backup *sim.Snapshot
	for round := range 15 {
		time.Sleep(time.Duration(random.IntN(90)) * time.Second)
		switch round {
		case 5:
			backup = c.Snapshot()
		case 10:
			c.Restore(backup)
		default:
			c.disturb(random)
		}
	}
}

func (c *cluster) disturb(random *rand.Rand) {
	switch random.IntN(5) {
	case 0:
		c.change("queue", func(r *v1alpha1.Reserve) { r.Spec.Replicas = int32(random.IntN(6)) })
	case 1:
		c.fail("a", random.IntN(2) == 0)
	case 2:
		c.change("shop", func(r *v1alpha1.Reserve) { r.Spec.Suspend = !r.Spec.Suspend })
	case 3:
		c.changePool("a", func(d *machine.MachineDeployment) { d.Annotations = nil })
	case 4:
		c.changePool("b", func(d *machine.MachineDeployment) { d.Spec.Replicas = int32(random.IntN(6)) })
		time.Sleep(time.Minute)
		c.changePool("b", func(d *machine.MachineDeployment) { d.Spec.Replicas = 2 })
	}
}

// behind has a Reserve for a MachineDeployment with three machines for workload, and then shows the
// controller changes of a kind five minutes late.
func behind(kind string, story func(*cluster)) {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		c.pool("a", 3, Bounds("1:9"))
		c.create(Wish("shop", Replicas(4)))
		c.Start("reserves", controller)
		Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
		Expect(c.requested()).To(Equal("a: shop=4"))
		c.Lag(kind, sim.Constantly(5*time.Minute), "reserves")
		story(c)
		Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
	})
}

// bounded changes the bounds of the MachineDeployment.
func (c *cluster) bounded(text string) {
	GinkgoHelper()
	c.changePool("a", Annotated(machine.BoundsAnnotation, text))
}

var _ = Describe("Between a write of the controller and its event", func() {
	It("the next request is decided on that write", func() {
		behind("machinedeployments", func(c *cluster) {
			for _, n := range []int32{2, 3, 5} {
				c.change("shop", Replicas(n))
				time.Sleep(5 * time.Second)
				Expect(c.requested()).To(Equal(fmt.Sprintf("a: shop=%d", n)))
			}
		})
	})

	It("the next status is decided on that write", func() {
		behind("reserves", func(c *cluster) {
			for _, room := range []int{2, 1, 3} {
				c.bounded(fmt.Sprintf("1:%d", 3+room))
				time.Sleep(5 * time.Second)
				Expect(c.reserve("shop").Status.Pools).To(HaveExactElements(HaveField("DesiredReplicas", BeEquivalentTo(room))))
			}
		})
	})

	It("nothing is requested by what another client has changed meanwhile", func() {
		behind("machinedeployments", func(c *cluster) {
			c.bounded("1:4")
			c.change("shop", Replicas(5))
			time.Sleep(time.Minute)
			Expect(c.requested()).To(Equal("a: shop=4"), "it is not known yet that there is room for one")
			time.Sleep(5 * time.Minute)
			Expect(c.requested()).To(Equal("a: shop=1"))
		})
	})
})

var _ = Describe("A preview", func() {
	It("carries out a plan on copies, and is at rest then", func() {
		v := plan.View{Now: Monday, Reserves: []*v1alpha1.Reserve{Wish("shop", Replicas(3))}, Pools: []plan.Pool{
			Site("a", 1), Site("b", 1, Annotated(machine.RequestedExcessAnnotation, "gone=7"), Annotated(machine.DedicatedAnnotation, "ci=1")),
		}}
		Holds(1, 1, "Complete")(&v.Pools[0])
		p := plan.New(v)
		Expect(Requests(p)).To(Equal("a: shop=2, b: shop=1"))
		for i, r := range p.Requests {
			d, err := After(r)
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Annotations).To(Equal(map[string]string{machine.RequestedExcessAnnotation: r.Text}), "an empty annotation is none")
			Expect(d.Status).To(Equal(v.Pools[i].Deployment.Status))
			v.Pools[i].Deployment = d
		}
		after := p.Decisions[0].After(Monday)
		Expect(ready(after).Reason).To(Equal("Growing"))
		Expect(after.Status.ReadyReplicas).To(BeEquivalentTo(1))
		Expect(v.Reserves[0].Status).To(BeZero(), "what was shown stays as it was")
		v.Reserves[0] = after
		Expect(plan.New(v).Requests).To(BeEmpty())
	})
})

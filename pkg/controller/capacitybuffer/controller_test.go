// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/access"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// fifthOfWeb is a cluster at rest, with a buffer for a fifth of ten replicas.
func fifthOfWeb() (*cluster, *storm.Process) {
	GinkgoHelper()
	c := newCluster(sim.Options{Seed: 1})
	c.pool("a", 9)
	c.deploy("web", 10)
	c.create(percent("web", "web", 20))
	process := c.Start("buffers", controller)
	Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
	return c, process
}

// withFreeRoom has a buffer use the room on a machine that serves, and plays body then. No other controller
// runs, so that its writes cannot cause a sync.
func withFreeRoom(prepare, body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := still(storm.NewApart(sim.Options{Seed: 1, Resources: served}))
		defer c.End()
		c.pool("a", 9)
		c.deploy("web", 10)
		c.serving("a", "serving")
		prepare(c)
		b := percent("web", "web", 20)
		b.Annotations = map[string]string{v1beta1.FreeRoomAnnotation: "true"}
		c.startWith(b)
		Expect(c.sum()).To(Equal(0))
		body(c)
	})
}

var _ = Describe("The controller", func() {
	const complete, growing = "Provisioning=FitsExistingCapacity Ready=Complete", "Provisioning=RequiresNewCapacity Ready=Growing"

	It("keeps 20 % of a Deployment in reserve, from Provisioning to Ready, and follows its replicas", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 9)
			c.deploy("web", 10)
			c.create(percent("web", "web", 20))
			c.Start("buffers", controller)
			time.Sleep(3 * time.Second)
			Expect(Standing(c.buffer("web"))).To(Equal("2 " + growing))
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=1"))
			Expect(Standing(c.buffer("web"))).To(Equal("2 " + complete))
			c.scale("web", 12)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=2"))
			Expect(Standing(c.buffer("web"))).To(Equal("3 " + complete))
			c.remove("web")
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=-"))
			Expect(c.Objects(reserveGVR)).To(BeEmpty())
		})
	})

	It("counts machines itself, whether or not anybody writes numbers to a status", func() {
		storm.Bubble(suite, func() {
			c := still(storm.NewApart(sim.Options{Seed: 1, Resources: served}))
			defer c.End()
			c.pool("a", 9)
			c.create(NewBuffer("b", "{podTemplateRef: {name: web}, replicas: 8}").Object)
			_, err := c.core.CoreV1().PodTemplates(Shop).Create(context.Background(), &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Template: corev1.PodTemplateSpec{Spec: PodSpec("cpu=1")}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("buffers", controller)
			d, err := c.ours.MachineV1alpha1().MachineDeployments(Namespace).Get(context.Background(), "a", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			for _, ready := range []int{1, 2, 0, 2} {
				Expect(storm.Spares{Client: c.ours.MachineV1alpha1()}.Keep(context.Background(), d, 2, ready)).To(Succeed())
				Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
				want := map[bool]string{true: complete, false: growing}[ready == 2]
				Expect(Standing(c.buffer("b"))).To(Equal("8 "+want), "with %d of 2 ready", ready)
			}
		})
	})

	DescribeTable("keeps what is requested while a cluster does not answer, also when it starts meanwhile",
		func(server func(c *cluster) *sim.Server) {
			storm.Bubble(suite, func() {
				c, process := fifthOfWeb()
				defer c.End()
				before := len(c.Writes())
				server(c).Down(true)
				time.Sleep(10 * time.Minute)
				process.CrashFor(time.Second)
				time.Sleep(time.Hour)
				Expect(c.requested()).To(Equal("a=1"))
				server(c).Down(false)
				Expect(c.Settle(10*time.Minute, time.Hour)).To(Succeed())
				Expect(c.requested()).To(Equal("a=1"))
				Expect(c.writes(before)).To(BeEmpty())
			})
		},
		Entry("control", func(c *cluster) *sim.Server { return c.Control }),
		Entry("target", func(c *cluster) *sim.Server { return c.Target }),
	)

	DescribeTable("says which right is missing, keeps what is requested, and goes on when it is granted",
		func(kind, ofOther string) {
			storm.Bubble(suite, func() {
				c, process := fifthOfWeb()
				defer c.End()
				c.Target.Trouble(kind, sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, "buffers")
				process.CrashFor(time.Second)
				c.create(&v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: Shop, Name: "other"}, Spec: v1beta1.CapacityBufferSpec{
					ProvisioningStrategy: ptr.To(v1beta1.StrategyReserved), PodTemplateRef: &v1beta1.LocalObjectRef{Name: "gone"}, Replicas: ptr.To[int32](1)}})
				time.Sleep(time.Minute)
				Expect(c.requested()).To(Equal("a=1"))
				attributes := meta.FindStatusCondition(c.buffer("web").Status.Conditions, v1beta1.ConditionReadyForProvisioning)
				Expect(attributes.Reason).To(Equal(reason.RightMissing))
				Expect(attributes.Message).To(ContainSubstring("resources: [" + kind + "]"))
				Expect(meta.FindStatusCondition(c.buffer("other").Status.Conditions, v1beta1.ConditionReadyForProvisioning).Reason).To(Equal(ofOther))
				c.Target.Trouble(kind, sim.Trouble{}, "buffers")
				time.Sleep(access.RetryEvery)
				Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
				Expect(Standing(c.buffer("web"))).To(Equal("2 " + complete))
			})
		},
		Entry("to read the workload", "deployments", reason.PodTemplateNotFound),
		Entry("to read ResourceQuotas, which all need", "resourcequotas", reason.RightMissing),
	)

	It("leaves buffers of other strategies alone, and takes over one that becomes its own", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 9)
			c.deploy("web", 10)
			for name, strategy := range map[string]*string{"active": ptr.To(v1beta1.StrategyActive), "none": nil, "other": ptr.To("example.com/hot")} {
				b := percent(name, "web", 100)
				b.Spec.ProvisioningStrategy = strategy
				c.create(b)
			}
			c.Start("buffers", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.writes(0)).To(BeEmpty())
			c.change("other", func(b *v1beta1.CapacityBuffer) { b.Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyReserved) })
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=5"))
			c.change("other", func(b *v1beta1.CapacityBuffer) { b.Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyActive) })
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=-"))
		})
	})

	It("fills a buffer once: neither a restart nor the end of its pods refills it, nor does its deadline pass (law 13)", func() {
		storm.Bubble(suite, func() {
			c, process := fifthOfWeb()
			defer c.End()
			c.remove("web")
			b := NewBuffer("once", "{"+ByWorkload+", replicas: 4, refillStrategy: none, fillDeadlineSeconds: 7200}").Object
			late := NewBuffer("late", "{scalableRef: {apiGroup: apps, kind: Deployment, name: other}, replicas: 2, refillStrategy: none, fillDeadlineSeconds: 10800}").Object
			b.CreationTimestamp, late.CreationTimestamp = metav1.Time{}, metav1.Time{}
			c.deploy("other", 1)
			c.create(b)
			c.create(late)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=3"))
			c.run("1", "web")
			c.run("2", "web")
			time.Sleep(10 * time.Second)
			Expect(c.requested()).To(Equal("a=2"))
			Expect(c.core.CoreV1().Pods(Shop).Delete(context.Background(), "1", metav1.DeleteOptions{})).To(Succeed())
			process.CrashFor(time.Second)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=2"))
			for _, pod := range []string{"3", "4", "5"} {
				c.run(pod, "web")
			}
			time.Sleep(10 * time.Second)
			Expect(Standing(c.buffer("once"))).To(Equal("4 Provisioning=BufferEmpty Ready=BufferFilled"))
			Expect(c.requested()).To(Equal("a=1"))
			time.Sleep(3 * time.Hour)
			Expect(Standing(c.buffer("late"))).To(Equal("2 Provisioning=BufferEmpty Ready=FillDeadlineExceeded"))
			Expect(c.requested()).To(Equal("a=-"))
			before := len(c.Writes())
			process.CrashFor(time.Second)
			time.Sleep(24 * time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})

	It("uses free room on machines that serve, and follows the pods and the machines there (law 14)", func() {
		withFreeRoom(func(*cluster) {}, func(c *cluster) {
			Expect(Standing(c.buffer("web"))).To(Equal("2 " + complete))
			before := len(c.Writes())
			time.Sleep(time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
			c.run("busy", "other")
			time.Sleep(10 * time.Second)
			Expect(c.sum()).To(Equal(1))
			Expect(c.core.CoreV1().Pods(Shop).Delete(context.Background(), "busy", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Minute)
			Expect(c.sum()).To(Equal(1), "it has not been free for long")
			time.Sleep(23 * time.Minute)
			Expect(c.sum()).To(Equal(0))
			world.Patch(c.core.CoreV1().Nodes(), "serving", `{"spec":{"unschedulable":true}}`)
			time.Sleep(10 * time.Second)
			Expect(c.sum()).To(Equal(1))
			world.Patch(c.core.CoreV1().Nodes(), "serving", `{"spec":{"unschedulable":null}}`)
			time.Sleep(23 * time.Minute)
			Expect(c.sum()).To(Equal(0))
			_, err := c.ours.MachineV1alpha1().Machines(Namespace).Patch(context.Background(), "serving", types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Unknown"}}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(10 * time.Second)
			Expect(c.sum()).To(Equal(1))
		})
	})

	DescribeTable("no longer uses room on a machine that serves (law 14)",
		func(change func(c *cluster)) {
			withFreeRoom(func(*cluster) {}, func(c *cluster) {
				change(c)
				time.Sleep(10 * time.Second)
				Expect(c.sum()).To(Equal(1))
			})
		},
		Entry("once its Node is not ready", func(c *cluster) {
			_, err := c.core.CoreV1().Nodes().Patch(context.Background(), "serving", types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
		}),
		Entry("once it is named for deletion", func(c *cluster) {
			world.Patch(c.ours.MachineV1alpha1().Machines(Namespace), "serving", `{"metadata":{"annotations":{%q:"1",%q:"2026-01-01T00:00:00Z"}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime)
		}),
		Entry("once it is being deleted", func(c *cluster) {
			world.Patch(c.ours.MachineV1alpha1().Machines(Namespace), "serving", `{"metadata":{"finalizers":["example.com/slow"]}}`)
			world.Delete(c.ours.MachineV1alpha1().Machines(Namespace), "serving")
		}),
		Entry("once it is put in reserve", func(c *cluster) {
			world.Patch(c.ours.MachineV1alpha1().Machines(Namespace), "serving", `{"metadata":{"annotations":{%q:%q}}}`, machine.ReserveAnnotation, machine.Reserve{Since: time.Now()}.String())
		}),
		Entry("once a pod there requests more", func(c *cluster) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "resized", Namespace: Shop}}
			p.Spec.NodeName = "serving"
			world.Create(c.core.CoreV1().Pods(Shop), p)
			time.Sleep(time.Minute)
			Expect(c.sum()).To(Equal(0))
			world.Change(c.core.CoreV1().Pods(Shop), "resized", func(p *corev1.Pod) { p.Spec.Containers = PodSpec("cpu=3").Containers })
		}),
		Entry("once a pod is nominated for it", func(c *cluster) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "nominated", Namespace: Shop}, Spec: PodSpec("cpu=3"), Status: corev1.PodStatus{NominatedNodeName: "serving"}}
			world.CreateWithStatus(c.core.CoreV1().Pods(Shop), p)
		}),
	)

	It("uses the room on a machine that serves of a pod that has ended (law 14)", func() {
		withFreeRoom(func(c *cluster) {
			ended := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ended", Namespace: Shop}, Spec: PodSpec("cpu=3"), Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
			ended.Spec.NodeName = "serving"
			world.CreateWithStatus(c.core.CoreV1().Pods(Shop), ended)
		}, func(*cluster) {})
	})

	It("competes with a Reserve by the larger, and neither changes nor deletes one of others", func() {
		storm.Bubble(suite, func() {
			c := newCluster(sim.Options{Seed: 1})
			defer c.End()
			c.pool("a", 20)
			c.deploy("web", 10)
			r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: Namespace}}
			r.Spec.Pools.Names, r.Spec.Replicas = []string{"a"}, 4
			_, err := c.ours.AutoscalingV1alpha1().Reserves(Namespace).Create(context.Background(), r, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.create(percent("web", "web", 20))
			c.Start("buffers", controller)
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=4"))
			Expect(Standing(c.buffer("web"))).To(Equal("2 " + complete))
			c.create(percent("more", "web", 100))
			Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
			Expect(c.requested()).To(Equal("a=6"))
			Expect(Withdraw(context.Background(), c.ours.AutoscalingV1alpha1().Reserves(Namespace))).To(Succeed())
			Expect(c.Get(reserveGVR, Namespace, "shop")).NotTo(BeNil())
		})
	})
})

var _ = Describe("Storms", func() {
	It("end as calm weather does, and then nothing is written", func() {
		storm.Seeds(suite, 6, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 1))
			c.pool("a", 9)
			c.pool("b", 5)
			c.deploy("web", 10)
			c.create(percent("web", "web", 20))
			c.create(percent("more", "web", 50))
			first, second := c.Twins("buffers", controller)
			c.Storm(random, first, second)
			c.disturbAll(random)
			c.Calm()
			c.fail("a", false)
			c.scale("web", 10)
			c.change("web", func(b *v1beta1.CapacityBuffer) { b.Spec.Percentage = ptr.To[int32](20) })
			c.change("more", func(b *v1beta1.CapacityBuffer) { b.Spec.Percentage = ptr.To[int32](50) })
			Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
			Expect(c.sum()).To(Equal(4), c.requested())
			Expect(Standing(c.buffer("web"))).To(Equal("2 Provisioning=FitsExistingCapacity Ready=Complete"))
			Expect(Standing(c.buffer("more"))).To(Equal("5 Provisioning=FitsExistingCapacity Ready=Complete"))
			before := len(c.Writes())
			time.Sleep(time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
			c.scale("web", 12) // what follows is seen as it happens, and not when everything is looked at again
			Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
			Expect(Standing(c.buffer("web"))).To(Equal("3 Provisioning=FitsExistingCapacity Ready=Complete"))
			Expect(Standing(c.buffer("more"))).To(Equal("6 Provisioning=FitsExistingCapacity Ready=Complete"))
		})
	})

	It("end the same wherever the controller is killed", func() {
		scenario := storm.Scenario{
			Options: sim.Options{Seed: 2, Resources: served}, Apart: true,
			Story: func(w *storm.World) {
				c := adopt(w)
				c.pool("a", 9)
				c.pool("b", 9)
				c.deploy("web", 10)
				c.create(percent("web", "web", 20))
				w.Start("buffers", controller)
				Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
				c.scale("web", 30)
				Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
				c.create(percent("more", "web", 10))
				Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
				c.remove("web")
				Expect(c.Settle(2*time.Minute, time.Hour)).To(Succeed())
			},
			End: func(w *storm.World) any {
				c := &cluster{World: w}
				return fmt.Sprint(c.sum(), "; ", Standing(c.buffer("more"))) // which of two that are alike depends on what was there before
			},
		}
		Expect(storm.CrashPoints(suite, scenario, "buffers")).To(Succeed())
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
		c.scale("web", int32(random.IntN(20)))
	case 1:
		c.fail("a", random.IntN(2) == 0)
	case 2:
		c.change("web", func(b *v1beta1.CapacityBuffer) { b.Spec.Percentage = ptr.To(random.Int32N(60)) })
	case 3:
		c.change("more", func(b *v1beta1.CapacityBuffer) { b.Spec.Percentage = nil }) // which is no number
	case 4:
		all, err := c.ours.AutoscalingV1alpha1().Reserves(Namespace).List(context.Background(), metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, r := range all.Items { // somebody tidies up
			_ = c.ours.AutoscalingV1alpha1().Reserves(Namespace).Delete(context.Background(), r.Name, metav1.DeleteOptions{}) // else it is gone
		}
	}
}

// sum is how many machines are requested.
func (c *cluster) sum() (all int) {
	for _, r := range c.Objects(reserveGVR) {
		n, _, _ := unstructured.NestedInt64(r.Object, "spec", "replicas")
		all += int(n)
	}
	return all
}

// behind shows the controller of a cluster at rest changes of a kind five minutes late.
func behind(kind string, story func(*cluster)) {
	storm.Bubble(suite, func() {
		c := still(storm.NewApart(sim.Options{Seed: 1, Resources: served})) // no other controller writes the same objects
		defer c.End()
		c.pool("a", 9)
		c.deploy("web", 10)
		c.create(percent("web", "web", 20))
		c.Start("buffers", controller)
		Expect(c.Settle(time.Minute, time.Hour)).To(Succeed())
		c.Lag(kind, sim.Constantly(5*time.Minute), "buffers")
		story(c)
		Expect(c.Settle(20*time.Minute, 12*time.Hour)).To(Succeed())
	})
}

var _ = Describe("Between a write of the controller and its event", func() {
	It("the next Reserve is decided on that write", func() {
		behind("reserves", func(c *cluster) {
			for _, machines := range []int32{2, 4, 3} { // two chunks fill a machine
				c.scale("web", 10*machines)
				time.Sleep(10 * time.Second)
				Expect(world.Stored[autoscaling.Reserve](c, reserveGVR, Namespace, plan.ReserveName("a")).Spec.Replicas).To(Equal(machines))
			}
		})
	})

	It("the next status is decided on that write", func() {
		behind("capacitybuffers", func(c *cluster) {
			for chunks, replicas := range []int32{0, 5, 10, 15} {
				c.scale("web", replicas)
				time.Sleep(10 * time.Second)
				Expect(Standing(c.buffer("web"))).To(HavePrefix(fmt.Sprint(chunks, " ")))
			}
		})
	})

	It("no Reserve is deleted that a user has made his own meanwhile", func() {
		behind("reserves", func(c *cluster) {
			reserves := c.ours.AutoscalingV1alpha1().Reserves(Namespace)
			world.Change(reserves, plan.ReserveName("a"), func(r *autoscaling.Reserve) { r.Labels = nil })
			c.remove("web")
			time.Sleep(time.Minute)
			Expect(c.Objects(reserveGVR)).To(HaveLen(1))
			time.Sleep(10 * time.Minute)
			Expect(c.Objects(reserveGVR)).To(HaveLen(1))
		})
	})
})

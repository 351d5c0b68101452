// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// agent runs a pod on a machine in reserve, and returns its name.
func (c *cluster) agent(node string, milli int64) string {
	GinkgoHelper()
	c.create(Pod("agent", milli, func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.ReserveTaintKey, Operator: corev1.TolerationOpExists}}
	}))
	return "agent"
}

var _ = Describe("While pods wait, the controller decides again", func() {
	DescribeTable("when a kind is seen after all others",
		func(late string) {
			play(func(c *cluster) {
				c.Start("release", controller(usual))
				c.settle()
				c.Lag(late, func() time.Duration { return 5 * time.Minute }, "release")
				c.create(Pods(1, "p", 4000)...)
				c.grow("a", 1, 1, "1:3")
				time.Sleep(4 * time.Minute)
				Expect(c.replicas()).To(Equal("a=1"))
				c.settle()
				Expect(c.replicas()).To(Equal("a=2"))
			})
		},
		Entry(nil, "machinedeployments"),
		Entry(nil, "machinesets"),
		Entry(nil, "machines"),
		Entry(nil, "nodes"),
	)

	It("when a DaemonSet has been deleted", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:3")
			c.create(Pods(1, "p", 4000)...)
			sets := c.core.AppsV1().DaemonSets(ns)
			set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
			set.Spec.Template.Spec = Pod("agent", 500).Spec
			_, err := sets.Create(context.Background(), set, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("release", controller(usual))
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			Expect(sets.Delete(context.Background(), "agent", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	DescribeTable("when a pod that runs leaves room for another one",
		func(waits, change func(*corev1.Pod)) {
			play(func(c *cluster) {
				c.grow("a", 1, 1, "1:3")
				agent := c.agent("a-002", 500)
				c.create(Pod("p", 3500, waits))
				c.Start("release", controller(usual))
				c.settle()
				Expect(c.replicas()).To(Equal("a=1"))
				pods := c.core.CoreV1().Pods(ns)
				pod, err := pods.Get(context.Background(), agent, metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				change(pod)
				_, err = pods.Update(context.Background(), pod, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				c.settle()
				Expect(c.replicas()).To(Equal("a=2"))
			})
		},
		Entry("since it was resized", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = Pod("p", 4000).Spec.Containers[0].Resources.Requests
		},
			func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }),
		Entry("since it has other labels", func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "agent"}
			Apart(p)
		}, func(p *corev1.Pod) { p.Labels = nil }),
	)

	DescribeTable("when a pod leaves its room for another one",
		func(leave func(c *cluster, agent string)) {
			play(func(c *cluster) {
				c.grow("a", 1, 1, "1:3")
				agent := c.agent("a-002", 500)
				c.create(Pod("p", 4000))
				c.Start("release", controller(usual))
				c.settle()
				Expect(c.replicas()).To(Equal("a=1"))
				leave(c, agent)
				c.settle()
				Expect(c.replicas()).To(Equal("a=2"))
			})
		},
		Entry("since it has ended", func(c *cluster, agent string) {
			_, err := c.core.CoreV1().Pods(ns).Patch(context.Background(), agent, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
		}),
		Entry("since it is gone", func(c *cluster, agent string) { c.delete(agent) }),
	)

	It("when a pod is being deleted, which spread over zones no longer counts", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:3")
			c.grow("b", 1, 0, "1:1")
			c.create(Pod("p-0", 0, func(p *corev1.Pod) { p.Spec.NodeName, p.Finalizers = "a-001", []string{"example.com/slow"} }))
			c.create(Pod("p-1", 4000, func(p *corev1.Pod) {
				p.Spec.NodeSelector = nil
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: Zone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
				}}
			}))
			c.Start("release", controller(usual))
			c.settle()
			Expect(c.replicas()).To(Equal("a=1 b=1"))
			c.delete("p-0")
			c.settle()
			Expect(c.replicas()).To(Equal("a=2 b=1"))
		})
	})

	It("when room has been promised to another pod, without delay", func() {
		play(func(c *cluster) {
			c.grow("a", 2, 1, "1:3")
			c.settle()
			Expect(c.scheduler.Stop()).To(Succeed())
			c.delete("filler-a-002")
			c.create(Pod("p", 4000), Pod("q", 3000))
			c.patchPod("p", `{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`)
			c.Start("release", controller(usual))
			time.Sleep(5 * time.Second)
			Expect(c.replicas()).To(Equal("a=2"))
			c.patchPod("q", `{"status":{"nominatedNodeName":"a-002"}}`)
			time.Sleep(time.Second)
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	It("when the Node is gone for which a pod was nominated long ago", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:3")
			Expect(c.scheduler.Stop()).To(Succeed())
			world.Create(c.core.CoreV1().Nodes(), NodeIn("other", "a"))
			c.create(Pod("p", 4000, func(p *corev1.Pod) { p.Status.NominatedNodeName = "other" }))
			c.Start("release", controller(usual))
			time.Sleep(10 * time.Minute)
			Expect(c.replicas()).To(Equal("a=1"))
			world.Delete(c.core.CoreV1().Nodes(), "other")
			time.Sleep(time.Minute)
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("when something changes during the first decision", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:3")
			agent := c.agent("a-002", 500)
			c.Start("release", controller(usual, func(watched *Controller) { watched.SlowLook(time.Second) }))
			c.settle()
			c.create(Pods(1, "p", 4000)...)
			time.Sleep(500 * time.Millisecond)
			c.delete(agent)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("when a MachineSet has been adopted", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:3")
			sets := c.ours.MachineV1alpha1().MachineSets(ns)
			set, err := sets.Get(context.Background(), "a", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			owners := set.OwnerReferences
			set.OwnerReferences = nil
			set, err = sets.Update(context.Background(), set, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.create(Pods(1, "p", 4000)...)
			c.Start("release", controller(usual))
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			set.OwnerReferences = owners
			_, err = sets.Update(context.Background(), set, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("when a Node still has a taint a minute after it became ready", func() {
		play(func(c *cluster) {
			c.grow("a", 2, 1, "1:10")
			c.settle()
			c.delete("filler-a-002")
			nodes := c.core.CoreV1().Nodes()
			node, err := nodes.Get(context.Background(), "a-002", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			node.Status.Conditions[0].LastTransitionTime = metav1.Now()
			node, err = nodes.UpdateStatus(context.Background(), node, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			node.Spec.Taints = []corev1.Taint{{Key: "starting", Effect: corev1.TaintEffectNoSchedule}}
			_, err = nodes.Update(context.Background(), node, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.create(Pods(1, "p", 4000)...)
			c.Start("release", controller(usual))
			time.Sleep(55 * time.Second)
			Expect(c.replicas()).To(Equal("a=2"))
			time.Sleep(10 * time.Second)
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	It("when a DaemonSet has changed", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:3")
			c.create(Pods(1, "p", 4000)...)
			c.daemonSet(500)
			c.Start("release", controller(usual))
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			sets := c.core.AppsV1().DaemonSets(ns)
			set, err := sets.Get(context.Background(), "daemon", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Template.Spec.Containers[0].Resources.Requests = nil
			_, err = sets.Update(context.Background(), set, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})
})

var _ = DescribeTable("Decisions leave half of the time to others, but not for longer than half a second",
	func(takes time.Duration, decisions int) {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			registry := prometheus.NewRegistry()
			reporting := usual
			reporting.Registerer = registry
			c.Start("release", controller(reporting, func(watched *Controller) { watched.SlowLook(takes) }))
			c.settle()
			c.create(Pod("p", 50_000)) // which no machine holds
			for i := range 200 {
				c.patch("a", `{"metadata":{"labels":{"changed":"%d"}}}`, i)
				time.Sleep(100 * time.Millisecond)
			}
			families, err := registry.Gather()
			Expect(err).NotTo(HaveOccurred())
			made := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "evenkeel_release_decision_seconds" })
			Expect(families[made].Metric[0].Histogram.GetSampleCount()).To(BeNumerically("~", decisions, 1))
		})
	},
	Entry("a fifth of a second each: 50 in 20 seconds", 200*time.Millisecond, 50),
	Entry("two seconds each: 8 in 20 seconds", 2*time.Second, 8),
)

var _ = Describe("The first pod that waits", func() {
	// helpedAfter returns how long a pod waits until replicas are raised for it.
	helpedAfter := func(others int, change ...func(*cluster) func(*corev1.Pod)) (took time.Duration) {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.create(Pods(others, "large", 50_000)...) // which no machine holds
			c.settle()
			var owned []func(*corev1.Pod)
			for _, of := range change {
				owned = append(owned, of(c))
			}
			c.settle()
			begun := time.Now()
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machinedeployments" && w.User == "release" && took == 0 {
					took = time.Since(begun)
				}
				return nil
			})
			c.create(Pods(1, "p", 1000, owned...)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
		return took
	}
	ofReplicaSet := func(c *cluster) func(*corev1.Pod) { return ByReplicaSet(c.makes("w", 1)) }

	It("is gathered with others, unless it is a ReplicaSet's, whose number is known", func() {
		gathered := helpedAfter(0)
		Expect(gathered - helpedAfter(0, ofReplicaSet)).To(Equal(3 * time.Millisecond))
		Expect(helpedAfter(1, ofReplicaSet)).To(Equal(gathered), "others wait")
	})
})

// atMax lets a pod wait while its pool is at max.
func (c *cluster) atMax() {
	c.grow("a", 1, 2, "1:1")
	c.Start("release", aware(usual))
	c.settle()
	c.create(fresh(1, "picky", 1000)...)
	c.settle()
	Expect(c.writes(0)).To(BeEmpty())
}

func (c *cluster) delete(pod string) {
	GinkgoHelper()
	Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), pod, metav1.DeleteOptions{})).To(Succeed())
}

func (c *cluster) bounds(bounds string) {
	GinkgoHelper()
	c.patch("a", `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.BoundsAnnotation, bounds)
}

var _ = Describe("While a cluster does not answer", func() {
	It("releases nothing for pods that may be gone, and looks again when the cluster answers", func() {
		playApart(func(c *cluster) {
			c.atMax()
			c.Target.Silence(true, "release")
			c.delete("picky-0")
			time.Sleep(2 * reachability.SilentAfter)
			c.bounds("1:4")
			time.Sleep(10 * time.Minute)
			Expect(c.writes(0)).To(BeEmpty())
			c.Target.Silence(false, "release")
			c.settle()
			Expect(c.writes(0)).To(BeEmpty(), "the pod was gone all the time")
		})
	})

	It("serves pods that have waited all the time once the cluster answers, without another event", func() {
		playApart(func(c *cluster) {
			c.atMax()
			c.Target.Silence(true, "release")
			time.Sleep(2 * reachability.SilentAfter)
			c.bounds("1:4")
			time.Sleep(10 * time.Minute)
			Expect(c.writes(0)).To(BeEmpty())
			c.Target.Silence(false, "release")
			time.Sleep(3 * time.Minute)
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	DescribeTable("does not count towards doubt, since room may be taken unseen", func(before time.Duration, expected string) {
		playApart(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", aware(usual))
			c.settle()
			c.create(fresh(1, "picky", 1000)...)
			time.Sleep(before)
			Expect(c.replicas()).To(Equal("a=2"))
			c.Target.Silence(true, "release")
			c.create(fresh(1, "q", 4000)...)
			time.Sleep(10 * time.Minute)
			c.Target.Silence(false, "release")
			c.settle()
			Expect(c.replicas()).To(Equal(expected))
		})
	},
		Entry("of a pod that had waited for a moment", 10*time.Second, "a=3"),
		Entry("but does not end it either", time.Minute, "a=2"),
	)

	It("decides with the present bounds once the control cluster answers", func() {
		playApart(func(c *cluster) {
			c.grow("a", 1, 3, "1:4")
			c.Start("release", aware(usual))
			c.settle()
			c.Control.Silence(true, "release")
			c.bounds("1:2")
			time.Sleep(2 * reachability.SilentAfter)
			c.create(fresh(3, "p", 4000)...)
			time.Sleep(10 * time.Minute)
			Expect(c.writes(0)).To(BeEmpty())
			c.Control.Silence(false, "release")
			time.Sleep(3 * time.Minute)
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("releases no machine that may be gone until the watch of machines has caught up", func() {
		playApart(func(c *cluster) {
			c.grow("a", 1, 1, "1:4")
			c.Start("release", aware(usual))
			c.settle()
			Expect(c.taintController.Stop()).To(Succeed())
			c.Control.Silence(true, "release")
			time.Sleep(time.Minute)
			c.Lag("machines", sim.Constantly(90*time.Second), "release")
			c.fails("a-002")
			c.create(fresh(1, "p", 4000)...)
			c.Control.Silence(false, "release")
			time.Sleep(20 * time.Second)
			c.patch("a", `{"spec":{"minReadySeconds":1}}`) // its event arrives at once
			time.Sleep(10 * time.Minute)
			Expect(c.writes(0)).To(BeEmpty())
		})
	})
})

// fails has the machine controller no longer see a machine.
func (c *cluster) fails(name string) {
	GinkgoHelper()
	_, err := c.ours.MachineV1alpha1().Machines(ns).Patch(context.Background(), name, types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Unknown"}}}`), metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
}

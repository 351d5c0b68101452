// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	mcmclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	machinev1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// quietly runs body on a cluster in which no pods are created.
func quietly(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := still(storm.NewWorld(sim.Options{Seed: 1, Resources: served}))
		defer c.End()
		body(c)
	})
}

// pod makes one of a Deployment, in a phase.
func (c *cluster) pod(deployment string, phase corev1.PodPhase, changes ...func(*corev1.Pod)) {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: deployment + "-", Namespace: ns, Labels: map[string]string{"app": "shop", "run": deployment}}}
	pod.Spec.Containers = []corev1.Container{{Name: "work", Image: "registry.example/work:1"}}
	for _, change := range changes {
		change(pod)
	}
	pod, err := c.user.CoreV1().Pods(ns).Create(context.Background(), pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	if pod.Status.Phase = phase; phase == corev1.PodRunning {
		now := metav1.Now()
		pod.Status.StartTime = &now
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}
	}
	_, err = c.user.CoreV1().Pods(ns).UpdateStatus(context.Background(), pod, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("What is seen of a target", func() {
	const young, old = time.Minute, time.Hour
	type made struct {
		phase corev1.PodPhase
		age   time.Duration
	}

	DescribeTable("is its pods that live, those that are ready, and those that have not started in five minutes",
		func(observed, ready, late int, pods ...made) {
			quietly(func(c *cluster) {
				c.deploy("a", int32(observed))
				c.deploy("b", 0)
				for _, age := range []time.Duration{old, young} {
					for _, pod := range pods {
						if pod.age == age {
							c.pod("a", pod.phase)
						}
					}
					if age == old {
						time.Sleep(old - young)
					}
				}
				time.Sleep(young)
				b := object("shop", int32(observed), builders.InOrder("a", "b"), "a", "b")
				b.Spec.Policy.Fallback = builders.Fallback(func(f *v1alpha1.Fallback) { f.StartupTimeoutSeconds = ptr.To[int32](300) })
				c.create(b)
				c.Start("balancer", controller(Options{}))
				time.Sleep(time.Second)
				s := c.balancer("shop").Status.Targets[0]
				Expect([]int{int(s.Observed), int(s.Ready), int(s.NotStarted)}).To(Equal([]int{observed, ready, late}))
			})
		},
		Entry("two that run, one that waits for a minute", 3, 2, 0, made{"Running", old}, made{"Running", old}, made{"Pending", young}),
		Entry("those that have ended", 0, 0, 0, made{"Succeeded", old}, made{"Failed", old}),
		Entry("one whose phase is unknown", 0, 0, 0, made{"Unknown", old}),
		Entry("one that has waited for an hour", 1, 0, 1, made{"Pending", old}),
		Entry("the same among others", 3, 2, 1, made{"Pending", old}, made{"Running", old}, made{"Running", old}, made{"Failed", old}),
	)

	It("is not what is about to go", func() {
		quietly(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1)
			for _, name := range []string{"a", "b"} {
				c.pod(name, corev1.PodRunning, func(p *corev1.Pod) { p.Finalizers = []string{"example.org/stay"} })
			}
			Expect(c.user.CoreV1().Pods(ns).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "run=a"})).To(Succeed())
			c.balance("shop", 2, builders.Even(), "a", "b")
			c.Start("balancer", controller(Options{}))
			time.Sleep(time.Second)
			s := c.balancer("shop").Status
			Expect([]int32{s.Targets[0].Observed, s.Targets[1].Observed, s.ObservedReplicas}).To(Equal([]int32{0, 1, 1}))
		})
	})

	It("is C3: where all pods lack a label that the Balancer asks for, its phase, and nothing is written", func() {
		quietly(func(c *cluster) {
			for _, name := range []string{"a", "b"} {
				c.deploy(name, 1)
				c.pod(name, corev1.PodRunning)
			}
			b := object("shop", 10, builders.Shares(30, 70), "a", "b")
			b.Spec.Selector.MatchLabels["tier"] = "none-has-it"
			c.create(b)
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "Balancing")).To(Equal("False PodLabelsChecking"))
			Expect(c.sizes("a", "b")).To(Equal("1/1"))
			Expect(c.writes(0)).To(HaveEach("status shop"))
		})
	})

	It("is C9: where no target exists, its phase, and nothing is written", func() {
		quietly(func(c *cluster) {
			c.balance("shop", 0, builders.Shares(30, 70), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "Balancing")).To(Equal("False ScaleSubresourcePolling"))
			Expect(c.writes(0)).To(HaveEach("status shop"))
		})
	})

	It("is C5: nothing where nothing is wanted, and no scale is written", func() {
		quietly(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.balance("shop", 0, builders.Shares(30, 70), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			Expect(c.condition("shop", "Balancing")).To(Equal("True Completed"))
			Expect(c.writes(0)).To(HaveEach("status shop"))
		})
	})

	It("is never all pods of the namespace, where a workload has no selector", func() {
		quietly(func(c *cluster) {
			c.deploy("a", 1)
			c.deploy("b", 1, func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} })
			for range 5 {
				c.pod("a", corev1.PodRunning)
			}
			c.balance("shop", 2, builders.Even(), "a", "b")
			c.Start("balancer", controller(Options{}))
			c.settle()
			s := c.balancer("shop").Status
			Expect([]int32{s.Targets[0].Observed, s.Targets[1].Observed}).To(Equal([]int32{5, 0}))
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("True Resolved"), "its own status is enough")
		})
	})

	It("is its kind also while the API server does not say which kinds it serves", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.balance("shop", 4, builders.Even(), "a", "b")
			var down atomic.Bool
			c.Start("balancer", func(ctx context.Context, config *rest.Config) error {
				config.Wrap(refusing(func(path string) bool { return down.Load() && path == "/apis/apps/v1" }, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
				return controller(Options{})(ctx, config)
			})
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("2/2"))
			down.Store(true)
			time.Sleep(11 * time.Minute)
			c.scale("shop", 6)
			time.Sleep(time.Second)
			Expect(c.sizes("a", "b")).To(Equal("3/3"))
			Expect(c.condition("shop", "Ready")).To(Equal("True UnderControl"))
		})
	})

	It("is of a kind that the API server serves only later", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.widget("w", 1)
			b := object("shop", 10, builders.Even(), "a", "w")
			b.Spec.Policy.Fallback = nil // no controller acts on widgets here
			b.Spec.Targets[1].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "example.org/v1", Kind: "Widget", Name: "w"}
			c.create(b)
			var installed atomic.Bool
			c.Start("balancer", func(ctx context.Context, config *rest.Config) error {
				config.Wrap(refusing(func(path string) bool { return !installed.Load() && path == "/apis/example.org/v1" }, http.StatusNotFound, metav1.StatusReasonNotFound))
				return controller(Options{Kinds: append([]schema.GroupKind{{Group: "example.org", Kind: "Widget"}}, DefaultKinds...)})(ctx, config)
			})
			c.settle()
			Expect(c.condition("shop", "TargetsResolved")).To(Equal("False NoSuchKind"))
			installed.Store(true)
			time.Sleep(time.Minute)
			Expect(c.size("w")).To(BeEquivalentTo(5))
		})
	})

	It("is shown in metrics: replicas of every Balancer, blocked targets, writes by how they ended", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			c.set(func() { c.out["a"] = true })
			c.balance("shop", 10, builders.Shares(50, 50), "a", "b")
			registry := prometheus.NewRegistry()
			c.Start("balancer", controller(Options{Registerer: registry}))
			c.settle()
			Expect(metrics(registry)).To(And(
				HaveKeyWithValue("evenkeel_balancer_replicas wanted", 10.0),
				HaveKeyWithValue("evenkeel_balancer_replicas desired", 15.0),
				HaveKeyWithValue("evenkeel_balancer_replicas observed", 15.0),
				HaveKeyWithValue("evenkeel_balancer_replicas ready", 10.0),
				HaveKeyWithValue("evenkeel_balancer_replicas overflow", 0.0),
				HaveKeyWithValue("evenkeel_balancer_replicas deficit", 0.0),
				HaveKeyWithValue("evenkeel_balancer_blocked_targets", 1.0),
				HaveKeyWithValue("evenkeel_balancer_writes_total done raise", 3.0),
			))
			c.change("shop", func(b *v1alpha1.Balancer) { b.Spec.Targets[1].MinReplicas = ptr.To(intstr.FromInt32(12)) })
			c.settle()
			Expect(metrics(registry)).To(And(
				HaveKeyWithValue("evenkeel_balancer_replicas overflow", 0.0),
				HaveKeyWithValue("evenkeel_balancer_replicas deficit", 2.0),
			))
		})
	})

	It("is told once: no event repeats what has been said, however long it lasts", func() {
		play(func(c *cluster) {
			c.deploy("a", 0)
			c.deploy("b", 0)
			b := object("shop", 10, builders.Shares(50, 50), "a", "b", "c")
			b.Spec.Policy.Fallback = nil
			c.create(b)
			c.Start("balancer", controller(Options{}))
			c.settle()
			told := c.events()
			Expect(told).To(ConsistOf("Scaled", "Scaled", "UnableToBalance"))
			c.deploy("d", 3) // its pods belong to no target
			time.Sleep(24 * time.Hour)
			Expect(c.events()).To(Equal(told))
		})
	})
})

// metrics are the values of a registry, by name and what they are about.
func metrics(registry *prometheus.Registry) map[string]float64 {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			key := family.GetName()
			for _, label := range metric.GetLabel() {
				if label.GetName() == "what" || label.GetName() == "end" {
					key += " " + label.GetValue()
				}
			}
			values[key] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values
}

var mdGVR = mcm.SchemeGroupVersion.WithResource("machinedeployments")

// zones are three MachineDeployments under a Balancer.
type zones struct {
	*cluster
	machines mcmclient.Interface
}

// inZones runs body with a Balancer of so many machines over z1, z2 and z3, which have none yet.
func inZones(replicas int32, change func(*v1alpha1.Balancer, map[string]*mcm.MachineDeployment), body func(z zones)) {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1, Resources: slices.Concat(served, sim.Machine)})
		defer c.End()
		z := zones{c, mcmclient.NewForConfigOrDie(c.ConfigFor("user"))}
		b := object("pool", replicas, builders.Even(), "z1", "z2", "z3")
		mds := map[string]*mcm.MachineDeployment{}
		for i := range b.Spec.Targets {
			name := b.Spec.Targets[i].Name
			b.Spec.Targets[i].ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "machine.sapcloud.io/v1alpha1", Kind: "MachineDeployment", Name: name}
			mds[name] = fixture.MachineDeployment(name, 0)
		}
		change(b, mds)
		for _, md := range mds {
			made, err := z.machines.MachineV1alpha1().MachineDeployments(ns).Create(context.Background(), md, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			made.Status = md.Status
			_, err = z.machines.MachineV1alpha1().MachineDeployments(ns).UpdateStatus(context.Background(), made, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		c.create(b)
		c.Start("balancer", controller(Options{}))
		time.Sleep(time.Second)
		body(z)
	})
}

func (z zones) sizes() string {
	var all []any
	for _, name := range []string{"z1", "z2", "z3"} {
		n, _, _ := unstructured.NestedInt64(z.Get(mdGVR, ns, name).Object, "spec", "replicas")
		all = append(all, n)
	}
	return fmt.Sprintf("%d/%d/%d", all...)
}

// machine makes one of a zone, in a phase.
func (z zones) machine(zone string, phase mcm.MachinePhase, code string) {
	m := fixture.Machine("", func(m *mcm.Machine) { m.Name, m.GenerateName, m.Labels = "", zone+"-", map[string]string{"name": zone} })
	m, err := z.machines.MachineV1alpha1().Machines(ns).Create(context.Background(), m, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	m.Status.CurrentStatus = mcm.CurrentStatus{Phase: phase, LastUpdateTime: metav1.Now()}
	m.Status.LastOperation.ErrorCode = code
	_, err = z.machines.MachineV1alpha1().Machines(ns).UpdateStatus(context.Background(), m, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("Machines as targets", func() {
	nothing := func(*v1alpha1.Balancer, map[string]*mcm.MachineDeployment) {}

	It("go elsewhere at once when a zone is out of capacity", func() {
		inZones(6, nothing, func(z zones) {
			Expect(z.sizes()).To(Equal("2/2/2"))
			for range 2 {
				z.machine("z1", mcm.MachineCrashLoopBackOff, "ResourceExhausted")
				z.machine("z2", mcm.MachineRunning, "")
				z.machine("z3", mcm.MachineInPlaceUpdating, "")
			}
			time.Sleep(200 * time.Millisecond)
			Expect(z.sizes()).To(Equal("2/3/3"))
			Expect(z.condition("pool", "FallbackActive")).To(Equal("True TargetsBlocked"))
		})
	})

	It("have their time to boot otherwise", func() {
		inZones(3, nothing, func(z zones) {
			z.machine("z1", mcm.MachinePending, "")
			z.machine("z2", mcm.MachineRunning, "")
			z.machine("z3", mcm.MachineRunning, "")
			time.Sleep(55 * time.Second)
			Expect(z.sizes()).To(Equal("1/1/1"))
			time.Sleep(10 * time.Second)
			Expect(z.sizes()).To(Equal("1/2/1"))
		})
	})

	It("are left to who owns their replicas, not raised while they are frozen, and raised while paused, since they scale", func() {
		inZones(7, func(b *v1alpha1.Balancer, mds map[string]*mcm.MachineDeployment) {
			b.Spec.Policy.Fallback = nil
			mds["z1"].Annotations = map[string]string{machinev1alpha1.BoundsAnnotation: "0:5"}
			mds["z1"].Spec.Replicas = 1
			mds["z2"].Spec.Paused = true
			mds["z3"].Status.Conditions = []mcm.MachineDeploymentCondition{{Type: mcm.MachineDeploymentFrozen, Status: mcm.ConditionTrue}}
			mds["z3"].Spec.Replicas = 1
		}, func(z zones) {
			Expect(z.sizes()).To(Equal("1/5/1"))
			Expect(z.balancer("pool").Status.Targets[0].Reason).To(Equal("HasBounds"))
		})
	})

	DescribeTable("have one owner of their replicas: are left alone if kept even with other zones",
		func(annotation, value, sizes, reason string) {
			inZones(6, func(b *v1alpha1.Balancer, mds map[string]*mcm.MachineDeployment) {
				b.Spec.Policy.Fallback = nil
				mds["z1"].Annotations = map[string]string{annotation: value}
			}, func(z zones) {
				Expect(z.sizes()).To(Equal(sizes))
				Expect(z.balancer("pool").Status.Targets[0].Reason).To(Equal(reason))
			})
		},
		Entry(nil, machinev1alpha1.BalanceAnnotation, "ScaleUp", "0/3/3", "KeptEven"),
		Entry(nil, machinev1alpha1.BalanceAnnotation, "Continuous", "0/3/3", "KeptEven"),
		Entry(nil, machinev1alpha1.BalanceAnnotation, "Off", "2/2/2", ""),
		Entry("garbage", machinev1alpha1.BalanceAnnotation, "Perhaps", "2/2/2", ""),
		Entry("by the mode of a flag, which shows in what is applied", machinev1alpha1.AppliedReplicasAnnotation, "0", "0/3/3", "KeptEven"),
	)

	It("are taken over when they are no longer kept even", func() {
		inZones(6, func(b *v1alpha1.Balancer, mds map[string]*mcm.MachineDeployment) {
			b.Spec.Policy.Fallback = nil
			mds["z1"].Annotations = map[string]string{machinev1alpha1.AppliedReplicasAnnotation: "0"}
		}, func(z zones) {
			Expect(z.sizes()).To(Equal("0/3/3"))
			_, err := z.machines.MachineV1alpha1().MachineDeployments(ns).Patch(context.Background(), "z1", types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"`+machinev1alpha1.AppliedReplicasAnnotation+`":null}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(z.sizes()).To(Equal("1/3/3"), "step by step")
			Expect(z.balancer("pool").Status.Targets[0].Reason).To(BeEmpty())
		})
	})

	It("never count the pods of their namespace", func() {
		inZones(3, func(b *v1alpha1.Balancer, _ map[string]*mcm.MachineDeployment) {
			b.Spec.Transition = &v1alpha1.Transition{MaxSurge: ptr.To(intstr.FromInt32(2))}
		}, func(z zones) {
			z.deploy("a", 4)
			time.Sleep(20 * time.Second)
			s := z.balancer("pool").Status
			Expect(s.ObservedReplicas).To(BeZero())
			Expect(z.condition("pool", "TargetsResolved")).To(Equal("False ForeignPods"))
		})
	})
})

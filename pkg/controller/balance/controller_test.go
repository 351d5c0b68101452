// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var abc = []string{"a", "b", "c"}

func (c *cluster) deployAll(changes []Change, replicas ...int) {
	for i, r := range replicas {
		c.deploy(NewMember(abc[i], r, changes...))
	}
}

var _ = Describe("The controller", func() {
	It("splits growth before a machine is made for it, in a few writes, and rests", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			made := c.made
			since := len(c.Writes())
			c.scale("a", 8)
			time.Sleep(time.Second)
			Expect(c.sizes(abc...)).To(Equal("4/4/4"), "within a second")
			c.settle()
			Expect(c.ready(false, abc...)).To(Equal("4/4/4"))
			Expect(c.made-made).To(Equal(6), "none was thrown away")
			Expect(c.wrote(since)).To(BeNumerically("<=", 12))
			Expect(c.events()).To(Equal([]string{"a BalanceMoved"}))
			Expect(c.condition("b", plan.ConditionBalanced)).To(Equal("True Even"))
			before := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(before)).To(BeZero())
		})
	})

	It("leaves growth of a dedicated pool in it", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 2, ScaleUp, Tainted))
			c.deploy(NewMember("b", 2, ScaleUp))
			c.deploy(NewMember("c", 2, ScaleUp, Tainted))
			c.Start("balance", controller())
			c.settle()
			c.scale("a", 6)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/2/4"))
		})
	})

	It("writes nothing at all where nothing is requested", func() {
		play(func(c *cluster) {
			c.deployAll(nil, 5, 2, 1)
			c.Start("balance", controller())
			c.settle()
			c.scale("a", 9)
			c.run("p", "q")
			c.settle()
			Expect(c.wrote(0)).To(BeZero())
			Expect(c.sizes(abc...)).To(Equal("9/2/1"))
		})
	})

	It("spreads shares without a target cluster, and leaves replicas alone", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous, Labelled("p"), Excess("3")}, 6, 1, 1)
			c.Start("balance", program(false))
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("6/1/1"))
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("1/1/1"))
		})
	})

	It("1: decides anew where another client writes between its read and its write", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			sent := make(chan string, 100)
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User != "balance" || r.Verb != "patch" {
					return 0, 0
				}
				sent <- r.Name
				return time.Second, 0
			})
			c.scale("a", 8)
			for range 9 { // each write of a move, and of its conditions, is overtaken
				name := <-sent
				c.scale(name, c.size(name)+1)
			}
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("7/7/7"))
			Expect(c.ready(false, abc...)).To(Equal("7/7/7"))
		})
	})

	It("counts replicas that moved once, whatever is refused", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			var balance *Controller
			c.Start("balance", exposed(func(c *Controller) { balance = c }))
			c.settle()
			sent := 0
			c.OnWrite(func(w sim.Write) error {
				if w.User != "balance" || w.Name != "a" || w.Subresource != "" {
					return nil
				}
				if sent++; sent == 1 || sent > 5 { // the first one promises the replicas
					return nil
				}
				return apierrors.NewConflict(schema.GroupResource{Resource: w.Resource}, w.Name, errors.New("changed"))
			})
			c.scale("a", 8)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/4/4"))
			Expect(balance.Moved()).To(BeEquivalentTo(4))
		})
	})

	It("10: leaves a condition that another writes meanwhile", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2)
			sent := make(chan string, 100)
			c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User != "balance" || r.Verb != "patch" || r.Subresource != "status" {
					return 0, 0
				}
				sent <- r.Name
				return time.Second, 0
			})
			c.Start("balance", controller())
			name := <-sent
			_, err := c.ours.MachineV1alpha1().MachineDeployments(ns).Patch(context.Background(), name, types.MergePatchType,
				[]byte(`{"status":{"conditions":[{"type":"Available","status":"True"}]}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.condition(name, mcm.MachineDeploymentAvailable)).To(HavePrefix("True"))
			Expect(c.condition(name, plan.ConditionBalanced)).To(HavePrefix("True"))
		})
	})

	It("tells which right another part of the process lacks, and when it is granted, though nothing else happens", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Labelled("p"), Excess("3")}, 1, 1, 1)
			rights := access.New(clock.RealClock{})
			c.Start("balance", adjusted(func(o *Options) { o.Rights = rights }))
			c.settle()
			tried := 0
			_, err := access.Await(context.Background(), rights, access.Rule{Cluster: "target", Resource: schema.GroupResource{Resource: "pods"}}, func() (any, error) {
				if tried++; tried <= 2 {
					return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
				}
				Expect(c.condition("a", plan.ConditionRights)).To(Equal("False Forbidden"))
				return nil, nil
			})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.condition("a", plan.ConditionRights)).To(BeEmpty())
		})
	})

	It("leaves what others applied alone", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			c.patch("a", `{"metadata":{"annotations":{"`+v1alpha1.AppliedReplicasAnnotation+`":"5"}},"spec":{"replicas":5}}`)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("5/2/2"))
		})
	})

	It("evens out what is uneven, every pod moved at most once, and never fewer machines than replicas", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous}, 6, 3, 1)
			for i := range 10 {
				c.run(fmt.Sprint("p", i))
			}
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			for range 3600 {
				time.Sleep(time.Second)
				if n := Sum(c.ready(false, abc...)); n < 10 {
					Fail(fmt.Sprintf("only %d machines run", n))
				}
			}
			c.settle()
			Expect(c.created).To(Equal(12), "ten there were, and two took the places of two")
			Expect(c.sizes(abc...)).To(Equal("4/3/3"))
			Expect(c.ready(false, abc...)).To(Equal("4/3/3"))
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("-/-/-"))
			Expect(c.moved).To(HaveLen(2))
			for pod, n := range c.moved {
				Expect(n).To(Equal(1), pod)
			}
		})
	})

	It("moves nothing that a budget holds, says so, and moves it when it may", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous}, 4, 2)
			for i := range 6 {
				c.run(fmt.Sprint("p", i))
			}
			c.budget(0)
			time.Sleep(5 * time.Minute)
			registry := prometheus.NewRegistry()
			c.Start("balance", adjusted(func(o *Options) { o.Registerer = registry }))
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("4/2"))
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
			Expect(values(registry, "evenkeel_balance_skew")).To(Equal(map[string]float64{"a": 2}))
			Expect(values(registry, "evenkeel_balance_blocked_total")).To(Equal(map[string]float64{"PodDisruptionBudget": 1}))
			Expect(c.events()).To(Equal([]string{"a BalanceBlocked"}))
			before := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(before)).To(BeZero())
			c.budget(1)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("3/3"))
			Expect(c.moved).To(HaveLen(1))
			Expect(values(registry, "evenkeel_balance_skew")).To(Equal(map[string]float64{"a": 0}))
			world.Delete(c.ours.MachineV1alpha1().MachineDeployments(ns), "a")
			c.settle()
			Expect(values(registry, "evenkeel_balance_skew")).To(Not(HaveKey("a")), "there is no such group any more")
		})
	})

	DescribeTable("moves a machine once it is known that the volume of its pod allows that", func(claimFirst bool) {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous}, 4, 2)
			for i := range 6 {
				c.pod(fmt.Sprint("p", i), func(p *corev1.Pod) {
					p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
				})
			}
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			create := []func(){
				func() {
					claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}}
					claim.Spec.VolumeName = "v"
					world.Create(c.core.CoreV1().PersistentVolumeClaims(ns), claim)
				},
				func() {
					world.Create(c.core.CoreV1().PersistentVolumes(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}})
				},
			}
			if !claimFirst {
				slices.Reverse(create)
			}
			for _, next := range create {
				c.settle()
				Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("False PodsBound"))
				next()
			}
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("3/3"))
		})
	},
		Entry("by the volume", true),
		Entry("by the claim", false),
	)

	It("keeps growth where a pod that waits is bound to", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			for i := range 6 {
				c.run(fmt.Sprint("p", i))
			}
			c.Start("balance", controller())
			c.settle()
			c.pod("bound", func(p *corev1.Pod) { InZone("b")(p) })
			c.settle()
			c.scale("b", 3)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("2/3/2"))
		})
	})

	It("spreads a pool's excess, hands it on within a minute of a failure, and takes it back", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Labelled("p"), Excess("4")}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("2/1/1"))
			Expect(c.ready(true, abc...)).To(Equal("2/1/1"))
			c.set(func() { c.out["c"] = true })
			for _, o := range c.Objects(machineGVR) {
				if o.GetLabels()["name"] == "c" && o.GetAnnotations()[v1alpha1.ReserveAnnotation] != "" {
					Expect(c.ours.MachineV1alpha1().Machines(ns).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{})).To(Succeed())
				}
			}
			for c.condition("a", plan.ConditionShare) != "True FailedOver" {
				time.Sleep(time.Second)
			}
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("2/2/0"))
			time.Sleep(time.Minute)
			Expect(c.ready(true, abc...)).To(Equal("2/2/0"))
			c.set(func() { c.out["c"] = false })
			for c.ready(true, abc...) == "2/2/0" {
				time.Sleep(time.Second)
				Expect(Sum(c.ready(true, abc...))).To(BeNumerically(">=", 4))
			}
			c.settle()
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("2/1/1"))
			Expect(c.ready(true, abc...)).To(Equal("2/1/1"))
		})
	})
})

func (c *cluster) size(name string) int { return int(c.deployment(name).Spec.Replicas) }

var _ = Describe("A promised machine", func() {
	promises := Annotate(v1alpha1.MoveAnnotation, v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"}.String())
	took := Annotate(v1alpha1.MoveAnnotation, v1alpha1.Move{ID: "1", From: "a", Taken: 1}.String())
	off := Mode(v1alpha1.BalanceOff)

	It("goes with no pod that must stay, also when nothing is balanced any more", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 4, off, Applied(4), promises))
			c.deploy(NewMember("b", 3, off, took))
			c.run("p0", "p1", "p2", "p3", "p4", "p5", "p6")
			c.budget(0)
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("4/3"))
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
			c.budget(1)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("3/3"))
			Expect(c.annotations(v1alpha1.MoveAnnotation, "a", "b")).To(Equal("-/-"))
		})
	})

	It("stays where there is no target cluster, and holds up no growth", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 4, off, Applied(4), promises))
			c.deploy(NewMember("b", 3, off, took))
			c.Start("balance", program(false))
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("4/3"))
			c.scale("a", 6)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("6/3"))
			Expect(c.ready(false, "a", "b")).To(Equal("6/3"))
		})
	})
})

// changed is a MachineDeployment after a change.
func changed(change func(*v1alpha1.MachineDeployment)) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "uid", Generation: 1, Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
	}}
	change(d)
	return d
}

// offering is a Node that has been ready for long, after a change.
func offering(change func(*corev1.Node)) *corev1.Node {
	return fixture.Node("n", func(n *corev1.Node) {
		n.Labels = map[string]string{"l": "1"}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("3")}
		n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4")}
		change(n)
	})
}

var _ = DescribeTable("A change of a Node, while a pool has an excess,",
	func(decides bool, was, is any) {
		storm.Bubble(suite, func() {
			p, err := NewPreview("default", plan.Settings{}, true)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.DelaysAfter([2]any{was, is})).To(HaveLen(map[bool]int{true: 1}[decides]))
		})
	},
	Entry("is decided on if it comes", true, nil, ready),
	Entry("if it goes", true, ready, nil),
	Entry("if it has a device", true, ready, offering(func(n *corev1.Node) { n.Status.Allocatable["gpu"] = resource.MustParse("1") })),
	Entry("if it is larger", true, ready, offering(func(n *corev1.Node) { n.Status.Capacity["cpu"] = resource.MustParse("8") })),
	Entry("if it gets another label", true, ready, offering(func(n *corev1.Node) { n.Labels["l"] = "2" })),
	Entry("if it is cordoned", true, ready, cordoned),
	Entry("if it is no longer cordoned", true, cordoned, ready),
	Entry("not if it reports how it is", false, ready, offering(func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() })),
	Entry("not if it shows nothing before and after", false, cordoned, offering(func(n *corev1.Node) { n.Spec.Unschedulable, n.Labels["l"] = true, "2" })),
	Entry("nor if it comes and shows nothing", false, nil, cordoned),
	Entry("if it is not ready any more, though it shows nothing", true, cordoned, lost),
	Entry("if it is ready again, though it shows nothing", true, lost, cordoned),
	Entry("if it comes and is not ready", true, nil, lost),
	Entry("not if it is still not ready", false, lost, offering(func(n *corev1.Node) { unschedulable(n); n.Status.Conditions[0].Status = corev1.ConditionFalse })),
)

var (
	ready    = offering(func(*corev1.Node) {})
	cordoned = offering(unschedulable)
	lost     = offering(func(n *corev1.Node) { unschedulable(n); n.Status.Conditions[0].Status = corev1.ConditionUnknown })
)

func unschedulable(n *corev1.Node) { n.Spec.Unschedulable = true }

var _ = DescribeTable("A change of a MachineDeployment",
	func(want []time.Duration, changes ...[2]any) {
		storm.Bubble(suite, func() {
			p, err := NewPreview("default", plan.Settings{}, true)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.DelaysAfter(changes...)).To(Equal(want))
		})
	},
	Entry("is decided on at once if it comes", atOnce, [2]any{nil, same}),
	Entry("if it goes", atOnce, [2]any{same, nil}),
	Entry("if it went unseen", atOnce, [2]any{cache.DeletedFinalStateUnknown{Key: "default/a", Obj: same}, nil}),
	Entry("if its spec changes", atOnce, [2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Generation = 2 })}),
	Entry("if an annotation changes", atOnce, [2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Annotations["a"] = "2" })}),
	Entry("if a label changes", atOnce, [2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Labels["l"] = "2" })}),
	Entry("if it was created anew", atOnce, [2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.UID = "other" })}),
	Entry("and with others if only its status changes", []time.Duration{50 * time.Millisecond},
		[2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Status.Replicas = 3 })},
		[2]any{same, changed(func(d *v1alpha1.MachineDeployment) { d.Status.Conditions = []mcm.MachineDeploymentCondition{{}} })}),
)

var _ = DescribeTable("Where decisions take long, the next one",
	func(took, delay time.Duration, was, is any) {
		storm.Bubble(suite, func() {
			p, err := NewPreview("default", plan.Settings{}, true)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.DecideFor(took)).To(Succeed())
			Expect(p.DelaysAfter([2]any{was, is})).To(Equal([]time.Duration{delay}))
		})
	},
	Entry("leaves nineteen twentieths of the time to others", 10*time.Millisecond, 190*time.Millisecond, same, reporting),
	Entry("comes no sooner than others", time.Millisecond, 50*time.Millisecond, same, reporting),
	Entry("nor for Nodes", 10*time.Millisecond, 500*time.Millisecond, nil, ready),
	Entry("but within a second", time.Minute, time.Second, same, reporting),
	Entry("for Nodes, too", time.Minute, time.Second, nil, ready),
	Entry("and at once for what a user writes", time.Minute, time.Duration(0), nil, same),
)

var (
	reporting = changed(func(d *v1alpha1.MachineDeployment) { d.Status.Replicas = 3 })

	atOnce = []time.Duration{0}
	same   = changed(func(*v1alpha1.MachineDeployment) {})
)

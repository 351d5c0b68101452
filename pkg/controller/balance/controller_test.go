// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/sim"
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
			c.Start("balance", controller())
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("4/2"))
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
			Expect(c.events()).To(Equal([]string{"a BalanceBlocked"}))
			before := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(before)).To(BeZero())
			c.budget(1)
			c.settle()
			Expect(c.sizes("a", "b")).To(Equal("3/3"))
			Expect(c.moved).To(HaveLen(1))
		})
	})

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

// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

func recreate(d *api.MachineDeployment) {
	d.Spec.Strategy = mcmapi.MachineDeploymentStrategy{Type: mcmapi.RecreateMachineDeploymentStrategyType}
}

// midway are the numbers of a rollout, in which machine-controller-manager keeps scale-down off Nodes that serve, too.
func (c *cluster) midway() string {
	marks := 0
	for _, m := range c.machines() {
		if marked(m) {
			marks++
		}
	}
	for _, condition := range c.deployment().Status.Conditions {
		if condition.Type == api.ReserveReady {
			return fmt.Sprintf("%d+%d %s", len(c.machines())-marks, marks, condition.Reason)
		}
	}
	return ""
}

// old are the machines that belong to another MachineSet than that of a name.
func (c *cluster) old(set string) (names []string) {
	for _, m := range c.machines() {
		if owner := metav1.GetControllerOf(m); owner.Name != set {
			names = append(names, m.Name)
		}
	}
	return names
}

// sets are the MachineSets of the machines.
func (c *cluster) sets() map[string]int {
	sets := map[string]int{}
	for _, m := range c.machines() {
		sets[metav1.GetControllerOf(m).Name]++
	}
	return sets
}

func (c *cluster) edit() { c.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`) }

// tale is a story of a pool with a strategy of its own.
func tale(strategy func(*api.MachineDeployment), body func(c *cluster)) {
	play(func(c *cluster) {
		c.work(3)
		c.pool(3, excess(2), strategy)
		c.settle()
		Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
		body(c)
	})
}

var _ = Describe("A reserve, while its template has been edited", func() {
	It("moves as ever while the MachineDeployment is paused, and is rolled out when it is resumed", func() {
		story(func(c *cluster) {
			c.patch(`{"spec":{"paused":true,"template":{"spec":{"class":{"name":"other"}}}}}`)
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			busy := c.busy()
			c.want(3)
			c.settle()
			Expect(c.numbers()).To(Equal("3+3 status 3/3 True Complete"))
			c.want(1)
			c.settle()
			Expect(c.numbers()).To(Equal("3+1 status 1/1 True Complete"))
			Expect(c.busy()).To(Equal(busy))
			c.work(1)
			c.scale(4)
			c.settle()
			Expect(c.numbers()).To(Equal("4+1 status 1/1 True Complete"))
			Expect(c.sets()).To(HaveLen(1))
			c.patch(`{"spec":{"paused":null}}`)
			c.settle()
			Expect(c.numbers()).To(Equal("4+1 status 1/1 True Complete"))
			for _, m := range c.machines() {
				Expect(m.Spec.Class.Name).To(Equal("other"))
			}
		})
	})

	It("is rolled out where no machine of the old template can be created", func() {
		play(func(c *cluster) {
			c.cloud.set(func() { c.cloud.broken = "class" })
			c.work(3)
			c.pool(3, excess(2))
			c.settle()
			Expect(c.midway()).To(HaveSuffix("CannotBeMade"))
			c.edit()
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			Expect(c.busy()).To(HaveLen(3))
		})
	})

	It("is rolled out where a machine that was to be deleted, because it could not be created, is there", func() {
		play(func(c *cluster) {
			c.work(3)
			c.pool(3, excess(1))
			c.settle()
			moved := c.countMoves()
			c.slowly("delete", "machines", 10*time.Second)
			c.cloud.set(func() { c.cloud.out = true })
			c.want(2)
			time.Sleep(5 * time.Second)
			Expect(c.machines()).To(HaveLen(5))
			c.cloud.set(func() { c.cloud.out = false })
			c.edit()
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			Expect(*moved).To(Equal(3))
		})
	})

	It("moves each pod once, although new Nodes have a taint of their own for some seconds", func() {
		play(func(c *cluster) {
			c.work(6)
			c.pool(6, excess(2))
			c.settle()
			moved := c.countMoves()
			c.edit()
			c.settle()
			Expect(c.numbers()).To(Equal("6+2 status 2/2 True Complete"))
			Expect(*moved).To(Equal(6))
		})
	})

	It("comes back after all machines were recreated, behind those that serve, as it was wanted meanwhile", func() {
		tale(recreate, func(c *cluster) {
			moved := c.countMoves()
			c.edit()
			time.Sleep(10 * time.Second)
			c.want(1)
			c.settle()
			Expect(c.numbers()).To(Equal("3+1 status 1/1 True Complete"))
			Expect(c.sets()).To(HaveLen(1))
			for _, m := range c.machines() {
				Expect(m.Spec.Class.Name).To(Equal("other"))
			}
			Expect(c.busy()).To(HaveLen(3))
			Expect(*moved).To(Equal(3))
		})
	})
})

func inPlace(orchestration mcmapi.OrchestrationType) func(*api.MachineDeployment) {
	return func(d *api.MachineDeployment) {
		d.Spec.Strategy = mcmapi.MachineDeploymentStrategy{
			Type: mcmapi.InPlaceUpdateMachineDeploymentStrategyType,
			InPlaceUpdate: &mcmapi.InPlaceUpdateMachineDeployment{
				UpdateConfiguration: mcmapi.UpdateConfiguration{MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1))},
				OrchestrationType:   orchestration,
			},
		}
	}
}

// updated does to a Node what people or its agent do in an in-place update, and to its Machine what the machine controller does.
func (c *cluster) updated(name string) {
	GinkgoHelper()
	ctx := context.Background()
	done := corev1.NodeCondition{Type: mcmapi.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: mcmapi.UpdateSuccessful}
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := c.core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Labels[mcmapi.LabelKeyNodeSelectedForUpdate] = "true"
		node.Labels[mcmapi.LabelKeyNodeUpdateResult] = mcmapi.LabelValueNodeUpdateSuccessful
		if node, err = c.core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
		node.Status.Conditions = append(node.Status.Conditions, done)
		_, err = c.core.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		m, err := c.stock.MachineV1alpha1().Machines(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		m.Status.Conditions = append(m.Status.Conditions, done)
		_, err = c.stock.MachineV1alpha1().Machines(ns).UpdateStatus(ctx, m, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

// selected are the Nodes that machine-controller-manager has selected for an update that is still to be made.
func (c *cluster) selected() (names []string) {
	for _, o := range c.Objects(nodesGVR) {
		node := world.Decoded[corev1.Node](o.Object)
		if _, is := node.Labels[mcmapi.LabelKeyNodeSelectedForUpdate]; is && node.Labels[mcmapi.LabelKeyNodeUpdateResult] == "" {
			names = append(names, node.Name)
		}
	}
	return names
}

// drained does what the machine controller does before an update: the Node is cordoned, and its pods go.
func (c *cluster) drained(name string) {
	GinkgoHelper()
	_, err := c.core.CoreV1().Nodes().Patch(context.Background(), name, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	time.Sleep(drainTime)
	Expect(c.busy()).NotTo(ContainElement(name))
}

// componentsReady removes the taint that machine-controller-manager puts on an updated Node, as Gardener does once the Node's own pods run.
func (c *cluster) componentsReady() {
	GinkgoHelper()
	ctx := context.Background()
	for _, o := range c.Objects(nodesGVR) {
		Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			node, err := c.core.CoreV1().Nodes().Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == machineutils.TaintNodeCriticalComponentsNotReady })
			_, err = c.core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
			return err
		})).To(Succeed())
	}
}

var _ = Describe("A reserve, while its template has been edited", func() {
	It("becomes smaller also while machines are updated in place", func() {
		tale(inPlace(mcmapi.OrchestrationTypeAuto), func(c *cluster) {
			c.edit()
			time.Sleep(time.Minute)
			c.want(1)
			time.Sleep(time.Minute)
			Expect(c.midway()).To(Equal("3+1 Complete"))
			for range 60 {
				time.Sleep(30 * time.Second)
				for _, name := range c.selected() {
					c.updated(name)
				}
				c.componentsReady()
			}
			c.settle()
			Expect(c.numbers()).To(Equal("3+1 status 1/1 True Complete"))
			Expect(c.sets()).To(HaveLen(1))
			Expect(c.busy()).To(HaveLen(3))
		})
	})

	It("is updated in place before the machines that serve, so that each pod moves once", func() {
		tale(inPlace(mcmapi.OrchestrationTypeAuto), func(c *cluster) {
			serving, reserve := c.names()
			moved := c.countMoves()
			c.edit()
			var order []string
			for range 60 {
				time.Sleep(30 * time.Second)
				c.componentsReady()
				for _, name := range c.selected() {
					order = append(order, name)
					c.drained(name)
					c.updated(name)
				}
			}
			Expect(order).To(ConsistOf(append(serving, reserve...)))
			Expect(order[:2]).To(ConsistOf(reserve))
			Expect(*moved).To(Equal(3))
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			Expect(c.sets()).To(HaveLen(1))
			Expect(c.busy()).To(HaveLen(3))
		})
	})

	It("shrinks and grows also while people have yet to update machines in place", func() {
		tale(inPlace(mcmapi.OrchestrationTypeManual), func(c *cluster) {
			busy := c.busy()
			c.edit()
			c.settle()
			Expect(c.midway()).To(Equal("3+2 Complete"))
			c.want(1)
			c.settle()
			Expect(c.midway()).To(Equal("3+1 Complete"), "it shrinks weeks before anybody updates a machine")
			c.want(2)
			c.settle()
			Expect(c.midway()).To(Equal("3+2 Complete"), "it grows, by a machine of the new template")
			Expect(c.sets()).To(HaveLen(2))

			var current string
			for _, m := range c.machines() {
				if m.Spec.Class.Name == "other" {
					current = metav1.GetControllerOf(m).Name
				}
			}
			for range 4 {
				c.updated(c.old(current)[0])
				c.settle()
				c.componentsReady()
			}
			Expect(c.old(current)).To(BeEmpty())
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			Expect(c.busy()).To(Equal(busy))
		})
	})
})

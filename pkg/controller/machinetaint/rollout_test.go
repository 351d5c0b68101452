// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"fmt"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
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
			Expect(c.deployment().Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "1"))
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

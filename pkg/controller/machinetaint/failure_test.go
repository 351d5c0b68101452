// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
)

// overstay has a machine fail and come back, with workload by then on the one that stood in for it. It returns those that served before.
func (c *cluster) overstay() []string {
	GinkgoHelper()
	serving, _ := c.names()
	c.cloud.set(func() { c.cloud.sick = map[string]bool{serving[0]: true} })
	time.Sleep(3 * time.Second)
	c.work(1)
	time.Sleep(3 * time.Second)
	c.cloud.set(func() { c.cloud.sick = nil })
	time.Sleep(3 * time.Second)
	Expect(c.busy()).To(HaveLen(4))
	Expect(c.reason()).To(HaveSuffix("False SurplusServing"))
	return serving
}

var _ = Describe("A reserve", func() {
	It("stands in for a machine that fails, and takes it in when it comes back", func() {
		story(func(c *cluster) {
			serving, _ := c.names()
			c.cloud.set(func() { c.cloud.sick = map[string]bool{serving[0]: true} })
			time.Sleep(3 * time.Second)
			now, reserve := c.names()
			Expect(now).To(HaveLen(4), "the sick one and three that run")
			Expect(reserve).To(HaveLen(1))
			c.cloud.set(func() { c.cloud.sick = nil })
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			Expect(c.busy()).To(HaveLen(3))
		})
	})

	It("drains the emptiest machine whose pods may be evicted, when one comes back and none is empty", func() {
		story(func(c *cluster) {
			serving := c.overstay()
			c.safeToEvict("false", c.busy()...)
			c.settle()
			Expect(c.numbers()).To(Equal("4+1 status 1/1 False SurplusServing"))
			Expect(c.deployment().Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("runs a pod that must not be evicted"))))
			Expect(c.deleted()).To(BeEmpty())
			c.safeToEvict("true", serving[1])
			time.Sleep(2 * time.Second)
			Expect(c.deleted()).To(ConsistOf(serving[1]), "at once")
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			Expect(c.deleted()).To(ConsistOf(serving[1]))
		})
	})

	It("drains nothing while many Nodes of the cluster are not ready, those of other pools included", func() {
		story(func(c *cluster) {
			c.overstay()
			c.strangers(8, corev1.ConditionUnknown)
			time.Sleep(time.Hour)
			Expect(c.numbers()).To(Equal("4+1 status 1/1 False SurplusServing"))
			Expect(c.deployment().Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("so many Nodes of the cluster are not ready"))))
			Expect(c.deleted()).To(BeEmpty())
			c.strangers(8, corev1.ConditionTrue)
			time.Sleep(machinetaint.DefaultSurplusPatience - time.Second)
			Expect(c.deleted()).To(BeEmpty(), "patience begins anew")
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			Expect(c.deleted()).To(HaveLen(1))
		})
	})

	It("is whole again after a machine that serves was replaced", func() {
		story(func(c *cluster) {
			serving, _ := c.names()
			c.cloud.set(func() { c.cloud.sick = map[string]bool{serving[0]: true} })
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			now, _ := c.names()
			Expect(now).NotTo(ContainElement(serving[0]))
		})
	})

	It("gives way where machines cannot be created, reports it, and comes back", func() {
		story(func(c *cluster) {
			c.cloud.set(func() { c.cloud.out = true })
			c.want(4)
			time.Sleep(5 * time.Minute)
			Expect(c.numbers()).To(HavePrefix("3+2 status 2/2 False CannotBeMade"))
			serving, _ := c.names()
			c.cloud.set(func() { c.cloud.sick = map[string]bool{serving[0]: true} })
			time.Sleep(30 * time.Minute)
			now, reserve := c.names()
			Expect(now).NotTo(ContainElement(serving[0]), "the reserve does not stand in the way of its replacement")
			Expect(len(c.busy())).To(Equal(3), "%v %v", now, reserve)
			c.cloud.set(func() { c.cloud.out = false })
			time.Sleep(3 * time.Hour)
			c.settle()
			Expect(c.numbers()).To(Equal("3+4 status 4/4 True Complete"))
		})
	})
})

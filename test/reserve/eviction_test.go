// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// budget lets so many pods be evicted, of all that there are.
func (c *cluster) budget(allowed int) {
	GinkgoHelper()
	ctx, budgets := context.Background(), c.core.PolicyV1().PodDisruptionBudgets(ns)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	if _, err := budgets.Get(ctx, b.Name, metav1.GetOptions{}); err != nil {
		world.Create(budgets, b)
	}
	_, err := budgets.Patch(ctx, b.Name, types.MergePatchType, fmt.Appendf(nil, `{"status":{"disruptionsAllowed":%d}}`, allowed), metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
}

// overstays expects that a surplus stays for a day, and that the condition says so.
func (c *cluster) overstays(why string) {
	GinkgoHelper()
	time.Sleep(24 * time.Hour)
	Expect(c.numbers()).To(Equal("4+1 status 1/1 False SurplusServing"))
	Expect(c.deployment().Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("must not be evicted now ("+why))))
	Expect(c.deleted()).To(BeEmpty())
}

// ends expects that a surplus ends within a time, with these numbers.
func (c *cluster) ends(within time.Duration, numbers string) {
	GinkgoHelper()
	time.Sleep(within)
	Expect(c.deleted()).To(HaveLen(1))
	c.settle()
	Expect(c.numbers()).To(Equal(numbers))
	Expect(c.deleted()).To(HaveLen(1))
}

// oneOfEach is a machine that serves of each MachineSet.
func (c *cluster) oneOfEach() map[string]bool {
	names, sets := map[string]bool{}, map[string]bool{}
	for _, m := range c.machines() {
		if set := m.OwnerReferences[0].Name; !marked(m) && !sets[set] {
			names[m.Name], sets[set] = true, true
		}
	}
	return names
}

var _ = Describe("A surplus that no machine is empty of", func() {
	It("stays while budgets let no pod go, and ends within a minute when one does", func() {
		story(func(c *cluster) {
			c.budget(0)
			c.overstay()
			c.overstays("PodDisruptionBudget: default/all allows no eviction of pod default/")
			written := len(c.Writes())
			time.Sleep(time.Hour)
			ours := slices.DeleteFunc(c.written(written), func(w string) bool { return strings.HasPrefix(w, "update") })
			Expect(ours).To(BeEmpty(), "it is looked at every minute, and nothing is written")
			c.budget(1)
			c.ends(time.Minute+2*time.Second, "3+2 status 2/2 True Complete")
		})
	})

	It("stays while the process may not read budgets, and ends when it may", func() {
		story(func(c *cluster) {
			c.Trouble("poddisruptionbudgets", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, evenkeel)
			c.process.Crash()
			c.process.Restart()
			c.overstay()
			c.overstays("PodDisruptionBudget: Evenkeel may not read them in the target cluster")
			c.Trouble("poddisruptionbudgets", sim.Trouble{}, evenkeel)
			c.ends(access.RetryEvery+time.Minute, "3+2 status 2/2 True Complete")
		})
	})

	It("stays after a silence of the target cluster until the budgets are up to date", func() {
		storm.Bubble(suite, func() {
			c := adopt(storm.NewApart(sim.Options{Seed: 1, Resources: served}), machinetaint.Settings{SurplusPatience: 30 * time.Second})
			defer c.End()
			c.Latency(2 * time.Millisecond)
			c.work(3)
			c.pool(3, excess(1))
			c.settle()
			c.budget(1)
			c.overstay()
			c.cut(true)
			time.Sleep(time.Minute)
			c.Target.Hold("poddisruptionbudgets", evenkeel)
			c.budget(0)
			c.cut(false)
			time.Sleep(35 * time.Second)
			touch(c.core, c.busy()[0])
			c.safeToEvict("true", c.busy()...) // Nodes and pods are up to date
			time.Sleep(80 * time.Second)
			Expect(c.deleted()).To(BeEmpty())
			Expect(c.reason()).To(HaveSuffix("False SurplusServing"))
			c.Target.Release("poddisruptionbudgets", evenkeel)
			time.Sleep(time.Hour)
			Expect(c.deleted()).To(BeEmpty())
			c.budget(1)
			c.ends(time.Minute+2*time.Second, "3+1 status 1/1 True Complete")
		})
	})

	It("does not take the same eviction from a budget as that of another MachineDeployment at the same time", func() {
		play(func(c *cluster) {
			c.work(6)
			c.pool(3, excess(1))
			world.Create(c.user.MachineV1alpha1().MachineDeployments(ns), world.MachineDeployment("other", 3, excess(1)))
			c.settle()
			c.cloud.set(func() { c.cloud.sick = c.oneOfEach() })
			time.Sleep(3 * time.Second)
			c.work(2)
			time.Sleep(3 * time.Second)
			c.budget(1)
			c.cloud.set(func() { c.cloud.sick = nil })
			for range int(machinetaint.DefaultSurplusPatience/time.Second) + 10 {
				time.Sleep(time.Second)
				if len(c.deleted()) > 0 {
					c.budget(0)
					break
				}
			}
			time.Sleep(24 * time.Hour)
			Expect(c.deleted()).To(HaveLen(1))
			c.budget(1)
			time.Sleep(2 * time.Minute)
			Expect(c.deleted()).To(HaveLen(2))
		})
	})
})

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

// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// apart runs body on two clusters in virtual time, with a pool of 3 and 1 in reserve, of which two hold pods.
func apart(body func(c *cluster)) {
	GinkgoHelper()
	storm.Bubble(suite, func() {
		c := adopt(storm.NewApart(sim.Options{Seed: 1, Resources: served}), machinetaint.Settings{})
		defer c.End()
		c.Latency(2 * time.Millisecond)
		c.work(2)
		c.pool(3, excess(1))
		c.settle()
		Expect(c.numbers()).To(Equal("3+1 status 1/1 True Complete"))
		body(c)
	})
}

// sicken makes the empty machine that serves sick, for a while in which the one in reserve takes its place: both are empty then.
func (c *cluster) sicken() {
	GinkgoHelper()
	serving, _ := c.split()
	i := slices.IndexFunc(serving, func(name string) bool { return !slices.Contains(c.busy(), name) })
	c.cloud.set(func() { c.cloud.sick = map[string]bool{serving[i]: true} })
	time.Sleep(time.Minute)
	Expect(c.numbers()).To(HavePrefix("4+0 "))
}

// recover makes it well again: more machines serve than replicas, and an empty one goes into reserve.
func (c *cluster) recover() {
	c.cloud.set(func() { c.cloud.sick = nil })
}

// cut takes the target cluster away from the process alone, or gives it back.
func (c *cluster) cut(down bool) { c.Target.Down(down, evenkeel) }

// held are the machines that carry a mark, those whose Node does, each by name.
func (c *cluster) held() (machines, nodes []string) {
	for _, m := range c.machines() {
		if marked(m) {
			machines = append(machines, m.Name)
		}
		if n := c.node(m.Name); n != nil && tainted(n.Spec.Taints) {
			nodes = append(nodes, m.Name)
		}
	}
	return machines, nodes
}

// deleted are the machines that the process has deleted.
func (c *cluster) deleted() (names []string) {
	for _, w := range c.Writes() {
		if w.Resource == "machines" && w.Verb == "delete" && w.User == evenkeel {
			names = append(names, w.Name)
		}
	}
	return names
}

func (c *cluster) reason() string {
	_, reason, _ := strings.Cut(c.numbers(), " status ")
	return reason
}

var _ = Describe("While the target cluster does not answer", func() {
	It("takes no machine for empty that was so before, and loses no pod to a lower excess", func() {
		apart(func(c *cluster) {
			c.sicken()
			c.cut(true)
			time.Sleep(time.Minute)
			c.work(2) // on the machines that were empty
			time.Sleep(time.Minute)
			busy := c.busy()
			Expect(busy).To(HaveLen(4))
			c.recover()
			time.Sleep(5 * time.Minute)
			machines, _ := c.held()
			Expect(machines).To(BeEmpty())
			Expect(c.reason()).To(HaveSuffix("Unknown " + reachability.Reason))
			c.want(0)
			time.Sleep(time.Hour)
			Expect(c.deleted()).To(BeEmpty())
			Expect(c.busy()).To(Equal(busy))
			c.want(1)
			c.cut(false)
			time.Sleep(2 * time.Minute)
			Expect(c.reason()).To(HaveSuffix("False SurplusServing"))
			Expect(c.busy()).To(Equal(busy))
		})
	})

	It("gives up what cannot be made, lets new machines serve, and frees those in reserve when it can", func() {
		apart(func(c *cluster) {
			c.cut(true)
			time.Sleep(time.Minute)
			c.cloud.set(func() { c.cloud.out = true })
			c.want(3)
			time.Sleep(5 * time.Minute)
			Expect(c.machines()).To(HaveLen(4), "two of 6 could not be made")
			c.cloud.set(func() { c.cloud.out = false })
			c.scale(4)
			time.Sleep(3 * time.Hour)
			machines, nodes := c.held()
			Expect(nodes).To(Equal(machines), "none was freed in part")
			c.cut(false)
			c.settle()
			Expect(c.numbers()).To(Equal("4+3 status 3/3 True Complete"))
			Expect(c.deleted()).To(HaveEach(Not(BeElementOf(c.busy()))))
		})
	})

	It("takes no machine for one of the reserve that may have been opened just before, however long that takes (12, I3)", func() {
		apart(func(c *cluster) {
			before := c.machines()
			var begun, allowed atomic.Bool
			c.OnWrite(func(w sim.Write) error {
				if !allowed.Load() && w.Resource == "machines" && w.Verb == "patch" && w.User == evenkeel {
					return apierrors.NewServiceUnavailable("not now")
				}
				return nil
			})
			c.Target.AfterWrite(func(w sim.Write) error {
				if w.Resource == "nodes" && w.User == evenkeel && begun.CompareAndSwap(false, true) {
					go c.cut(true)
					return answerLost
				}
				return nil
			})
			c.Target.Hold("nodes", evenkeel)
			for _, m := range before {
				touch(c.core, m.Name)
			}
			c.work(1)
			time.Sleep(time.Second) // the cache of pods is newer than any Node
			c.scale(4)
			c.work(1)
			time.Sleep(10 * time.Minute)
			busy := c.busy()
			Expect(busy).To(HaveLen(4))
			machines, _ := c.held()
			Expect(machines).To(ContainElement(BeElementOf(busy)))
			extra := c.machinesBeside(before)
			Expect(extra).To(HaveLen(1))
			c.want(0)
			time.Sleep(time.Hour)
			allowed.Store(true)
			c.Target.Release("nodes", evenkeel)
			c.cut(false)
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.numbers()).To(HavePrefix("4+0 "))
		})
	})

	It("ends when the cluster answers and its watches have caught up", func() {
		apart(func(c *cluster) {
			c.sicken()
			c.cut(true)
			time.Sleep(time.Minute)
			Expect(c.reason()).To(HaveSuffix("Unknown ClusterUnreachable"))
			c.work(2)
			time.Sleep(time.Minute)
			c.Hold("pods", evenkeel)
			c.recover()
			c.cut(false)
			time.Sleep(11 * time.Second)
			machines, _ := c.held()
			Expect(machines).To(BeEmpty())
			c.Release("pods", evenkeel)
			time.Sleep(2 * time.Minute)
			Expect(c.reason()).To(HaveSuffix("False SurplusServing"))
			Expect(c.deleted()).To(BeEmpty())
		})
	})
})

var _ = Describe("A machine that is to be held", func() {
	It("is looked at again once its Node is closed", func() {
		apart(func(c *cluster) {
			c.sicken()
			c.Hold("pods", evenkeel)
			c.work(2)
			time.Sleep(10 * time.Second)
			busy := c.busy()
			Expect(busy).To(HaveLen(4))
			c.recover()
			time.Sleep(10 * time.Second)
			machines, _ := c.held()
			Expect(machines).To(BeEmpty(), "the watch shows no pod there, and there is one")
			c.Release("pods", evenkeel)
			time.Sleep(2 * time.Minute)
			machines, nodes := c.held()
			Expect(machines).To(BeEmpty())
			Expect(nodes).To(BeEmpty(), "and its Node is open again")
			Expect(c.busy()).To(Equal(busy))
		})
	})

	It("serves while its Node cannot be closed", func() {
		apart(func(c *cluster) {
			c.sicken()
			c.Target.FailWrites(1, sim.Before, evenkeel)
			c.recover()
			time.Sleep(10 * time.Second)
			machines, _ := c.held()
			Expect(machines).To(BeEmpty())
			c.Target.FailWrites(0, sim.Before, evenkeel)
			c.settle()
			Expect(c.numbers()).To(Equal("3+1 status 1/1 True Complete"))
		})
	})

	It("is closed to pods before its Machine says so, and not emptied by it", func() {
		apart(func(c *cluster) {
			c.sicken()
			var order []string
			c.AfterWrite(func(w sim.Write) error {
				if w.User == evenkeel && w.Verb == "patch" && (w.Resource == "nodes" || w.Resource == "machines") && !w.NoOp() {
					order = append(order, w.Resource)
				}
				return nil
			})
			c.recover()
			time.Sleep(10 * time.Second)
			Expect(order[:2]).To(HaveExactElements("nodes", "machines"), fmt.Sprint(order))
		})
	})
})

// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// raiseWhileReserveLeaves gives up a reserve that takes all that max allows, and asks for as many machines for workload while those of
// the reserve are being deleted, which takes long. Later, an autoscaler names as many as were asked for.
func (c *cluster) raiseWhileReserveLeaves(random *rand.Rand, g *guard) {
	GinkgoHelper()
	before := world.Requested(c.deployment())
	c.cloud.set(func() {
		c.cloud.sick, c.cloud.out = nil, false
		c.cloud.Drain = time.Duration(1+random.IntN(120)) * time.Second
	})
	c.want(most)
	c.await(func(staying, leaving int) bool { return staying > 1 })
	time.Sleep(time.Minute)
	c.want(0)
	if c.await(func(staying, leaving int) bool { return leaving > 0 }) {
		g.count("raised while the reserve leaves")
	}
	c.scale(most)
	time.Sleep(time.Duration(random.IntN(120)) * time.Second)
	c.cloud.set(func() { c.cloud.Drain = drainTime })
	time.Sleep(2 * time.Minute)
	serving, _ := c.split()
	busy := c.busy()
	slices.SortStableFunc(serving, func(a, b string) int { return compareBool(slices.Contains(busy, a), slices.Contains(busy, b)) })
	for _, victim := range serving[:min(len(serving), max(0, world.Requested(c.deployment())-before))] {
		g.forgive(victim)
		c.name(int(c.deployment().Spec.Replicas)-1, victim)
	}
	c.want(2)
}

// await waits, for ten minutes at most, for some number of machines that are in reserve and stay, or leave. It reports whether that came.
func (c *cluster) await(enough func(staying, leaving int) bool) bool {
	for range 600 {
		staying, leaving := 0, 0
		for _, m := range c.machines() {
			switch {
			case !marked(m):
			case m.DeletionTimestamp == nil:
				staying++
			default:
				leaving++
			}
		}
		if enough(staying, leaving) {
			return true
		}
		time.Sleep(time.Second)
	}
	return false
}

// compareBool puts false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// request has a Reserve request a number of machines, and change that. A negative number withdraws the request.
func (c *cluster) request(machines int) {
	GinkgoHelper()
	value := "null"
	if machines >= 0 {
		value = fmt.Sprintf("%q", fmt.Sprintf("shop=%d", machines))
	}
	c.patch(`{"metadata":{"annotations":{%q:%s}}}`, api.RequestedExcessAnnotation, value)
}

// wantLastly asks for an excess by the field, and has a Reserve request another: in every other storm it is the larger one.
func (c *cluster) wantLastly(seed uint64) {
	GinkgoHelper()
	field, requested := 3, 1
	if seed%2 == 0 {
		field, requested = 1, 3
	}
	c.want(field)
	c.request(requested)
}

// expectReserve expects the larger one of what the field asks for and a Reserve requests in reserve, or as many as fit below most.
// Replicas include each of them, or none. The field shows what was written there.
func (c *cluster) expectReserve(accounting func(*api.MachineDeployment) api.Accounting) {
	GinkgoHelper()
	d := c.deployment()
	requested, err := api.ParseRequestedExcess(d.Annotations[api.RequestedExcessAnnotation])
	Expect(err).NotTo(HaveOccurred())
	Expect(*d.Spec.ExcessReplicas+requested.Machines).To(BeEquivalentTo(4), "one of 3, one of 1")
	const wanted = 3
	replicas := world.Workload(d)
	reserve, reason := min(wanted, most-replicas), "Complete"
	if reserve < wanted {
		reason = "AtMax"
	}
	included, is := 0, accounting(d)
	if own := d.Annotations[api.AccountingAnnotation]; own != "" {
		is = api.Accounting(own)
	}
	if is == api.AccountingInclusive {
		included = reserve
	}
	Expect(int(d.Spec.Replicas)-replicas).To(Equal(included), "included in %d replicas", d.Spec.Replicas)
	Expect(c.numbers()).To(Equal(fmt.Sprintf("%d+%d status %d/%d True %s", replicas, reserve, reserve, reserve, reason)))
	serving, _ := c.names()
	for _, name := range c.busy() {
		Expect(serving).To(ContainElement(name))
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// most is the max of the bounds in storms. Replicas stay below it; with the excess they reach it, or there would be nothing to see.
const most = 7

// longestAbsence is how long a process of a storm may be away, with a minute to act on what it finds then.
const longestAbsence = 7 * time.Minute

// surplusPatience is that of storms.
const surplusPatience = time.Hour

var _ = Describe("Storms", func() {
	It("end as calm weather does, keep all invariants meanwhile, and then nothing is written", func() {
		redundant, all, looked := 0, 0, map[string]int{}
		storm.Seeds(suite, 2, func(seed uint64) {
			settings := counted(seed)
			c := adopt(storm.NewApart(sim.Options{Seed: seed, Resources: served}), machinetaint.Options{Settings: settings})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 7))
			g := newGuard(c)
			c.AfterWrite(g.follow)
			c.Storm(random, c.process)
			c.work(3)
			c.pool(3, excess(2), bounds(fmt.Sprintf("1:%d", most)))
			for _, kind := range random.Perm(disturbances) {
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
				c.disturb(kind, random, g)
			}
			c.calm()
			g.endPatience()
			time.Sleep(2 * time.Hour) // longer than what could not be made is waited for
			Expect(g.verdict()).To(BeEmpty(), "%s", strings.Join(g.story, "\n"))
			c.wantLastly(seed)
			c.settle()
			Expect(g.verdict()).To(BeEmpty(), "%s", strings.Join(g.story, "\n"))
			c.expectReserve(settings.Accounting)
			for law, n := range g.looked {
				looked[law] += n
			}
			for _, w := range c.Writes() {
				if w.User == evenkeel && w.Verb == "patch" && w.Resource != "events" {
					all++
					if w.NoOp() {
						redundant++
					}
				}
			}
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.written(since)).To(BeEmpty())
		})
		AddReportEntry("writes that changed nothing", ReportEntryVisibilityAlways, fmt.Sprintf("%d of %d", redundant, all))
		AddReportEntry("invariants that were at stake", ReportEntryVisibilityAlways, fmt.Sprint(looked))
		if !storm.Repeating() {
			Expect(looked).To(And(HaveKey("I1"), HaveKey("I3"), HaveKey("raised while the reserve leaves")))
		}
		Expect(redundant*100).To(BeNumerically("<=", all), "each write is made on a version, so one whose answer is lost is not made again")
	})
})

// counted are the settings of a storm: in every other one replicas include the reserve, unless the MachineDeployment says otherwise.
func counted(seed uint64) plan.Settings {
	return plan.Settings{SurplusPatience: surplusPatience, Accounting: func(*api.MachineDeployment) api.Accounting {
		if seed%2 == 0 {
			return api.AccountingInclusive
		}
		return api.AccountingAdditive
	}}
}

func (c *cluster) calm() {
	c.Calm()
	c.cloud.set(func() { c.cloud.sick, c.cloud.out, c.cloud.Drain = nil, false, drainTime })
}

// disturbances is how many kinds of them there are.
const disturbances = 17

// disturb does one thing that happens to clusters.
func (c *cluster) disturb(kind int, random *rand.Rand, g *guard) {
	serving, reserve := c.split()
	switch kind {
	case 0:
		c.process.CrashFor(time.Duration(random.IntN(40)) * time.Second)
	case 1:
		if n := int(c.deployment().Spec.Replicas); n < most-1 {
			c.work(1)
			c.scale(n + 1)
		}
	case 2:
		c.want(random.IntN(4))
	case 3:
		c.typed(func(*mcmapi.MachineDeployment) {})
	case 4:
		if len(serving) > 0 {
			victim := serving[random.IntN(len(serving))]
			if n := c.deployment().Spec.Replicas; n > 1 {
				g.forgive(victim)
				c.name(int(n)-1, victim)
			}
		}
	case 5:
		c.cloud.set(func() { c.cloud.out = !c.cloud.out })
	case 6:
		if len(serving) > 0 {
			victim := serving[random.IntN(len(serving))]
			g.forgive(victim)
			c.cloud.set(func() { c.cloud.sick = map[string]bool{victim: true} })
		}
	case 7:
		if len(reserve) > 0 {
			_, _ = c.core.CoreV1().Nodes().Patch(context.Background(), reserve[0], types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":null}}}`), metav1.PatchOptions{})
		}
	case 9:
		far := []*sim.Server{c.Control, c.Target, c.Target}[random.IntN(3)]
		far.Down(true, evenkeel)
		time.Sleep(time.Duration(random.IntN(300)) * time.Second)
		far.Down(false, evenkeel)
	case 8:
		c.patch(`{"spec":{"template":{"spec":{"class":{"name":"class-%d"}}}}}`, random.IntN(100))
	case 10:
		g.count("replaced whole")
		c.replaceWhole()
		time.Sleep(time.Duration(random.IntN(10)) * time.Second)
		c.patch(`{"spec":{"excessReplicas":2},"metadata":{"annotations":{%q:"1:%d"}}}`, api.BoundsAnnotation, most)
	case 11:
		g.count("late deletion")
		c.slowly("delete", "machines", time.Duration(3+random.IntN(10))*time.Second)
		c.want(0)
		time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
		c.work(2)
		c.scale(min(most, int(c.deployment().Spec.Replicas)+2))
	case 12:
		g.count("another accounting")
		both := []api.Accounting{api.AccountingAdditive, api.AccountingInclusive}
		for _, i := range random.Perm(len(both)) {
			c.account(both[i])
			time.Sleep(time.Duration(random.IntN(180)) * time.Second)
		}
	case 13:
		// A client that computed replicas before they included the reserve, and names no machine.
		d := c.deployment()
		if workload := world.Workload(d); workload < int(d.Spec.Replicas) {
			g.count("reduction that names no machine")
			c.scale(workload)
		}
	case 14:
		if len(serving) > 0 {
			victim := serving[random.IntN(len(serving))]
			g.forgive(victim)
			c.standIn(victim, time.Duration(3+random.IntN(10))*time.Second)
		}
	case 15:
		c.raiseWhileReserveLeaves(random, g)
	case 16:
		g.count("requested by a Reserve")
		for range 3 {
			c.request(random.IntN(most) - 1)
			time.Sleep(time.Duration(random.IntN(90)) * time.Second)
		}
	}
}

// split are the machines that serve and those in reserve, by their marks alone.
func (c *cluster) split() (serving, reserve []string) {
	for _, m := range c.machines() {
		if m.DeletionTimestamp != nil {
			continue
		}
		if marked(m) {
			reserve = append(reserve, m.Name)
		} else {
			serving = append(serving, m.Name)
		}
	}
	return serving, reserve
}

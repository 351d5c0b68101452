// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/manager"
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
			c := adopt(storm.NewApart(sim.Options{Seed: seed, Resources: served}), settings)
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
func counted(seed uint64) machinetaint.Settings {
	return machinetaint.Settings{SurplusPatience: surplusPatience, Accounting: func(*api.MachineDeployment) api.Accounting {
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

// adoptTwins runs two instances of the process. One of them leads, and for a moment both may.
func adoptTwins(w *storm.World, o machinetaint.Settings) (c *cluster, processes []*storm.Process) {
	c = inhabit(w)
	first, second := w.Twins(evenkeel, manager.Program(o))
	c.process = first
	machines := c.start()
	return c, []*storm.Process{first, second, machines}
}

// restore puts a backup in the place of what the control cluster stores. Its watchers end, as our daemons do, and start anew.
// Nodes that belong to no machine any more are deleted, as orphaned machines are; a machine that has lost its Node is sick. The owner asks
// for the replicas again that pods need: the backup does not know of them.
func (c *cluster) restore(backup *sim.Snapshot, g *guard, processes ...*storm.Process) {
	GinkgoHelper()
	for _, p := range processes {
		p.Crash()
	}
	c.Control.Restore(backup)
	c.scale(max(3, len(c.Objects(podsGVR))))
	names := g.restart(c.machines())
	nodes, err := c.core.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, n := range nodes.Items {
		if i := slices.Index(names, n.Name); i >= 0 {
			names = slices.Delete(names, i, i+1)
			continue
		}
		if err := c.core.CoreV1().Nodes().Delete(context.Background(), n.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			Expect(err).NotTo(HaveOccurred())
		}
	}
	c.cloud.set(func() {
		c.cloud.lost = map[string]bool{}
		for _, name := range names {
			g.forgive(name)
			c.cloud.lost[name] = true
		}
	})
	for _, p := range processes {
		p.CrashFor(20 * time.Second)
	}
}

// restart begins with the machines that there are, and returns their names.
func (g *guard) restart(machines []*mcmapi.Machine) (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.class, g.leaving, g.places.reserve = map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, m := range machines {
		g.places.reserve[m.Name] = marked(m)
		names = append(names, m.Name)
		g.class[m.Name] = m.Spec.Class.Name
		g.current = m.Spec.Class.Name
	}
	return names
}

var _ = Describe("Storms over two instances", func() {
	It("end as calm weather does, also after a backup was restored, keep all invariants meanwhile, and then nothing is written", func() {
		storm.Seeds(suite, 1, func(seed uint64) {
			settings := counted(seed)
			c, processes := adoptTwins(storm.NewApart(sim.Options{Seed: seed, Resources: served}), settings)
			defer c.End()
			c.Require("lease lost", "restore")
			random := rand.New(rand.NewPCG(seed, 8))
			g := newGuard(c)
			c.AfterWrite(g.follow)
			c.work(3)
			c.pool(3, excess(2), bounds(fmt.Sprintf("1:%d", most)))
			c.settle()
			backup := c.Control.Snapshot()
			c.Storm(random, processes[:2]...)
			for i, kind := range random.Perm(disturbances) {
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
				if i == disturbances/2 {
					c.restore(backup, g, processes...)
				}
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
			Expect(g.looked["created by one that leads no more"]).To(BeNumerically("<", g.looked["I1"]))
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.written(since)).To(BeEmpty())
		})
	})
})

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

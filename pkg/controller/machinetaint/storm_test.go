// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/storm"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// most is the max of the bounds in storms. Replicas stay below it; with the excess they reach it, or there would be nothing to see.
const most = 7

// longestAbsence is how long a process of a storm may be away, with a minute to act on what it finds then.
const longestAbsence = 7 * time.Minute

// surplusPatience is that of storms.
const surplusPatience = time.Hour

// guard watches what must never happen, write by write. It knows of the cluster what the writes tell.
type guard struct {
	c *cluster
	// class is that of each machine there is, and current that of the template: machines of another class are being replaced.
	class   map[string]string
	current string
	// leaving are machines that were told to go.
	leaving map[string]bool
	places  places
	// unbounded is when the MachineDeployment was last written without bounds, and spilled are machines that were told to go because of
	// that.
	unbounded time.Time
	spilled   map[string]bool
	// served are machines that were told to go while they were not in reserve.
	served map[string]bool
	// leader is the instance that has the lease, if there are several, and late are machines that another one created.
	leader string
	late   map[string]bool
	// surplus is since when more machines serve than workload is to have; zero while that is not so.
	surplus time.Time
	// reduced is when the process reduced the excess that it applies to nothing; zero while there is one.
	reduced time.Time
	// inclusive reports whether replicas include the reserve. emptied reports whether they are also 0, so that all machines are deleted, as in
	// hibernation.
	inclusive, emptied bool
	// sets are the replicas of MachineSets. backward reports whether those of another class than the current one grow: the process has not
	// seen the current one, as after a list of a cache that is behind, and takes the machines of the new MachineSet for old ones.
	sets     map[string]int64
	backward bool

	// mu guards what follows, which the story sets.
	mu sync.Mutex
	// forgiven are machines that may go though pods run on them: they were named, or are sick.
	forgiven map[string]bool
	// over: machines beyond replicas may be drained from now on, since patience ends.
	over   bool
	broken []string
	// story is what was written, as it is told where an invariant was broken.
	story []string
	// looked counts how often each invariant was at stake.
	looked map[string]int
}

func newGuard(c *cluster) *guard {
	return &guard{c: c, class: map[string]string{}, leaving: map[string]bool{}, spilled: map[string]bool{}, served: map[string]bool{}, late: map[string]bool{}, sets: map[string]int64{}, forgiven: map[string]bool{}, looked: map[string]int{}, places: newPlaces()}
}

func (g *guard) follow(w sim.Write) error {
	if w.NoOp() || w.Subresource != "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell(w)
	g.placed(w)
	class := func(path ...string) string {
		name, _, _ := unstructured.NestedString(w.Object, append(path, "spec", "class", "name")...)
		return name
	}
	switch {
	case w.Resource == "machinedeployments":
		if is := class("spec", "template"); is != g.current {
			g.current, g.backward = is, false
		}
		if _, bounded, _ := unstructured.NestedString(w.Object, "metadata", "annotations", api.BoundsAnnotation); !bounded {
			g.unbounded = w.Time
		}
		g.noteExcess(w)
		replicas, _, _ := unstructured.NestedInt64(w.Object, "spec", "replicas")
		g.emptied = g.inclusive && replicas == 0
	case w.Resource == "machinesets":
		replicas, _, _ := unstructured.NestedInt64(w.Object, "spec", "replicas")
		if was, known := g.sets[w.Name]; known && replicas > was {
			g.backward = class("spec", "template") != g.current
		}
		g.sets[w.Name] = replicas
	case w.Resource == "leases":
		if holder, _, _ := unstructured.NestedString(w.Object, "spec", "holderIdentity"); holder != "" {
			g.leader = holder
		}
	case w.Resource != "machines":
	case w.Effect == sim.Added:
		g.class[w.Name] = class()
		if g.leader != "" && !storm.ByTwin(w, g.leader) {
			g.late[w.Name] = true
			g.looked["created by one that leads no more"]++
		}
		g.bounded(!g.places.reserve[w.Name], w.Time)
	case w.Effect == sim.Deleted:
		delete(g.class, w.Name)
		delete(g.late, w.Name)
		delete(g.leaving, w.Name)
		delete(g.spilled, w.Name)
		delete(g.served, w.Name)
	case w.Verb == "delete":
		g.leaving[w.Name] = true
		g.spilled[w.Name] = w.Time.Sub(g.unbounded) < time.Minute
		g.served[w.Name] = !g.places.reserve[w.Name]
		g.spared(w)
	}
	g.noteSurplus(w.Time)
	return nil
}

// noteSurplus follows whether more machines serve than workload is to have.
func (g *guard) noteSurplus(now time.Time) {
	all := g.places.workloads
	switch {
	case len(all) == 0 || g.serving()-1 <= all[len(all)-1].machines:
		g.surplus = time.Time{}
	case g.surplus.IsZero():
		g.surplus = now
	}
}

// tell adds a write to the story, until an invariant is broken.
func (g *guard) tell(w sim.Write) {
	if len(g.broken) > 0 || w.Resource != "machines" && w.Resource != "machinedeployments" && w.Resource != "machinesets" {
		return
	}
	replicas, _, _ := unstructured.NestedInt64(w.Object, "spec", "replicas")
	annotations, _, _ := unstructured.NestedStringMap(w.Object, "metadata", "annotations")
	class, _, _ := unstructured.NestedString(w.Object, "spec", "class", "name")
	g.story = append(g.story, fmt.Sprintf("%s %s %s %s %s: replicas %d, applied %q, mark %t, priority %s, class %s, named %q, there %d, leaving %d",
		w.Time.Format(time.TimeOnly), w.User, w.Verb, w.Resource, w.Name, replicas, annotations[api.AppliedExcessAnnotation],
		annotations[api.ReserveAnnotation] != "", annotations["machinepriority.machine.sapcloud.io"], class, annotations[machineutils.TriggerDeletionByMCM], len(g.class), len(g.leaving)))
}

// bounded is I1: machines never pass max but by those that are leaving and are replaced, because they were named or are sick, or
// because a client wrote the MachineDeployment without bounds and excess, and machine-controller-manager deletes what is too many then,
// at the latest a minute after that. Until then, it may also create machines for the excess without a max. A machine for workload does not wait for those either that served when they were told to go, which
// may take hours to drain; one of the reserve does. An instance that stood still while another one took the lease sends what it had
// decided to create, and no API server refuses that. In a rollout machine-controller-manager counts machines by the status of its MachineSets, and where that is late it passes its surge,
// and so max.
func (g *guard) bounded(serves bool, now time.Time) {
	if g.rolling() {
		return
	}
	if now.Sub(g.unbounded) < time.Minute {
		g.looked["created without bounds"]++
		return
	}
	g.looked["I1"]++
	allowed := most
	for name := range g.class {
		if g.late[name] {
			allowed++
		}
	}
	for name := range g.leaving {
		if g.forgiven[name] || g.spilled[name] || serves && g.served[name] {
			allowed++
		}
	}
	if len(g.class) > allowed {
		g.broken = append(g.broken, fmt.Sprintf("I1: %d machines, %d allowed", len(g.class), allowed))
	}
}

// rolling reports whether machines are being replaced.
func (g *guard) rolling() bool {
	for _, class := range g.class {
		if class != g.current {
			return true
		}
	}
	return false
}

// spared is I3: a machine of the current class that pods run on is not deleted, unless it was named or is sick. In a rollout that is so
// while others are in reserve: where replicas are lowered then, machine-controller-manager takes machines of each MachineSet. A client
// that wrote the MachineDeployment without what is recorded there, while the process was away, ends the patience with a surplus: nothing
// else tells how many machines there were to be. A surplus ends when it has lasted as long as its patience. And where replicas include the
// reserve, all machines go with the last of them: an autoscaler may remove several machines at once that could not be created, and so pass
// its min. A process that has not seen the present template rolls back to the one before, until it sees it.
func (g *guard) spared(w sim.Write) {
	if w.User != evenkeel || g.over || g.class[w.Name] != g.current || g.rolling() && !g.inReserve() || g.isStock(w.Time) {
		return
	}
	if w.Time.Sub(g.unbounded) < longestAbsence && g.serving() > g.places.least(w.Time) {
		g.looked["surplus without a record"]++
		return
	}
	if g.backward {
		g.looked["goes back to a template"]++
		return
	}
	if g.emptied {
		g.looked["no replicas"]++
		return
	}
	if !g.surplus.IsZero() && w.Time.Sub(g.surplus) >= surplusPatience {
		g.looked["surplus whose patience has ended"]++
		return
	}
	g.looked["I3"]++
	if !g.forgiven[w.Name] && g.c.holds(w.Name) {
		g.broken = append(g.broken, "I3: busy machine "+w.Name+" is deleted")
	}
}

// noteExcess follows the excess that the process applies.
func (g *guard) noteExcess(w sim.Write) {
	_, applied, _ := unstructured.NestedString(w.Object, "metadata", "annotations", api.AppliedExcessAnnotation)
	switch {
	case applied:
		g.reduced = time.Time{}
	case w.User == evenkeel && g.reduced.IsZero():
		g.reduced = w.Time
	}
}

// isStock reports whether machine-controller-manager does as it does without a reserve, for a minute at least: it may replace a named
// machine before its MachineSet is smaller, and then delete another one.
func (g *guard) isStock(now time.Time) bool {
	return !g.reduced.IsZero() && now.Sub(g.reduced) > time.Minute && !g.inReserve()
}

// serving counts the machines that are not in reserve and stay, with one whose deletion is requested now.
func (g *guard) serving() int {
	n := 1
	for name := range g.class {
		if !g.leaving[name] && !g.places.reserve[name] {
			n++
		}
	}
	return n
}

func (g *guard) forgive(machine string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forgiven[machine] = true
}

// count notes that something was at stake.
func (g *guard) count(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.looked[what]++
}

// endPatience lets machines beyond replicas be drained from now on.
func (g *guard) endPatience() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
}

func (g *guard) verdict() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken
}

var _ = Describe("Storms", func() {
	It("end as calm weather does, harm nobody meanwhile, and then nothing is written", func() {
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
			Expect(looked).To(And(HaveKey("I1"), HaveKey("I3"), HaveKey("replaced whole"), HaveKey("late deletion"), HaveKey("another accounting"),
				HaveKey("raised while the reserve leaves"), HaveKey("requested by a Reserve")))
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
		// One who computed replicas before they included the reserve, and names nobody.
		d := c.deployment()
		if workload := int(pool.Workload(d, d.Spec.Replicas)); workload < int(d.Spec.Replicas) {
			g.count("reduction that names nobody")
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

var _ = Describe("A crash between any two writes", func() {
	// crash kills the process in a story in which no more pods move than those on machines that are named.
	crash := func(named int, story func(c *cluster), change ...func(*api.MachineDeployment)) {
		GinkgoHelper()
		moved := 0
		Expect(storm.CrashPoints(suite, storm.Scenario{
			Options: sim.Options{Seed: 1, Resources: served}, Apart: true,
			Story: func(w *storm.World) {
				moved = 0
				c := adoptAs(w, "before", machinetaint.Options{})
				c.Latency(2 * time.Millisecond)
				c.work(3)
				c.pool(3, append(change, excess(2))...)
				c.settle()
				Expect(c.process.Stop()).To(Succeed())
				c.process = w.Start(evenkeel, program(machinetaint.Options{}))
				c.AfterWrite(c.countMoves(&moved))
				story(c)
				c.settle()
				Expect(moved).To(Equal(named))
			},
			End: func(w *storm.World) any {
				c := &cluster{World: w}
				numbers, _, _ := strings.Cut(c.numbers(), " ") // which machines there are depends on their random names
				return fmt.Sprintf("%s: %s", c.totals(), numbers)
			},
		}, evenkeel)).To(Succeed())
	}

	It("harms nobody when an excess that was to go is wanted again, as machine-controller-manager begins to delete it", func() {
		shrunk := 0
		for _, after := range []time.Duration{96 * time.Millisecond, 98 * time.Millisecond} {
			crash(0, func(c *cluster) {
				busy := c.busy()
				c.AfterWrite(func(w sim.Write) error {
					if n, _, _ := unstructured.NestedInt64(w.Object, "spec", "replicas"); w.Resource == "machinesets" && n < 5 {
						shrunk++
					}
					return nil
				})
				c.want(0)
				time.Sleep(after) // machine-controller-manager waits for 100 ms before it acts
				c.want(2)
				c.settle()
				Expect(c.busy()).To(Equal(busy))
			})
		}
		Expect(shrunk).To(BeNumerically(">", 0), "something is at stake")
	})

	It("ends as without it when replicas that include the reserve grow, shrink by name, and are counted anew", func() {
		crash(1, func(c *cluster) {
			c.work(1)
			c.scale(6)
			time.Sleep(time.Minute)
			c.name(5, c.busy()[0])
			time.Sleep(time.Minute)
			c.account(api.AccountingAdditive)
		}, inclusive)
	})

	It("drains nothing when replicas that include the reserve fall and nobody is named", func() {
		crash(0, func(c *cluster) {
			busy := c.busy()
			c.scale(3)
			time.Sleep(30 * time.Second)
			Expect(c.busy()).To(Equal(busy)) // the end is that the reserve is back
		}, inclusive)
	})

	It("ends as without it when replicas grow, shrink by name, and the excess changes", func() {
		crash(1, func(c *cluster) {
			c.work(1)
			c.scale(4)
			time.Sleep(time.Minute)
			c.name(3, c.busy()[0])
			time.Sleep(time.Minute)
			c.want(1)
		})
	})
})

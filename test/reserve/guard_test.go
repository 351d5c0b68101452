// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

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
	// served are machines that were told to go while they were not in reserve, or that pods came to by then.
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
	if w.NoOp() || w.Subresource != "" && w.Resource != "pods" { // pods get their Nodes by a subresource
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
		g.served[w.Name] = !g.places.reserve[w.Name] || g.c.holds(w.Name)
		g.spared(w)
	}
	if node := g.places.bound[w.Name].node; w.Resource == "pods" && g.leaving[node] {
		g.served[node] = true
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
// at the latest a minute after that. Until then, it may also create machines for the excess without a max. A machine for workload does not wait for those either that served when they were told to go, or that
// pods came to at that moment, which may take hours to drain; one of the reserve does. An instance that stood still while another one took the lease sends what it had
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

// outdated is longer than what the process decides on can be old: an outage, a silence, and a process that stood still, in a row.
const outdated = 10 * time.Minute

// places is what of pods, Nodes and marks matters to I2. All of it is known by the order of writes.
type places struct {
	writes int
	// closed is the write by which a Node got the reserve taint, bound that by which a pod got its Node.
	closed map[string]int
	bound  map[string]binding
	// reserve are the machines that are marked.
	reserve map[string]bool
	// workloads are how many machines workload was to have, and from when.
	workloads []workload
}

type binding struct {
	node string
	at   int
}

type workload struct {
	machines int
	since    time.Time
}

func newPlaces() places {
	return places{closed: map[string]int{}, bound: map[string]binding{}, reserve: map[string]bool{}}
}

// placed follows pods, Nodes, marks and replicas, and looks at I2 when a machine gets its mark.
func (g *guard) placed(w sim.Write) {
	p := &g.places
	p.writes++
	switch w.Resource {
	case "pods":
		node, _, _ := unstructured.NestedString(w.Object, "spec", "nodeName")
		if pool.IsNodeAgent(world.Decoded[corev1.Pod](w.Object)) {
			return
		}
		if w.Effect == sim.Deleted || node == "" {
			delete(p.bound, w.Name)
		} else if p.bound[w.Name].node != node {
			p.bound[w.Name] = binding{node, p.writes}
		}
	case "nodes":
		if w.Effect == sim.Deleted || !tainted(world.Decoded[corev1.Node](w.Object).Spec.Taints) {
			delete(p.closed, w.Name)
		} else if p.closed[w.Name] == 0 {
			p.closed[w.Name] = p.writes
			if w.User == evenkeel && !p.reserve[w.Name] {
				g.looked["I2"]++ // its machine enters the reserve next, unless pods are found on it
			}
		}
	case "machinedeployments":
		d := world.Decoded[api.MachineDeployment](w.Object)
		p.workloads = append(p.workloads, workload{world.Workload(d), w.Time})
	case "machines":
		annotations, _, _ := unstructured.NestedStringMap(w.Object, "metadata", "annotations")
		is := w.Effect != sim.Deleted && annotations[api.ReserveAnnotation] != ""
		if is && !p.reserve[w.Name] && w.Effect != sim.Added && w.User == evenkeel {
			g.retired(w)
		}
		p.reserve[w.Name] = is
	}
}

// retired is I2 for a machine that enters the reserve. No pod was on it when its Node was closed: one that the scheduler bound after that
// had looked at the Node before. And workload keeps as many machines as it was to have lately, since what the process knows may be old.
func (g *guard) retired(w sim.Write) {
	p := &g.places
	for pod, b := range p.bound {
		if closed := p.closed[w.Name]; b.node == w.Name && (closed == 0 || b.at < closed) {
			g.broken = append(g.broken, fmt.Sprintf("I2: machine %s is put in reserve, and pod %s was on it when its Node was closed", w.Name, pod))
		}
	}
	left := -1 // this one
	for name := range g.class {
		if !p.reserve[name] {
			left++
		}
	}
	if least := p.least(w.Time); left < least {
		g.broken = append(g.broken, fmt.Sprintf("I2: machine %s is put in reserve, and workload is left %d machines of %d", w.Name, left, least))
	}
}

// inReserve reports whether machines are in reserve and stay.
func (g *guard) inReserve() bool {
	for name, is := range g.places.reserve {
		if is && !g.leaving[name] {
			return true
		}
	}
	return false
}

// least is the smallest number of machines that workload was to have lately.
func (p *places) least(now time.Time) int {
	for len(p.workloads) > 1 && now.Sub(p.workloads[1].since) > outdated {
		p.workloads = p.workloads[1:]
	}
	least := p.workloads[0].machines
	for _, w := range p.workloads {
		least = min(least, w.machines)
	}
	return least
}

// standIn has a machine fail, and come back when the one that stood in for it has got a pod that the process has not been shown.
func (c *cluster) standIn(victim string, wait time.Duration) {
	c.cloud.set(func() { c.cloud.sick = map[string]bool{victim: true} })
	time.Sleep(wait)
	c.Target.Hold("pods", evenkeel)
	c.work(1)
	time.Sleep(wait)
	c.cloud.set(func() { c.cloud.sick = nil })
	time.Sleep(wait)
	c.Target.Release("pods", evenkeel)
}

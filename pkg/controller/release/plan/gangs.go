// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"

	"github.com/evenkeel/evenkeel/internal/kueue"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// PodGroup is what a decision needs to know of a group of pods.
type PodGroup struct {
	Created time.Time
	// Least is how many of its pods start together; 0 if each may start alone.
	Least int
	// Bound is how many of them have a Node.
	Bound int
	// Unclear reports whether it has rules that are not known here.
	Unclear bool
}

// PodGroupOf reads a PodGroup, of whose pods a number have a Node.
func PodGroupOf(g *schedulingv1alpha2.PodGroup, bound int) PodGroup {
	is := PodGroup{
		Created: g.CreationTimestamp.Time, Bound: bound,
		Unclear: g.Spec.SchedulingConstraints != nil || len(g.Spec.ResourceClaims) > 0,
	}
	if gang := g.Spec.SchedulingPolicy.Gang; gang != nil {
		is.Least = int(gang.MinCount)
	}
	return is
}

// PodGroupOfKueue reads a group of pods that Kueue admits together from the oldest of those that wait. Of
// the others, a number have a Node or have succeeded.
func PodGroupOfKueue(p *fit.Pod, others int) PodGroup {
	_, least := kueue.Group(p.Object)
	return PodGroup{Created: p.Object.CreationTimestamp.Time, Least: least, Bound: others}
}

// gang is the waiting pods of a group that start together, or not at all.
type gang struct {
	pods []*fit.Pod
	// least is how many of them need a place for any to start.
	least   int
	created time.Time
	// tried reports whether the scheduler has found no place for one of them. outcome is that of all
	// of them, if it is known without a look at machines.
	tried   bool
	outcome Outcome
}

func (g *gang) namespace() string { return g.pods[0].Object.Namespace }

// priority is that of its most important pod, which the scheduler tries first.
func (g *gang) priority() int32 {
	return slices.MaxFunc(g.pods, func(a, b *fit.Pod) int { return cmp.Compare(a.Priority(), b.Priority()) }).Priority()
}

// GroupName returns the namespace and the name of the PodGroup of a pod, or with a prefix of the group
// of pods that Kueue admits with it; empty if it has none.
func GroupName(p *fit.Pod) string {
	if name := p.Group(); name != "" {
		return p.Object.Namespace + "/" + name
	}
	if name, _ := kueue.Group(p.Object); name != "" {
		return p.Object.Namespace + "/kueue:" + name
	}
	return ""
}

// addToGang adds a waiting pod to the gang that it starts with. It reports false for a pod that may
// start alone: it has no group, or enough pods of its group run already.
func (r *round) addToGang(p *fit.Pod, tried bool) bool {
	name := GroupName(p)
	group, known := r.Groups[name]
	if !known || group.Unclear || group.Least <= group.Bound {
		return false
	}
	g := r.gangs[name]
	if g == nil {
		g = &gang{least: group.Least - group.Bound, created: group.Created}
		r.gangs[name] = g
	}
	p = p.Member()
	switch {
	case r.isDoubtful(p):
		g.outcome = Doubtful
	case p.Unclear != "" || len(g.pods) > 0 && g.pods[0].Object.Spec.SchedulerName != p.Object.Spec.SchedulerName:
		g.outcome = cmp.Or(g.outcome, Unclear)
	}
	g.pods, g.tried = append(g.pods, p), g.tried || tried
	return true
}

// member returns a pod that may start alone as one that can be decided about, if its group is known.
func (r *round) member(p *fit.Pod) *fit.Pod {
	if group, known := r.Groups[GroupName(p)]; known && !group.Unclear {
		return p.Member()
	}
	return p
}

// triedGangs returns the gangs that count, the most important first, without those whose outcome is
// known. A gang counts once the scheduler has found no place for one of its pods.
func (r *round) triedGangs() []*gang {
	var all []*gang
	for _, name := range slices.Sorted(maps.Keys(r.gangs)) {
		g := r.gangs[name]
		switch {
		case !g.tried:
			continue
		case g.outcome == "" && len(g.pods) < g.least && r.Beyond > 0:
			g.outcome = BeyondBounds
		case g.outcome == "" && len(g.pods) < g.least:
			g.outcome = NoReserve
		}
		if g.outcome != "" {
			r.recordOutcome(g)
			continue
		}
		all = append(all, g)
	}
	slices.SortStableFunc(all, func(a, b *gang) int {
		return cmp.Or(cmp.Compare(b.priority(), a.priority()), a.created.Compare(b.created))
	})
	return all
}

func (r *round) recordOutcome(g *gang) {
	for _, p := range g.pods {
		r.plan.Pods[p.Name()] = g.outcome
	}
}

// isInGang reports whether a waiting pod starts together with others.
func (r *round) isInGang(p *fit.Pod) bool { return r.gangs[GroupName(p)] != nil }

// withPodsOf returns pods with those of gangs, the most important first.
func withPodsOf(gangs []*gang, pods []*fit.Pod) []*fit.Pod {
	if len(gangs) == 0 {
		return pods
	}
	for _, g := range gangs {
		pods = append(pods, g.pods...)
	}
	slices.SortStableFunc(pods, func(a, b *fit.Pod) int { return byImportance(a.Object, b.Object) })
	return pods
}

// limitGangs omits gangs with pods that are beyond the bounds of a decision.
func (r *round) limitGangs(gangs []*gang, beyond []*fit.Pod) []*gang {
	return slices.DeleteFunc(gangs, func(g *gang) bool {
		if !slices.ContainsFunc(beyond, func(p *fit.Pod) bool { return r.gangs[GroupName(p)] == g }) {
			return false
		}
		g.outcome = BeyondBounds
		r.recordOutcome(g)
		return true
	})
}

// placeNominatedGangs places the pods that are nominated for machines which their owners have claimed,
// and returns the gangs with the other pods.
func (r *round) placeNominatedGangs(gangs []*gang) []*gang {
	for _, g := range gangs {
		left := r.placeNominated(g.pods)
		g.least -= len(g.pods) - len(left)
		g.pods = left
	}
	return slices.DeleteFunc(gangs, func(g *gang) bool { return len(g.pods) == 0 })
}

// packAll finds machines for all pods, by priority. Of the same priority, gangs come before pods that
// may start alone, which have more ways to start.
func (r *round) packAll(alone fit.Demand, gangs []*gang) {
	r.setSimilar()
	room := fit.NewRoom(r.nodes)
	priorities, namespaces := map[int32]bool{}, map[string]int{}
	for _, g := range gangs {
		priorities[g.priority()], namespaces[g.namespace()] = true, 0
	}
	budget := fit.MaxWork / (1 + len(priorities))
	for namespace := range namespaces {
		namespaces[namespace] = fit.MaxWork / len(namespaces)
	}
	for _, g := range gangs {
		if priorities[g.priority()] {
			delete(priorities, g.priority())
			var before fit.Demand
			before, alone = splitDemand(alone, g.priority())
			r.packPods(room, before, budget)
		}
		namespaces[g.namespace()] -= r.packGang(room, g, namespaces[g.namespace()])
	}
	r.packPods(room, alone, budget)
	r.addShortages(gangs)
	r.finish()
}

// splitDemand divides demand into the pods of a higher priority, with those that the scheduler has
// chosen a node for, and the others.
func splitDemand(all fit.Demand, priority int32) (before, after fit.Demand) {
	before.Interrupted, after.Interrupted = all.Interrupted, all.Interrupted
	isBefore := func(p *fit.Pod) bool { return p.Priority() > priority || p.AwaitsVolume() }
	for _, p := range all.Pods {
		if isBefore(p) {
			before.Pods = append(before.Pods, p)
		} else {
			after.Pods = append(after.Pods, p)
		}
	}
	for _, u := range all.Uncreated {
		if isBefore(u.Like) {
			before.Uncreated = append(before.Uncreated, u)
		} else {
			after.Uncreated = append(after.Uncreated, u)
		}
	}
	return before, after
}

// packGang finds machines for enough pods of a gang, or for none of them. It returns how much of the
// budget that took.
func (r *round) packGang(room *fit.Room, g *gang, budget int) int {
	if budget <= 0 {
		g.outcome = BeyondBounds
		r.recordOutcome(g)
		return 0
	}
	owner, groups := r.ownerOf(g), r.groupsOf("")
	if owner != "" {
		groups = slices.Concat(r.groupsOf(owner), groups)
	}
	packing := fit.Pack(room, fit.Demand{Pods: g.pods, Least: max(0, g.least), Budget: budget, Interrupted: r.Interrupted}, groups)
	r.record(owner, groups, packing, true)
	r.recordUnplaced(packing)
	return packing.Work
}

// ownerOf returns the owner of dedicated machines that owns all pods of a gang; empty if there is none.
func (r *round) ownerOf(g *gang) v1alpha1.Owner {
	for _, owner := range r.owners() {
		if !slices.ContainsFunc(g.pods, func(p *fit.Pod) bool { return !owner.Owns(p.Object) }) {
			return owner
		}
	}
	return ""
}

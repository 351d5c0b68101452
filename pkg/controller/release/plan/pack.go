// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// maxOwners is how many owners of dedicated machines are considered.
const maxOwners = 64

// packPods finds machines for pods that may start alone (law 9): the pods of each owner of dedicated
// machines come first, on these. Then all that have no place yet are packed onto the machines that are
// for all pods. Pods that do not exist yet cannot be nominated, so no dedicated machine is opened for
// them.
func (r *round) packPods(room *fit.Room, all fit.Demand, budget int) {
	owners := r.owners()
	for _, owner := range owners {
		theirs := demandOf(all, owner)
		if countPods(theirs, nil) == 0 {
			continue
		}
		theirs.Budget = budget / len(owners)
		groups := r.groupsOf(owner)
		packing := fit.Pack(room, theirs, groups)
		r.record(owner, groups, packing, false)
		all = without(all, owner, packing)
	}
	all.Budget = budget
	groups := r.groupsOf("")
	packing := fit.Pack(room, all, groups)
	r.record("", groups, packing, false)
	r.recordUnplaced(packing)
}

// recordUnplaced decides the outcome of each pod that has no place.
func (r *round) recordUnplaced(packing fit.Packing) {
	for _, p := range packing.Left {
		r.plan.Pods[p.Name()] = NoReserve
		if p.Unclear != "" {
			r.plan.Pods[p.Name()] = Unclear
		}
	}
	for _, p := range packing.Unfinished {
		r.plan.Pods[p.Name()] = BeyondBounds
	}
}

// placeNominated places the pods that are nominated for machines which their owners have claimed, and
// returns the other pods. Each such pod keeps its machine until that opens.
func (r *round) placeNominated(pods []*fit.Pod) []*fit.Pod {
	var left []*fit.Pod
	for _, p := range pods {
		node := r.Nominated[p.Object.UID]
		if r.roles[node].claimedBy.Owns(p.Object) {
			r.nominated[node] = append(r.nominated[node], p)
			r.plan.Pods[p.Name()] = Coming
			continue
		}
		left = append(left, p)
	}
	return left
}

// owners returns the owners with machines that can be claimed, or are: workloads first, then
// namespaces.
func (r *round) owners() []v1alpha1.Owner {
	var all []v1alpha1.Owner
	add := func(owner v1alpha1.Owner) {
		if owner != "" && !slices.Contains(all, owner) {
			all = append(all, owner)
		}
	}
	for _, g := range r.groups {
		if len(g.Nodes) > 0 {
			add(g.owner)
		}
	}
	for _, role := range r.roles {
		add(role.claimedBy)
	}
	slices.SortFunc(all, func(a, b v1alpha1.Owner) int {
		return cmp.Or(cmp.Compare(strings.Count(string(b), "/"), strings.Count(string(a), "/")), cmp.Compare(a, b))
	})
	return all[:min(len(all), maxOwners)]
}

// groupsOf returns the machines of an owner in each pool, as many as are left below max.
func (r *round) groupsOf(owner v1alpha1.Owner) []fit.Group {
	var all []fit.Group
	for _, g := range r.groups {
		if g.owner == owner {
			if raise := r.raises[g.Name]; raise != nil {
				g.Limit, g.Size = max(0, g.Limit-raise.By), g.Size+raise.By
				g.Nodes = slices.DeleteFunc(slices.Clone(g.Nodes), func(node string) bool { return r.opened[node] != nil })
			}
			all = append(all, g.Group)
		}
	}
	return all
}

// demandOf is the demand of pods that an owner owns.
func demandOf(all fit.Demand, owner v1alpha1.Owner) fit.Demand {
	theirs := fit.Demand{Interrupted: all.Interrupted}
	for _, p := range all.Pods {
		if owner.Owns(p.Object) {
			theirs.Pods = append(theirs.Pods, p)
		}
	}
	return theirs
}

// without is a demand without the pods that have a place, and without those that an owner will
// have.
func without(all fit.Demand, owner v1alpha1.Owner, packing fit.Packing) fit.Demand {
	placed := map[*fit.Pod]bool{}
	for _, place := range packing.Places {
		placed[place.Pod] = true
	}
	left := fit.Demand{Interrupted: all.Interrupted}
	for _, p := range all.Pods {
		if !placed[p] {
			left.Pods = append(left.Pods, p)
		}
	}
	for _, u := range all.Uncreated {
		if !owner.Owns(u.Like.Object) {
			left.Uncreated = append(left.Uncreated, u)
		}
	}
	return left
}

// record turns a packing into raises, and decides the outcome of each pod that has a place. Pods that
// start together wait until there is room for all of them.
func (r *round) record(owner v1alpha1.Owner, groups []fit.Group, packing fit.Packing, together bool) {
	for g, n := range packing.Opened {
		for _, node := range groups[g].Nodes[:n] {
			r.release(groups[g].Name, node)
		}
	}
	for node, n := range packing.Uncreated {
		if raise := r.opened[node]; raise != nil {
			raise.Uncreated += n
		}
	}
	waits := together && slices.ContainsFunc(packing.Places, func(p fit.Place) bool {
		return r.opened[p.Node] != nil || r.roles[p.Node].kind == coming
	})
	for _, place := range packing.Places {
		name := place.Pod.Name()
		raise := r.opened[place.Node]
		switch {
		case raise != nil:
			r.plan.Pods[name] = Released
			raise.For = append(raise.For, name)
			if owner != "" && r.roles[place.Node].kept {
				raise.Nominations = append(raise.Nominations, Nomination{Pod: place.Pod, Node: place.Node})
			}
		case r.roles[place.Node].kind == coming:
			r.plan.Pods[name] = Coming
			if owner != "" && r.roles[place.Node].claimedBy == owner {
				r.plan.Nominations = append(r.plan.Nominations, Nomination{Pod: place.Pod, Node: place.Node})
			}
		case waits:
			r.plan.Pods[name] = HasRoom
		default:
			r.plan.Pods[name] = HasRoom
			r.remember(place.Pod)
		}
	}
}

// release adds a machine to the raise of its pool.
func (r *round) release(key, node string) {
	if r.raises[key] == nil {
		r.raises[key] = &Raise{}
	}
	raise, machine := r.raises[key], r.roles[node].machine
	r.opened[node] = raise
	raise.By++
	raise.Machines = append(raise.Machines, machine)
	if r.roles[node].kept {
		raise.Claimed = append(raise.Claimed, machine)
	}
}

// finish adds the raises to the plan, by pool.
func (r *round) finish() {
	for _, p := range r.Pools {
		if raise := r.raises[p.Key]; raise != nil {
			raise.Pool = p
			slices.Sort(raise.For)
			r.plan.Raises = append(r.plan.Raises, *raise)
		}
	}
}

// setSimilar names the set of similar pools that each group of machines is from. Pools without a
// machine to release do not matter. What DaemonSets leave of a machine is not compared here: fit.Pack
// compares what machines hold.
func (r *round) setSimilar() {
	if !r.Settings.Even {
		return
	}
	spare := map[string]bool{}
	for _, g := range r.groups {
		spare[g.Name] = spare[g.Name] || len(g.Nodes) > 0
	}
	templates := map[string][]similar.Template{}
	for _, p := range r.Pools {
		if p.Sample != nil && spare[p.Key] {
			namespace, _, _ := strings.Cut(p.Key, "/")
			worker := namespace + "/" + p.WorkerPool
			templates[worker] = append(templates[worker], p.template())
		}
	}
	sets := map[string]string{}
	for _, some := range templates {
		for _, names := range similar.Groups(some, r.Settings.Similar) {
			for _, name := range names {
				sets[name] = names[0]
			}
		}
	}
	for i := range r.groups {
		r.groups[i].Set = sets[r.groups[i].Name]
	}
}

func (p Pool) template() similar.Template {
	offered := p.Sample.Status
	return similar.Template{
		Name: p.Key, Capacity: offered.Capacity, Allocatable: offered.Allocatable, Free: offered.Allocatable,
		Labels: p.Sample.Labels, Taints: p.Taints,
	}
}

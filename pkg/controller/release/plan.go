// SPDX-License-Identifier: Apache-2.0

package release

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// Outcome is what becomes of a pod that waits.
type Outcome string

const (
	// Released: a machine is released for it.
	Released Outcome = "Released"
	// Coming: a machine that is about to be released, or boots, will hold it.
	Coming Outcome = "Coming"
	// HasRoom: a machine that serves holds it, or one in reserve as it is.
	HasRoom Outcome = "HasRoom"
	// NoReserve: no machine in reserve holds it, or none may be released.
	NoReserve Outcome = "NoReserve"
	// Unclear: it cannot be told where it may run.
	Unclear Outcome = "Unclear"
	// Doubtful: it went on waiting though there was room.
	Doubtful Outcome = "Doubtful"
	// BeyondBounds: more waits than one decision looks at.
	BeyondBounds Outcome = "BeyondBounds"
)

// Outcomes are all there are.
var Outcomes = []Outcome{Released, Coming, HasRoom, NoReserve, Unclear, Doubtful, BeyondBounds}

// Plan is what to write, and what becomes of whom.
type Plan struct {
	Raises []Raise
	// Pods are those that count, by namespace/name.
	Pods map[string]Outcome
	// Beyond is how many others count, and were not looked at.
	Beyond int
	Memory Memory
}

// Raise is one write.
type Raise struct {
	Pool Pool
	// By is the number of machines, and Machines are those that will be released.
	By       int
	Machines []string
	// For are the pods, and Uncreated is how many others there will be.
	For       []string
	Uncreated int
}

// NewPlan decides how many machines each pool releases.
func NewPlan(v View) Plan {
	r := &round{View: v, plan: Plan{Pods: map[string]Outcome{}, Beyond: v.Beyond, Memory: Memory{}}, standing: map[string]standing{}}
	demand := r.demand()
	if r.many = many(demand); r.many == 0 {
		return r.plan
	}
	for _, p := range v.Pools {
		r.stand(p)
	}
	r.furnish()
	r.judge(fit.Pack(fit.NewRoom(r.nodes), demand, r.groups))
	return r.plan
}

// round is one decision.
type round struct {
	View
	plan Plan
	// many is how many pods count.
	many int
	// standing is that of the pools' nodes, by name.
	standing map[string]standing
	// samples stand for machines that are owed and have no Node yet.
	samples []Node
	nodes   []fit.Node
	groups  []fit.Group
	// readyNodes is made when it is first asked for.
	readyNodes map[string]bool
}

// demand is the pods that count, with those that the scheduler has not come to yet and that are like one that it has
// found no place for: it will not find one for them either.
func (r *round) demand() fit.Demand {
	looked := map[string]bool{}
	var untried, all []*fit.Pod
	for _, p := range r.Waiting {
		counts, tried := r.Settings.counts(p.Object)
		switch {
		case !counts:
		case !tried:
			untried = append(untried, p)
		case r.doubts(p):
			r.plan.Pods[p.Name()] = Doubtful
		default:
			looked[p.Shape()] = true
			all = append(all, p)
		}
	}
	all, beyond := limitShapes(all)
	for _, p := range beyond {
		r.plan.Pods[p.Name()], looked[p.Shape()] = BeyondBounds, false
	}
	d := fit.Demand{Uncreated: r.uncreated(all), Interrupted: r.Interrupted}
	for _, p := range untried {
		if looked[p.Shape()] {
			all = append(all, p)
		}
	}
	d.Pods = all
	return d
}

// many is how many pods there are and will be.
func many(d fit.Demand) int {
	n := len(d.Pods)
	for _, u := range d.Uncreated {
		n = min(n+u.Count, MaxPods)
	}
	return n
}

// doubts says that a pod has waited beside room for too long. That is remembered as long as it waits.
func (r *round) doubts(p *fit.Pod) bool {
	since, known := r.Memory[p.Object.UID]
	if !known || r.Now.Sub(since) < r.Settings.Patience {
		return false
	}
	r.plan.Memory[p.Object.UID] = since
	return true
}

// judge turns a packing into raises, and says what becomes of each pod.
func (r *round) judge(packing fit.Packing) {
	raises := make([]Raise, len(r.groups))
	opened := map[string]int{}
	for g, n := range packing.Opened {
		raises[g].By = n
		for _, node := range r.groups[g].Nodes[:n] {
			raises[g].Machines = append(raises[g].Machines, r.standing[node].machine)
			opened[node] = g
		}
	}
	for node, n := range packing.Uncreated {
		if g, released := opened[node]; released {
			raises[g].Uncreated += n
		}
	}
	for _, place := range packing.Places {
		name := place.Pod.Name()
		g, released := opened[place.Node]
		switch where, known := r.standing[place.Node]; {
		case released:
			r.plan.Pods[name] = Released
			raises[g].For = append(raises[g].For, name)
		case known && where.kind == coming:
			r.plan.Pods[name] = Coming
		default:
			r.plan.Pods[name] = HasRoom
			r.remember(place.Pod)
		}
	}
	for _, p := range packing.Left {
		r.plan.Pods[p.Name()] = NoReserve
		if p.Unclear != "" {
			r.plan.Pods[p.Name()] = Unclear
		}
	}
	for _, p := range packing.Unfinished {
		r.plan.Pods[p.Name()] = BeyondBounds
	}
	for g := range raises {
		if raises[g].By > 0 {
			raises[g].Pool = r.pool(r.groups[g].Name)
			slices.Sort(raises[g].For)
			r.plan.Raises = append(r.plan.Raises, raises[g])
		}
	}
}

// remember notes since when a pod has waited beside room.
func (r *round) remember(p *fit.Pod) {
	if _, tried := r.Settings.counts(p.Object); !tried {
		return
	}
	since, known := r.Memory[p.Object.UID]
	if !known {
		since = r.Now
	}
	r.plan.Memory[p.Object.UID] = since
}

func (r *round) pool(key string) Pool {
	i := slices.IndexFunc(r.Pools, func(p Pool) bool { return p.Key == key })
	return r.Pools[i]
}

// furnish gives every node what will run there: to machines that are released, or boot, also the pods of DaemonSets that
// come as soon as the taint is gone. Where the decision is interrupted, the nodes that are left take no part.
func (r *round) furnish() {
	for _, n := range slices.Concat(r.Nodes, r.samples) {
		if r.Interrupted != nil && r.Interrupted() {
			return
		}
		s := r.standing[n.Object.Name]
		node := fit.Node{Object: n.Object, Pods: n.Pods}
		switch s.kind {
		case leaving:
			cordoned := *n.Object
			cordoned.Spec.Unschedulable = true
			node.Object = &cordoned
		case serving:
			node.Without = reserveTaint
		case coming, spare:
			node.Without, node.Closed = reserveTaint, s.kind == spare
			node.Pods = slices.Concat(n.Pods, r.missing(n))
		}
		r.nodes = append(r.nodes, node)
	}
}

// missing are the pods of DaemonSets that are not on a node and will be: those for which there is room, the most important first.
func (r *round) missing(n Node) []*fit.Pod {
	there := map[types.UID]bool{}
	for _, p := range n.Pods {
		for _, owner := range p.Object.OwnerReferences {
			there[owner.UID] = true
		}
	}
	var all []*fit.Pod
	room := fit.NewRoom([]fit.Node{{Object: n.Object, Pods: n.Pods, Without: reserveTaint}})
	for _, d := range r.Daemons {
		if !there[d.Owner] && room.Ask(d.Pod, n.Object.Name) == fit.Fits {
			room.Put(d.Pod, n.Object.Name)
			all = append(all, d.Pod)
		}
	}
	return all
}

// sampled is a node like a sample, under a name of its own.
func sampled(sample *corev1.Node, name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: sample.ObjectMeta, Spec: corev1.NodeSpec{Taints: sample.Spec.Taints}, Status: sample.Status}
	n.Name, n.Labels = name, maps.Clone(sample.Labels)
	if _, ok := n.Labels[corev1.LabelHostname]; ok {
		n.Labels[corev1.LabelHostname] = name
	}
	return n
}

// SPDX-License-Identifier: Apache-2.0

// Package plan decides which machines of the reserve are released for waiting pods. [New] returns a
// [Plan] for a [View] of both clusters: by how much the replicas of MachineDeployments rise, and
// which pods are nominated. It is pure, and its laws are those of package release.
package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/fit/devices"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Outcome is what a decision means for a waiting pod.
type Outcome string

const (
	// Released: a machine is released for it.
	Released Outcome = "Released"
	// Coming: it fits a machine that is about to be released, or boots.
	Coming Outcome = "Coming"
	// HasRoom: it fits a serving machine, or one in reserve with its taint.
	HasRoom Outcome = "HasRoom"
	// NoReserve: it fits no machine in reserve, or none may be released.
	NoReserve Outcome = "NoReserve"
	// Unclear: the rules cannot decide where it can run.
	Unclear Outcome = "Unclear"
	// Doubtful: it still waits although there was room for it.
	Doubtful Outcome = "Doubtful"
	// BeyondBounds: more pods wait than one decision considers.
	BeyondBounds Outcome = "BeyondBounds"
)

// Outcomes are all outcomes.
var Outcomes = []Outcome{Released, Coming, HasRoom, NoReserve, Unclear, Doubtful, BeyondBounds}

// Plan is what to write, and the outcome of each pod.
type Plan struct {
	Raises []Raise
	// Nominations are for machines that are claimed already and have not opened yet: of pods that have
	// lost their nominations, and of pods that use a machine in place of others.
	Nominations []Nomination
	// Pods are the outcomes of pods that count, by namespace/name.
	Pods map[string]Outcome
	// Beyond is how many other pods count, and were not considered.
	Beyond int
	// Shortages are what gangs lack that the reserve cannot hold, of the most important ones.
	Shortages []Shortage
	Memory    Memory
	// Again is the time until the next decision without an event; 0 means never.
	Again time.Duration
}

// Raise is one write.
type Raise struct {
	Pool Pool
	// By is the number of machines, and Machines are those that will be released. Claimed are those
	// of them that are dedicated to an owner of pods that wait.
	By       int
	Machines []string
	Claimed  []string
	// For are the pods, and Uncreated is how many others there will be.
	For       []string
	Uncreated int
	// Nominations are the pods for which dedicated machines are claimed.
	Nominations []Nomination
}

// Nomination is a pod that is to run on a node that is dedicated to its owner. Without a node, it
// withdraws the nomination that the pod has.
type Nomination struct {
	Pod  *fit.Pod
	Node string
}

// New decides how many machines each pool releases.
func New(v View) Plan {
	r := &round{
		View: v, plan: Plan{Pods: map[string]Outcome{}, Beyond: v.Beyond, Memory: Memory{}}, gangs: map[string]*gang{},
		roles: make(map[string]nodeRole, len(v.Nodes)), raises: map[string]*Raise{}, opened: map[string]*Raise{}, nominated: map[string][]*fit.Pod{},
	}
	alone, gangs := r.demand()
	if r.podCount = countPods(alone, gangs); r.podCount == 0 {
		return r.plan
	}
	for _, p := range v.Pools {
		r.classify(p)
	}
	alone.Pods = r.placeNominated(alone.Pods)
	gangs = r.placeNominatedGangs(gangs)
	r.buildNodes()
	r.packAll(alone, gangs)
	return r.plan
}

// round is one decision.
type round struct {
	View
	plan Plan
	// gangs are the waiting pods that start together, by namespace/name of their group.
	gangs map[string]*gang
	// podCount is how many pods count.
	podCount int
	// roles are those of the pools' nodes, by name.
	roles map[string]nodeRole
	// samples represent machines that are owed and have no Node yet.
	samples []Node
	nodes   []fit.Node
	groups  []group
	// raises are those that are decided, by pool, and opened those that release a node.
	raises, opened map[string]*Raise
	// nominated are the pods that keep their nominations for claimed machines, by node.
	nominated map[string][]*fit.Pod
	// readyNodes is set on first use.
	readyNodes map[string]*corev1.Node
}

// demand returns the pods that count, those that may start alone and gangs. The former include pods
// that the scheduler has not tried yet, if it found no node for a similar one, or if it has chosen a
// node for them, where they take room.
func (r *round) demand() (fit.Demand, []*gang) {
	looked := map[string]bool{}
	var untried, all []*fit.Pod
	for _, p := range r.Waiting {
		counts, tried := r.Settings.Evaluate(p.Object)
		if counts && r.addToGang(p, tried) {
			continue
		}
		p = r.member(p)
		switch {
		case !counts:
		case !tried:
			untried = append(untried, p)
		case r.isDoubtful(p):
			r.plan.Pods[p.Name()] = Doubtful
		default:
			looked[p.Shape()] = true
			all = append(all, p)
		}
	}
	gangs := r.triedGangs()
	all, beyond := limitShapes(withPodsOf(gangs, all))
	for _, p := range beyond {
		r.plan.Pods[p.Name()], looked[p.Shape()] = BeyondBounds, false
	}
	gangs = r.limitGangs(gangs, beyond)
	all = slices.DeleteFunc(all, r.isInGang)
	d := fit.Demand{Uncreated: r.uncreatedPods(all), Interrupted: r.Interrupted}
	for _, p := range untried {
		if looked[p.Shape()] || p.AwaitsVolume() {
			all = append(all, p)
		}
	}
	d.Pods = all
	return d, gangs
}

// countPods returns how many pods there are and will be. Beyond MaxPods it does not count on: only
// machines that boot for replicas are compared with it, and so many never boot at once.
func countPods(d fit.Demand, gangs []*gang) int {
	n := len(d.Pods)
	for _, g := range gangs {
		n += len(g.pods)
	}
	for _, u := range d.Uncreated {
		n = min(n+u.Count, MaxPods)
	}
	return n
}

// isDoubtful reports whether a pod has waited too long although there is room for it. This is
// remembered as long as it waits, or until the scheduler has chosen a node for it, where it takes room.
func (r *round) isDoubtful(p *fit.Pod) bool {
	pod := p.Object.UID
	if p.AwaitsVolume() || !r.Memory.doubts(pod, r.Now, r.Settings.Patience) {
		return false
	}
	r.plan.Memory[pod] = r.Memory[pod]
	return true
}

// remember records since when a pod has waited although there is room. Volumes may take longer to be
// created than its patience.
func (r *round) remember(p *fit.Pod) {
	if _, tried := r.Settings.Evaluate(p.Object); !tried || p.AwaitsVolume() {
		return
	}
	since, known := r.Memory[p.Object.UID]
	if !known {
		since = r.Now
	}
	r.plan.Memory[p.Object.UID] = since
}

// buildNodes sets what will run on every node. For machines that are released or boot, this
// includes the pods of DaemonSets that start when the taint is removed. If the decision is
// interrupted, the remaining nodes take no part.
func (r *round) buildNodes() {
	for _, n := range slices.Concat(r.Nodes, r.samples) {
		if r.Interrupted != nil && r.Interrupted() {
			return
		}
		s := r.roles[n.Object.Name]
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
			node.Pods = slices.Concat(n.Pods, r.nominated[n.Object.Name], r.missingDaemons(n))
		}
		r.nodes = append(r.nodes, node)
	}
}

// missingDaemons returns the pods of DaemonSets that will start on a node: those for which there is
// room, the most important first.
func (r *round) missingDaemons(n Node) []*fit.Pod {
	type key struct {
		namespace string // a pod of another one only names a DaemonSet as its owner
		owner     types.UID
	}
	there := map[key]bool{}
	for _, p := range n.Pods {
		for _, owner := range p.Object.OwnerReferences {
			there[key{p.Object.Namespace, owner.UID}] = true
		}
	}
	var missing []*fit.Pod
	for _, d := range r.Daemons {
		if !there[key{d.Pod.Object.Namespace, d.Owner}] {
			missing = append(missing, d.Pod)
		}
	}
	return fit.Fill(fit.Node{Object: n.Object, Pods: n.Pods, Without: reserveTaint}, missing)
}

// nodeLike returns a node that has the same room for pods and the same devices as a sample, and a name of
// its own.
func nodeLike(sample *corev1.Node, name string) *corev1.Node {
	n := pool.NodeLike(sample, name)
	devices.Like(n, sample.Name)
	return n
}

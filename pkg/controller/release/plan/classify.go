// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// reserveTaint is ignored on machines that serve, are about to serve, or are released.
var reserveTaint = []string{v1alpha1.ReserveTaintKey}

// role is what a machine of a pool means for waiting pods.
type role int

const (
	// The zero value is a node that belongs to no pool.
	_ role = iota
	// serving: workload can use it.
	serving
	// coming: it is released next whatever is decided here, or boots for that.
	coming
	// spare: it is in reserve.
	spare
	// leaving: it takes no more pods.
	leaving
)

// group is machines of a pool that may be released, in the order in which they are.
type group struct {
	fit.Group
	// owner is who they are dedicated to; empty if they are for all pods.
	owner v1alpha1.Owner
}

type nodeRole struct {
	kind    role
	machine string
	// kept reports whether it is dedicated to an owner.
	kept bool
	// claimedBy is the owner whose pods it is about to be opened for; empty if there is none.
	claimedBy v1alpha1.Owner
}

// classify determines the role of each machine of a pool, and which machines may be released in
// which order. It asks the rule of the reserve what it would release for the present replicas, and
// for as many as max allows.
func (r *round) classify(p Pool) {
	due := reserve.ReleaseOrder(p.Reserve, p.Replicas)
	next := reserve.ReleaseOrder(p.Reserve, max(p.Max, p.Replicas))
	shared := group{Group: fit.Group{Name: p.Key, Size: p.Replicas, Limit: max(0, p.Max-p.Replicas-pool.Dedicated(p.Reserve.Dedicated))}}
	ready := r.readyNodesByName()
	usable := func(m reserve.Machine) bool {
		node := ready[p.NodeOf[m.Name]]
		return m.Ready() && node != nil && !r.isStarting(node, p.Sample)
	}
	kinds := rolesOf(p.Reserve.Machines, due)
	owners := reserve.Dedicate(p.Reserve.Machines, p.Reserve.Dedicated)
	machines := make(map[string]reserve.Machine, len(p.Reserve.Machines))
	for i, m := range p.Reserve.Machines {
		machines[m.Name] = m
		if node := p.NodeOf[m.Name]; node != "" {
			role := nodeRole{kind: kinds[i], machine: m.Name}
			if role.kind == coming {
				role.claimedBy = owners[i]
			}
			r.roles[node] = role
		}
	}
	for _, name := range next {
		if slices.Contains(due, name) {
			continue
		}
		if !usable(machines[name]) {
			break // those after it come only when it has come
		}
		shared.Nodes = append(shared.Nodes, p.NodeOf[name])
	}
	r.groups = append(r.groups, shared)
	r.addDedicated(p, func(name string) bool { return usable(machines[name]) })
	r.addOwedMachines(p, owedMachines(p, kinds, usable))
}

// addDedicated adds the machines of each owner that can be used.
func (r *round) addDedicated(p Pool, usable func(name string) bool) {
	for owner, names := range reserve.DedicatedOrder(p.Reserve) {
		kept := group{owner: owner, Group: fit.Group{Name: p.Key, Size: p.Replicas, Limit: max(0, p.Max-p.Replicas)}}
		for _, name := range names {
			if usable(name) {
				node := p.NodeOf[name]
				kept.Nodes = append(kept.Nodes, node)
				r.roles[node] = nodeRole{kind: spare, machine: name, kept: true}
			}
		}
		r.groups = append(r.groups, kept)
	}
}

// rolesOf returns the role of each machine. The machines in due are about to be released.
func rolesOf(machines []reserve.Machine, due []string) []role {
	kinds := make([]role, len(machines))
	for i, m := range machines {
		switch {
		case m.Leaving():
			kinds[i] = leaving
		case !m.Reserve:
			kinds[i] = serving
		case slices.Contains(due, m.Name):
			kinds[i] = coming
		default:
			kinds[i] = spare
		}
	}
	return kinds
}

// owedMachines returns how many machines that replicas ask for cannot be used yet, and will be: no
// more than boot, or are yet to be created. A machine in reserve that cannot be created takes the
// place of one that could serve.
func owedMachines(p Pool, kinds []role, usable func(reserve.Machine) bool) int {
	owed, missing, booting := p.Replicas, pool.VisibleReplicas(p.Replicas, p.Reserve.Applied), 0
	for i, m := range p.Reserve.Machines {
		if kinds[i] == leaving {
			continue
		}
		missing--
		switch {
		case usable(m) && kinds[i] != spare, willNotServe(m) && kinds[i] == serving:
			owed--
		case !usable(m) && !willNotServe(m):
			booting++
		}
	}
	return min(owed, booting+max(0, missing))
}

// willNotServe reports whether a machine will not serve soon, if ever, so that no pod should wait
// for it.
func willNotServe(m reserve.Machine) bool { return m.Unhealthy() || m.Failing }

// addOwedMachines adds room on machines that replicas ask for and that do not exist yet. One for
// each pod is enough.
func (r *round) addOwedMachines(p Pool, n int) {
	if p.Sample == nil {
		return
	}
	for i := range min(n, r.podCount) {
		name := fmt.Sprintf("%s/%d", p.Key, i) // a slash is in no name of a Node
		r.samples = append(r.samples, Node{Object: nodeLike(p.Sample, name)})
		r.roles[name] = nodeRole{kind: coming}
	}
}

// readyNodesByName returns the ready Nodes.
func (r *round) readyNodesByName() map[string]*corev1.Node {
	if r.readyNodes == nil {
		r.readyNodes = make(map[string]*corev1.Node, len(r.Nodes))
		for _, n := range r.Nodes {
			if pool.NodeReady(n.Object) {
				r.readyNodes[n.Object.Name] = n.Object
			}
		}
	}
	return r.readyNodes
}

// isStarting reports whether a Node has just become ready and still has a taint that machines like it
// do not keep, so that pods can be bound to it a moment later. If the taint stays, the next decision
// does not wait for it.
func (r *round) isStarting(n, sample *corev1.Node) bool {
	passes := func(t corev1.Taint) bool { return pool.IsForeignTaint(t, sample.Spec.Taints) }
	if sample == nil || n.Spec.Unschedulable || !slices.ContainsFunc(n.Spec.Taints, passes) {
		return false
	}
	left := similar.Settling - r.Now.Sub(readySince(n)).Abs() // the clock of the kubelet may be ahead
	r.plan.Again = requeue.Sooner(r.plan.Again, left)
	return left > 0
}

func readySince(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

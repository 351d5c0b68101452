// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// reserveTaint counts as gone on machines that serve, that are about to, or that are released.
var reserveTaint = []string{v1alpha1.ReserveTaintKey}

// kind is what a machine of a pool is to pods that wait.
type kind int

const (
	// A node of no pool here is what it is.
	_ kind = iota
	// serving is for workload.
	serving
	// coming is owed to workload: it is released next whatever is decided here, or it boots for that.
	coming
	// spare is in reserve.
	spare
	// leaving takes no more pods.
	leaving
)

type standing struct {
	kind    kind
	machine string
}

// stand finds what each machine of a pool is, and which may be released in what order. That is the rule of the reserve
// itself: it is asked what it would release for the replicas there are, and for as many as there may be.
func (r *round) stand(p Pool) {
	due := reserve.ReleaseOrder(p.Reserve, p.Replicas)
	next := reserve.ReleaseOrder(p.Reserve, max(p.Max, p.Replicas))
	group := fit.Group{Name: p.Key, Limit: max(0, p.Max-p.Replicas)}
	ready := r.ready()
	usable := func(m reserve.Machine) bool { return m.Ready() && ready[p.NodeOf[m.Name]] }
	byName := map[string]reserve.Machine{}
	owed := p.Replicas
	for _, m := range p.Reserve.Machines {
		byName[m.Name] = m
		s := standing{kind: spare, machine: m.Name}
		switch {
		case m.Leaving():
			s.kind = leaving
		case !m.Reserve:
			s.kind = serving
			if usable(m) || broken(m) {
				owed--
			}
		case slices.Contains(due, m.Name):
			s.kind = coming
			if usable(m) {
				owed--
			}
		}
		if node := p.NodeOf[m.Name]; node != "" {
			r.standing[node] = s
		}
	}
	for _, name := range next {
		m := byName[name]
		if slices.Contains(due, name) {
			continue
		}
		if !usable(m) {
			break // those after it come only when it has come
		}
		group.Nodes = append(group.Nodes, p.NodeOf[name])
	}
	r.groups = append(r.groups, group)
	r.owe(p, owed)
}

// broken says that a machine will not serve soon, if ever: nobody should wait for it.
func broken(m reserve.Machine) bool { return m.Unhealthy() || m.Failing }

// owe makes room on machines that replicas ask for and that are not there yet. One for each pod is always enough.
func (r *round) owe(p Pool, n int) {
	if p.Sample == nil {
		return
	}
	for i := range min(n, r.many) {
		name := fmt.Sprintf("%s/%d", p.Key, i) // a slash is in no name of a Node
		r.samples = append(r.samples, Node{Object: sampled(p.Sample, name)})
		r.standing[name] = standing{kind: coming}
	}
}

// ready has the names of the Nodes that are.
func (r *round) ready() map[string]bool {
	if r.readyNodes == nil {
		r.readyNodes = make(map[string]bool, len(r.Nodes))
		for _, n := range r.Nodes {
			r.readyNodes[n.Object.Name] = pool.NodeReady(n.Object)
		}
	}
	return r.readyNodes
}

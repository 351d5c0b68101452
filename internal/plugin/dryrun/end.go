// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// End is the state when nothing happens any more.
type End struct {
	// Rest reports whether the prediction reached that state. Otherwise, these are the objects when
	// it was given up.
	Rest      bool         `json:"rest"`
	Buffers   []BufferEnd  `json:"capacityBuffers,omitempty"`
	Reserves  []ReserveEnd `json:"reserves,omitempty"`
	Pools     []PoolEnd    `json:"machineDeployments"`
	Balancers []SharesEnd  `json:"balancers,omitempty"`
	Federated []ClusterEnd `json:"federated,omitempty"`
}

// PoolEnd is the end of one MachineDeployment.
type PoolEnd struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Replicas and the applied excess at the end, and how many machines of the reserve replicas
	// include.
	Replicas int `json:"replicas"`
	Applied  int `json:"applied"`
	Counted  int `json:"counted,omitempty"`
	// Serve, Reserve and Leave are machines that exist now.
	Serve   []string `json:"serve,omitempty"`
	Reserve []string `json:"reserve,omitempty"`
	Leave   []string `json:"leave,omitempty"`
	// New machines.
	New Made `json:"new"`
	// Reason and Message are those of the condition ReserveReady; empty if there is none.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Same reports whether nothing differs from now.
	Same bool `json:"same,omitempty"`
}

// Made counts new machines.
type Made struct {
	Serve   int `json:"serve"`
	Reserve int `json:"reserve"`
}

// SharesEnd is the end of one Balancer.
type SharesEnd struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Was and Is are replicas by target.
	Was map[string]int64 `json:"was"`
	Is  map[string]int64 `json:"is"`
}

// ClusterEnd is the end of one federated autoscaler: bounds by cluster, as min-max.
type ClusterEnd struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Was       map[string]string `json:"was"`
	Is        map[string]string `json:"is"`
}

// compareEnd compares the objects at the end with those at the start.
func (w *world) compareEnd(rest bool, was Objects, shares map[string]balancerPlan) End {
	e := End{Rest: rest, Reserves: w.reserveEnds(was.Reserves)}
	before := newShelf(was.Deployments)
	for _, d := range newShelf(w.still.Deployments).sorted() {
		if left := w.deployments[keyOf(d)]; left != nil {
			d = left
		}
		e.Pools = append(e.Pools, w.poolEnd(d, before[keyOf(d)]))
	}
	for _, key := range slices.Sorted(maps.Keys(w.plans.balancer)) {
		b := SharesEnd{Namespace: w.balancers[key].Namespace, Name: w.balancers[key].Name, Was: map[string]int64{}, Is: map[string]int64{}}
		for _, s := range w.plans.balancer[key].Shares {
			b.Is[s.Name] = s.Next
		}
		for _, s := range shares[key].Shares {
			b.Was[s.Name] = s.Current
		}
		e.Balancers = append(e.Balancers, b)
	}
	return e
}

func (w *world) poolEnd(d, was *machine.MachineDeployment) PoolEnd {
	applied := pool.AppliedOf(d, d.Spec.Replicas)
	e := PoolEnd{Namespace: d.Namespace, Name: d.Name, Replicas: int(d.Spec.Replicas), Applied: applied.Excess, Counted: applied.Counted}
	if c := machinetaint.Condition(d); c != nil {
		e.Reason, e.Message = c.Reason, c.Message
	}
	e.Same = was != nil && int(was.Spec.Replicas) == e.Replicas
	before, now := newShelf(w.beforehand(d)), newShelf(w.machinesOf(d))
	for _, m := range now.sorted() {
		inReserve := pool.Marked(m)
		switch born := w.born[keyOf(m)]; {
		case born && inReserve:
			e.New.Reserve++
		case born:
			e.New.Serve++
		case inReserve:
			e.Reserve = append(e.Reserve, m.Name)
		default:
			e.Serve = append(e.Serve, m.Name)
		}
		was := before[keyOf(m)]
		e.Same = e.Same && was != nil && pool.Marked(was) == inReserve
	}
	for _, m := range before.sorted() {
		if now[keyOf(m)] == nil {
			e.Leave, e.Same = append(e.Leave, m.Name), false
		}
	}
	return e
}

// beforehand returns the machines that a MachineDeployment had.
func (w *world) beforehand(d *machine.MachineDeployment) []*mcm.Machine {
	var all []*mcm.Machine
	sets, machines := newShelf(w.still.Sets), newShelf(w.still.Machines)
	for _, set := range sets.ownedBy(d.UID) {
		all = append(all, machines.ownedBy(set.UID)...)
	}
	return all
}

// Changes describes what differs from now; empty if nothing does.
func (e SharesEnd) Changes() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(e.Is)) {
		if e.Is[name] != e.Was[name] {
			lines = append(lines, fmt.Sprintf("%s %d -> %d", name, e.Was[name], e.Is[name]))
		}
	}
	return lines
}

// Changes describes what differs from now; empty if nothing does.
func (e ClusterEnd) Changes() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(e.Is)) {
		if e.Is[name] != e.Was[name] {
			lines = append(lines, fmt.Sprintf("%s %s -> %s", name, cmp.Or(e.Was[name], "none"), e.Is[name]))
		}
	}
	return lines
}

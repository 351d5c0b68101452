// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
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
	// Ties are machines that the order does not distinguish. They are in none of the lists above.
	Ties []Tie `json:"ties,omitempty"`
	// New machines.
	New Made `json:"new"`
	// Reason and Message are those of the condition ReserveReady; empty if there is none.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Same reports whether nothing differs from now.
	Same bool `json:"same,omitempty"`
}

// Tie is a set of machines, some of which are deleted.
type Tie struct {
	Machines []string `json:"machines"`
	Leave    int      `json:"leave"`
	Serve    int      `json:"serve"`
	Reserve  int      `json:"reserve"`
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
	for _, key := range slices.Sorted(maps.Keys(w.deployments)) {
		e.Pools = append(e.Pools, w.poolEnd(w.deployments[key], before[key]))
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
	if c := condition(d); c != nil {
		e.Reason, e.Message = c.Reason, c.Message
	}
	there := w.beforehand(d)
	tied := w.tiesOf(there, &e)
	e.Same = len(tied) == 0 && was != nil && int(was.Spec.Replicas) == e.Replicas
	for _, m := range there {
		if tied[keyOf(m)] {
			continue
		}
		now, left := w.machines[keyOf(m)]
		switch {
		case !left:
			e.Leave = append(e.Leave, m.Name)
		case pool.Marked(now):
			e.Reserve = append(e.Reserve, m.Name)
		default:
			e.Serve = append(e.Serve, m.Name)
		}
		e.Same = e.Same && left && pool.Marked(now) == pool.Marked(m)
	}
	for _, m := range w.machinesOf(d) {
		switch {
		case !w.born[keyOf(m)]:
			continue
		case pool.Marked(m):
			e.New.Reserve++
		default:
			e.New.Serve++
		}
		e.Same = false
	}
	return e
}

// beforehand returns the machines that a MachineDeployment had, by name.
func (w *world) beforehand(d *machine.MachineDeployment) []*mcm.Machine {
	var all []*mcm.Machine
	sets, machines := newShelf(w.still.Sets), newShelf(w.still.Machines)
	for _, set := range sets.ownedBy(d.UID) {
		all = append(all, machines.ownedBy(set.UID)...)
	}
	return sorted(all)
}

// tiesOf returns the keys of the machines that are in a tie, and adds the ties to the end.
func (w *world) tiesOf(there []*mcm.Machine, e *PoolEnd) map[string]bool {
	in, before := map[string]bool{}, newShelf(there)
	left := func(key string) bool { return w.machines[key] != nil }
	for _, keys := range w.ties.undecided(left) {
		tie := Tie{}
		for _, key := range keys {
			if before[key] == nil {
				continue // another MachineDeployment's, or created after all, with an unknown name
			}
			in[key] = true
			tie.Machines = append(tie.Machines, before[key].Name)
			switch m := w.machines[key]; {
			case m == nil:
				tie.Leave++
			case pool.Marked(m):
				tie.Reserve++
			default:
				tie.Serve++
			}
		}
		if len(tie.Machines) > 0 {
			e.Ties = append(e.Ties, tie)
		}
	}
	return in
}

func condition(d *machine.MachineDeployment) *mcm.MachineDeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == machine.ReserveReady {
			return &d.Status.Conditions[i]
		}
	}
	return nil
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

// inOrder returns machines in the order in which machine-controller-manager would delete them, by
// its own code.
func inOrder(machines []*mcm.Machine) []*mcm.Machine {
	machines = slices.Clone(machines)
	sort.Stable(controller.ActiveMachines(machines))
	return machines
}

// tiedMachines returns the keys of the machines on both sides of the cut that the order does not
// distinguish, or none.
func tiedMachines(machines []*mcm.Machine, cut int) []string {
	if cut <= 0 || cut >= len(machines) {
		return nil
	}
	same := func(i, j int) bool {
		order := controller.ActiveMachines(machines)
		return !order.Less(i, j) && !order.Less(j, i)
	}
	if !same(cut-1, cut) {
		return nil
	}
	var keys []string
	for i, m := range machines {
		if same(i, cut) {
			keys = append(keys, keyOf(m))
		}
	}
	return keys
}

// ties are sets of machines by key. Some machines of each are deleted; it cannot be predicted which.
type ties []map[string]bool

// merge adds a set, and joins all sets that share a machine.
func (t ties) merge(keys []string) ties {
	if len(keys) == 0 {
		return t
	}
	joined, rest := map[string]bool{}, ties{}
	for _, key := range keys {
		joined[key] = true
	}
	for _, set := range t {
		if slices.ContainsFunc(keys, func(key string) bool { return set[key] }) {
			maps.Copy(joined, set)
			continue
		}
		rest = append(rest, set)
	}
	return append(rest, joined)
}

// undecided returns the sets that are left in part, sorted.
func (t ties) undecided(left func(key string) bool) [][]string {
	var all [][]string
	for _, set := range t {
		keys := slices.Sorted(maps.Keys(set))
		if slices.ContainsFunc(keys, left) && !allOf(keys, left) {
			all = append(all, keys)
		}
	}
	slices.SortFunc(all, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return all
}

func allOf(keys []string, is func(string) bool) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return !is(key) })
}

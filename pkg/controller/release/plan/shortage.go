// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// maxShortages is of how many gangs one decision says what they lack.
	maxShortages = 4
	// maxLacking is how many machines of one pool are counted that a gang lacks.
	maxLacking = 100
)

// Shortage is what a gang lacks that the reserve cannot hold.
type Shortage struct {
	// Group is its namespace/name, and Pods is how many pods have to start together.
	Group string
	Pods  int
	// Member is one of these pods.
	Member *corev1.Pod
	// Lacking are machines beside those that can be released; empty if no number of machines suffices.
	Lacking []Lacking
}

// Lacking is a number of machines of a pool. Max is that of the pool's bounds, if it leaves no room for
// them, else 0.
type Lacking struct {
	Pool     string
	Machines int
	Max      int
	// Zone and Devices describe a machine: its zone, and the extended resources that the pods request.
	Zone    string
	Devices corev1.ResourceList
}

// shortageOf finds out which machines a gang lacks, by adding machines to the reserve of each pool.
func (r *round) shortageOf(name string, g *gang) Shortage {
	s := Shortage{Group: name, Pods: g.least, Member: g.pods[0].Object}
	nodes := slices.DeleteFunc(slices.Clone(r.nodes), func(n fit.Node) bool { return r.opened[n.Object.Name] != nil })
	groups := r.groupsOf("")
	pools := map[string]Pool{}
	for _, p := range r.Pools {
		pools[p.Key] = p
	}
	ready := make([]int, len(groups))
	for i := range groups {
		group := &groups[i]
		ready[i] = max(0, min(len(group.Nodes), group.Limit))
		group.Nodes = slices.Clone(group.Nodes[:ready[i]])
		if sample := pools[group.Name].Sample; sample != nil {
			for n := range min(len(g.pods), maxLacking) {
				added := nodeLike(sample, fmt.Sprintf("%s/lacking/%d", group.Name, n))
				pool.AddReserveTaint(added)
				nodes = append(nodes, fit.Node{Object: added, Closed: true, Without: reserveTaint, Pods: r.missingDaemons(Node{Object: added})})
				group.Nodes = append(group.Nodes, added.Name)
			}
		}
		group.Limit = len(group.Nodes)
	}
	packing := fit.Pack(fit.NewRoom(nodes), fit.Demand{Pods: g.pods, Least: g.least, Budget: fit.MaxWork / maxShortages, Interrupted: r.Interrupted}, groups)
	for i, n := range packing.Opened {
		if n > ready[i] {
			s.Lacking = append(s.Lacking, lackingOf(pools[groups[i].Name], n, n-ready[i], g.pods))
		}
	}
	return s
}

// lackingOf describes machines of a pool that pods lack, of a number that they need in all.
func lackingOf(p Pool, needed, lacking int, pods []*fit.Pod) Lacking {
	l := Lacking{Pool: p.Key, Machines: lacking, Zone: p.Sample.Labels[corev1.LabelTopologyZone], Devices: corev1.ResourceList{}}
	if p.Replicas+needed > p.Max {
		l.Max = p.Max
	}
	for _, pod := range pods {
		for name := range fit.Requests(pod.Object) {
			if amount, has := p.Sample.Status.Allocatable[name]; has && !slices.Contains(usualResources, name) {
				l.Devices[name] = amount
			}
		}
	}
	return l
}

var usualResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage}

// addShortages says what the most important gangs lack, of those for which there are too few machines.
func (r *round) addShortages(gangs []*gang) {
	for _, g := range gangs {
		if len(r.plan.Shortages) == maxShortages {
			return
		}
		if r.plan.Pods[g.pods[0].Name()] == NoReserve && !r.hasPlace(g) {
			r.plan.Shortages = append(r.plan.Shortages, r.shortageOf(GroupName(g.pods[0]), g))
		}
	}
}

// hasPlace reports whether pods of a gang start.
func (r *round) hasPlace(g *gang) bool {
	return slices.ContainsFunc(g.pods, func(p *fit.Pod) bool { return r.plan.Pods[p.Name()] != NoReserve })
}

// String describes the machines.
func (l Lacking) String() string {
	text := plural.Of(l.Machines, "machine") + " of MachineDeployment " + l.Pool
	var about []string
	if l.Zone != "" {
		about = append(about, "zone "+l.Zone)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Devices)) {
		amount := l.Devices[name]
		about = append(about, fmt.Sprintf("%s: %s", name, amount.String()))
	}
	if l.Max > 0 {
		about = append(about, fmt.Sprintf("max is %d", l.Max))
	}
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return text
}

// String describes the shortage.
func (s Shortage) String() string {
	pods := plural.Of(s.Pods, "pod")
	if len(s.Lacking) == 0 {
		return fmt.Sprintf("%s must start together, and no MachineDeployment with bounds has suitable machines", pods)
	}
	var texts []string
	for _, l := range s.Lacking {
		texts = append(texts, l.String())
	}
	return fmt.Sprintf("%s must start together, and the reserve lacks %s", pods, strings.Join(texts, " and "))
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/evenkeel/evenkeel/pkg/similar"
)

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

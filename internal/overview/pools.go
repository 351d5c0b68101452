// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// pools groups MachineDeployments as the balance controller does: by the pool that they name, and
// the rest by similarity.
func (r *reading) pools() []Pool {
	pools := []Pool{}
	spaces := map[string][]*v1alpha1.MachineDeployment{}
	for _, d := range r.Deployments {
		spaces[d.Namespace] = append(spaces[d.Namespace], d)
	}
	for _, deployments := range spaces {
		slices.SortFunc(deployments, byName)
		named, rest := r.byPoolName(deployments)
		for name, members := range named {
			pools = append(pools, r.poolFrom(name, members))
		}
		for _, members := range r.similarGroups(rest) {
			pools = append(pools, r.poolFrom(commonName(members), members))
		}
	}
	slices.SortFunc(pools, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Zones[0].Name, b.Zones[0].Name))
	})
	return pools
}

// byPoolName returns the MachineDeployments that name their pool, by its name, and the rest.
func (r *reading) byPoolName(deployments []*v1alpha1.MachineDeployment) (pools map[string][]*v1alpha1.MachineDeployment, rest []*v1alpha1.MachineDeployment) {
	pools = map[string][]*v1alpha1.MachineDeployment{}
	for _, d := range deployments {
		if name := pool.NameOf(d, r.PoolLabels...); name != "" {
			pools[name] = append(pools[name], d)
		} else {
			rest = append(rest, d)
		}
	}
	return pools, rest
}

// similarGroups returns groups of MachineDeployments whose machines differ only in the zone. A
// MachineDeployment that is similar to no other, or whose machines are not known, is a group of its
// own.
func (r *reading) similarGroups(deployments []*v1alpha1.MachineDeployment) [][]*v1alpha1.MachineDeployment {
	var groups [][]*v1alpha1.MachineDeployment
	var templates []similar.Template
	byName := map[string]*v1alpha1.MachineDeployment{}
	for _, d := range deployments {
		if t, known := r.template(d); known {
			templates, byName[d.Name] = append(templates, t), d
		} else {
			groups = append(groups, []*v1alpha1.MachineDeployment{d})
		}
	}
	for _, names := range similar.Groups(templates, *r.Similar) {
		var members []*v1alpha1.MachineDeployment
		for _, name := range slices.Sorted(slices.Values(names)) {
			members = append(members, byName[name])
		}
		groups = append(groups, members)
	}
	return groups
}

// template returns what a fresh machine offers: as a Node shows it, otherwise by the MachineClass.
func (r *reading) template(d *v1alpha1.MachineDeployment) (similar.Template, bool) {
	s := r.snapshots[d]
	var candidates []similar.Candidate
	for _, m := range s.Machines {
		if m.Node != nil {
			candidates = append(candidates, similar.Candidate{Node: m.Node, Reserve: m.Marked()})
		}
	}
	taints := d.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints
	if t, known := similar.Choose(d.Name, candidates, r.source.Pods, r.At); known {
		t.Taints = taints
		return t, true
	}
	if s.Class == nil {
		return similar.Template{}, false
	}
	t, known := similar.FromClass(d.Name, s.Class.NodeTemplate, d.Spec.Template.Spec.NodeTemplateSpec.Labels)
	t.Taints = taints
	return t, known
}

// commonName returns a name for MachineDeployments without a label: the common prefix of their
// names, without the first letters of the zone.
func commonName(members []*v1alpha1.MachineDeployment) string {
	name := members[0].Name
	if len(members) == 1 {
		return name
	}
	for _, d := range members[1:] {
		n := 0
		for n < len(name) && n < len(d.Name) && name[n] == d.Name[n] {
			n++
		}
		name = name[:n]
	}
	if i := strings.LastIndex(name, "-"); i > 0 {
		name = name[:i]
	}
	return cmp.Or(strings.TrimRight(name, "-."), members[0].Name)
}

func (r *reading) poolFrom(name string, members []*v1alpha1.MachineDeployment) Pool {
	p := Pool{Namespace: members[0].Namespace, Name: name, Excess: poolExcess(members)}
	for _, d := range members {
		p.Zones = append(p.Zones, r.zoneFrom(d))
	}
	slices.SortStableFunc(p.Zones, func(a, b Zone) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Name, b.Name))
	})
	byReplicas := func(a, b Zone) int { return cmp.Compare(a.Replicas, b.Replicas) }
	p.Skew = slices.MaxFunc(p.Zones, byReplicas).Replicas - slices.MinFunc(p.Zones, byReplicas).Replicas
	return p
}

// poolExcess returns the excess that members request for their pool. All members have the same
// value, except for moments while they are changed one after the other; then all values are shown.
func poolExcess(members []*v1alpha1.MachineDeployment) string {
	said := map[string]bool{}
	for _, d := range members {
		if text, set := d.Spec.Template.Spec.NodeTemplateSpec.Annotations[v1alpha1.PoolExcessAnnotation]; set {
			said[text] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(said)), " or ")
}

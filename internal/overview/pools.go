// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
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

// zoneFrom returns a MachineDeployment as it is shown.
func (r *reading) zoneFrom(d *v1alpha1.MachineDeployment) Zone {
	s := r.snapshots[d]
	z := Zone{
		Name: d.Name, Zone: placeOf(s), Replicas: s.Requested, Counted: s.Applied.Counted, Rollout: s.Rollout.Replacing, Applied: s.Applied.Excess, Asked: excessText(s),
		ReserveReady: conditionOf(d, v1alpha1.ReserveReady), Machines: r.machines(s), Count: map[State]int{},
	}
	if b := s.Wishes.Bounds; b != nil {
		z.Bounds = &Bounds{Min: int(b.Min), Max: int(b.Max)}
	}
	z.Excess, z.Limited = r.excess(s)
	z.Dedicated = v1alpha1.DedicationsText(pool.Dedications(d, s.Requested))
	if r := requested(s); r != nil {
		z.Reserve = r.Reserve
	}
	if r.asksForImages(d) {
		z.Prepared = ptr.To(int(d.Status.ReadyExcessReplicas))
	}
	for _, m := range z.Machines {
		z.Count[m.State]++
	}
	r.sampleOf(s, z)
	r.inspect(d, z)
	return z
}

// excess returns how many machines the reserve should have: the applied number if the desired one
// is unknown, as in the controller. It also reports whether max leaves no room for more of them, if
// there are bounds.
func (r *reading) excess(s pool.Snapshot) (machines int, limited bool) {
	wanted, err := reserve.Effective(s.Wishes, s.Workload, s.Allocatable)
	switch {
	case pool.Drained(s.Deployment), r.Draining[s.Deployment.Namespace]:
		return 0, false
	case s.WishesErr != nil || err != nil:
		return max(0, min(s.Applied.Excess, s.Applied.Max-s.Workload)), false
	}
	return wanted.Excess, s.Wishes.Bounds != nil && wanted.Excess < wanted.Wish
}

// excessText returns the text of the excess that applies, or of an invalid one.
func excessText(s pool.Snapshot) string {
	if r := requested(s); r != nil {
		return strconv.Itoa(int(r.Machines))
	}
	return ownExcessText(s)
}

// requested returns what a Reserve requests if that is more than the MachineDeployment's own excess.
func requested(s pool.Snapshot) *v1alpha1.RequestedExcess {
	own := s.Wishes
	own.Requested = nil
	wanted, err := reserve.Effective(own, s.Workload, s.Allocatable)
	if r := s.Wishes.Requested; err == nil && s.WishesErr == nil && r != nil && int(r.Machines) > wanted.Wish {
		return r
	}
	return nil
}

func ownExcessText(s pool.Snapshot) string {
	w, annotations := s.Wishes, s.Deployment.Annotations
	share, shared := annotations[v1alpha1.ShareAnnotation]
	switch bounds, bounded := annotations[v1alpha1.BoundsAnnotation]; {
	case bounded && w.Bounds == nil:
		return bounds
	case shared:
		return share
	case bounded && w.Bounds.Excess != nil:
		return w.Bounds.Excess.String()
	case w.Field != nil:
		return strconv.Itoa(int(*w.Field))
	}
	return ""
}

// placeOf returns where its machines are: by a Node, otherwise by the template, otherwise by the
// MachineClass.
func placeOf(s pool.Snapshot) string {
	for _, m := range s.Machines {
		if m.Node != nil && m.Node.Labels[corev1.LabelTopologyZone] != "" {
			return m.Node.Labels[corev1.LabelTopologyZone]
		}
	}
	if place := s.Deployment.Spec.Template.Spec.NodeTemplateSpec.Labels[corev1.LabelTopologyZone]; place != "" {
		return place
	}
	if s.Class != nil && s.Class.NodeTemplate != nil {
		return s.Class.NodeTemplate.Zone
	}
	return ""
}

// conditionOf returns a condition of a MachineDeployment.
func conditionOf(d *v1alpha1.MachineDeployment, kind mcm.MachineDeploymentConditionType) Condition {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return Condition{}
}

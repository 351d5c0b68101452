// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"strconv"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

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

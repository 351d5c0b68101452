// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"maps"
	"strconv"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// zone is one MachineDeployment as it is shown.
func (r *reading) zone(d *v1alpha1.MachineDeployment) Zone {
	machines, rollout := r.machinesOf(d)
	z := Zone{
		Name: d.Name, Zone: r.placeOf(d, machines), Replicas: max(0, int(d.Spec.Replicas)), Rollout: rollout,
		Applied: reserve.AppliedOf(d.Annotations).Excess, ReserveReady: conditionOf(d, v1alpha1.ReserveReady),
		Machines: r.machinesIn(d, machines), Count: map[State]int{},
	}
	if b, err := v1alpha1.ParseBounds(d.Annotations[v1alpha1.BoundsAnnotation]); err == nil {
		z.Bounds = &Bounds{Min: int(b.Min), Max: int(b.Max)}
	}
	z.Excess, z.Asked = r.excess(d, machines)
	for _, m := range z.Machines {
		z.Count[m.State]++
	}
	r.sampleOf(d, z)
	r.inspect(d, z)
	return z
}

// excess is how many machines are wanted in reserve, and how that was written. Where that cannot be understood it is
// what is applied, as the controller has it.
func (r *reading) excess(d *v1alpha1.MachineDeployment, machines []*mcm.Machine) (x int, asked string) {
	wishes, asked, err := wishesOf(d)
	switch {
	case err != nil:
		return reserve.AppliedOf(d.Annotations).Excess, asked
	case d.Annotations[v1alpha1.DrainReserveAnnotation] == "true":
		return 0, asked
	}
	replicas := max(0, int(pool.Workload(d, d.Spec.Replicas)))
	wanted, err := reserve.Effective(wishes, replicas, r.allocatable(d, machines))
	if err != nil {
		return reserve.AppliedOf(d.Annotations).Excess, asked
	}
	return wanted.Excess, asked
}

// wishesOf reads all that says how much excess is wanted, and the text of what counts.
func wishesOf(d *v1alpha1.MachineDeployment) (w reserve.Wishes, asked string, err error) {
	if w.Field = d.Spec.ExcessReplicas; w.Field == nil {
		if n, err := v1alpha1.ParseShare(d.Annotations[v1alpha1.WantedExcessAnnotation]); err == nil {
			w.Field = &n // it has vanished, and is about to be restored
		}
	}
	if w.Field != nil {
		asked = strconv.Itoa(int(*w.Field))
	}
	if text, set := d.Annotations[v1alpha1.BoundsAnnotation]; set {
		b, err := v1alpha1.ParseBounds(text)
		if err != nil {
			return w, text, err
		}
		if w.Bounds = &b; b.Excess != nil {
			asked = b.Excess.String()
		}
	}
	if text, set := d.Annotations[v1alpha1.ShareAnnotation]; set {
		share, err := v1alpha1.ParseShare(text)
		if err != nil {
			return w, text, err
		}
		w.Share, asked = &share, text
	}
	return w, asked, nil
}

// allocatable is what one machine has for pods: what a Node of it that is ready says, else what the MachineClass
// promises.
func (r *reading) allocatable(d *v1alpha1.MachineDeployment, machines []*mcm.Machine) corev1.ResourceList {
	for _, m := range machines {
		if n := r.nodes[m.Labels[mcm.NodeLabelKey]]; n != nil && readyNode(n) {
			return n.Status.Allocatable
		}
	}
	class := r.classOf(d)
	if class == nil || class.NodeTemplate == nil {
		return nil
	}
	all := corev1.ResourceList{}
	maps.Copy(all, class.NodeTemplate.Capacity)
	maps.Copy(all, class.NodeTemplate.VirtualCapacity)
	return all
}

func (r *reading) classOf(d *v1alpha1.MachineDeployment) *mcm.MachineClass {
	return r.classes[d.Namespace+"/"+d.Spec.Template.Spec.Class.Name]
}

func readyNode(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// placeOf is where its machines are: as a Node says, else the template, else the MachineClass.
func (r *reading) placeOf(d *v1alpha1.MachineDeployment, machines []*mcm.Machine) string {
	for _, m := range machines {
		if n := r.nodes[m.Labels[mcm.NodeLabelKey]]; n != nil && n.Labels[corev1.LabelTopologyZone] != "" {
			return n.Labels[corev1.LabelTopologyZone]
		}
	}
	if place := d.Spec.Template.Spec.NodeTemplateSpec.Labels[corev1.LabelTopologyZone]; place != "" {
		return place
	}
	if class := r.classOf(d); class != nil && class.NodeTemplate != nil {
		return class.NodeTemplate.Zone
	}
	return ""
}

// conditionOf is one of a MachineDeployment's conditions.
func conditionOf(d *v1alpha1.MachineDeployment, kind mcm.MachineDeploymentConditionType) Condition {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return Condition{}
}

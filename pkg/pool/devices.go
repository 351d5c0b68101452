// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// DeviceClasses returns the DeviceClasses whose devices are requested by the bounds of a
// MachineDeployment, or by the excess of its pool.
func DeviceClasses(d *machine.MachineDeployment) []string {
	var classes []string
	worker := d.Spec.Template.Spec.NodeTemplateSpec.Annotations
	for _, annotations := range []map[string]string{d.Annotations, worker} {
		if bounds, _ := Parsed(annotations, machine.BoundsAnnotation, machine.ParseBounds); bounds != nil && bounds.Excess != nil {
			classes = append(classes, bounds.Excess.DeviceClasses()...)
		}
	}
	if excess, _ := Parsed(worker, machine.PoolExcessAnnotation, machine.ParseExcess); excess != nil {
		classes = append(classes, excess.DeviceClasses()...)
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// Unknown is why the amounts of resources are not known, by resource.
type Unknown map[corev1.ResourceName]string

// String returns all reasons in one line, empty if there are none.
func (u Unknown) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(u)) {
		all = append(all, fmt.Sprintf("%s: %s", name, u[name]))
	}
	return strings.Join(all, "; ")
}

// CountDevices adds how many devices of these DeviceClasses one machine has. Where no Node shows any,
// the MachineClass counts.
func (s *Snapshot) CountDevices(source Source, classes []string) {
	for _, class := range classes {
		name := machine.DevicesOf(class)
		n, unknown := s.devices(source, class)
		switch has := s.Allocatable[name]; {
		case n > 0:
			s.Allocatable = withAmount(s.Allocatable, name, int64(n))
		case has.IsZero():
			s.Unknown = s.Unknown.with(name, unknown)
		}
	}
}

// devices returns how many devices of a class a ready Node has, the sample first: a driver may not have
// started on every Node, and one that boots is to have as many as the others.
func (s *Snapshot) devices(source Source, class string) (n int, unknown string) {
	nodes := s.readyNodes()
	if len(nodes) == 0 {
		return 0, fmt.Sprintf("no Node is ready that shows how many a machine has: wait for one, or add %s to virtualCapacity in the nodeTemplate of the MachineClass", machine.DevicesOf(class))
	}
	for _, node := range nodes {
		has, why := source.Devices(node.Name, class)
		if has > 0 {
			return has, ""
		}
		unknown = cmp.Or(unknown, why)
	}
	return 0, cmp.Or(unknown, "devices have not been read")
}

// readyNodes returns the ready Nodes: the sample, those of the present template, and then others.
func (s *Snapshot) readyNodes() []*corev1.Node {
	var present, others []*corev1.Node
	for _, m := range s.Machines {
		switch {
		case m.Node == nil || m.Node == s.Sample || !NodeReady(m.Node):
		case m.Set == s.Rollout.Set:
			present = append(present, m.Node)
		default:
			others = append(others, m.Node)
		}
	}
	if s.Sample != nil {
		present = slices.Insert(present, 0, s.Sample)
	}
	return append(present, others...)
}

func withAmount(list corev1.ResourceList, name corev1.ResourceName, n int64) corev1.ResourceList {
	all := corev1.ResourceList{}
	maps.Copy(all, list)
	all[name] = *resource.NewQuantity(n, resource.DecimalSI)
	return all
}

func (u Unknown) with(name corev1.ResourceName, why string) Unknown {
	all := Unknown{}
	maps.Copy(all, u)
	all[name] = why
	return all
}

// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"encoding/json"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

// All writes are merge patches on the version they were decided on: what this program does not know of an object stays.

type tree = map[string]any

// machine returns the Machine of that name; plans name only machines of their view.
func (v View) machine(name string) *mcm.Machine {
	for _, m := range v.Machines {
		if m.Object.Name == name {
			return m.Object
		}
	}
	return nil
}

// changed is a Machine as a change leaves it.
func changed(m *mcm.Machine, change MachineChange, v View) *mcm.Machine {
	after := m
	switch change.Mark {
	case Free:
		after = view.Unmark(m)
	case Hold:
		after = view.Mark(m, v.Settings.mark(v.Now))
	}
	if change.Priority != 0 {
		after = annotated(after, machineutils.MachinePriority, fmt.Sprint(change.Priority))
	}
	if change.State != nil {
		after = annotated(after, v1alpha1.ReserveStateAnnotation, *change.State)
	}
	return after
}

// annotated is a copy of a Machine with an annotation, or without it where the value is empty.
func annotated(m *mcm.Machine, key, value string) *mcm.Machine {
	m = m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	if m.Annotations[key] = value; value == "" {
		delete(m.Annotations, key)
	}
	return m
}

// machinePatch says what differs of a Machine: annotations, and taints and annotations of its node template.
func machinePatch(before, after *mcm.Machine) []byte {
	patch := guarded(before.ResourceVersion, difference(before.Annotations, after.Annotations))
	was, is := before.Spec.NodeTemplateSpec, after.Spec.NodeTemplateSpec
	template := tree{}
	if !slices.EqualFunc(was.Spec.Taints, is.Spec.Taints, sameTaint) {
		template["spec"] = tree{"taints": orNullList(is.Spec.Taints)}
	}
	if d := difference(was.Annotations, is.Annotations); len(d) > 0 {
		template["metadata"] = tree{"annotations": d}
	}
	if len(template) > 0 {
		patch["spec"] = tree{"nodeTemplate": template}
	}
	return encode(patch)
}

func nodePatch(n NodeChange) []byte {
	annotations := tree{}
	for key, value := range n.Annotations {
		annotations[key] = orNull(value)
	}
	patch := guarded(n.Machine.Node.ResourceVersion, annotations)
	if !slices.EqualFunc(n.Taints, n.Machine.Node.Spec.Taints, sameTaint) {
		patch["spec"] = tree{"taints": orNullList(n.Taints)}
	}
	return encode(patch)
}

func deploymentPatch(d *v1alpha1.MachineDeployment, change DeploymentChange) []byte {
	annotations := tree{}
	for key, value := range change.Annotations {
		annotations[key] = orNull(value)
	}
	spec := tree{}
	if change.Replicas != 0 {
		spec["replicas"] = d.Spec.Replicas + int32(change.Replicas)
	}
	switch {
	case change.Field != nil:
		spec["excessReplicas"] = *change.Field
	case change.LetGo != "" && d.Spec.ExcessReplicas != nil:
		spec["excessReplicas"] = nil
	}
	patch := guarded(d.ResourceVersion, annotations)
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	if metadata, is := patch["metadata"].(tree); is && change.Managed != nil {
		metadata["managedFields"] = change.Managed
	}
	return encode(patch)
}

// statusPatch replaces the conditions whole, which the version makes safe.
func statusPatch(d *v1alpha1.MachineDeployment, s v1alpha1.MachineDeploymentStatus) []byte {
	patch := guarded(d.ResourceVersion, nil)
	patch["status"] = tree{
		"excessReplicas": orNull(s.ExcessReplicas), "readyExcessReplicas": orNull(s.ReadyExcessReplicas),
		"conditions": orNullList(s.Conditions),
	}
	return encode(patch)
}

func guarded(version string, annotations tree) tree {
	metadata := tree{"resourceVersion": version}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return tree{"metadata": metadata}
}

// difference is a merge patch from one map to another.
func difference(was, is map[string]string) tree {
	d := tree{}
	for key := range was {
		if _, there := is[key]; !there {
			d[key] = nil
		}
	}
	for key, value := range is {
		if old, there := was[key]; !there || old != value {
			d[key] = value
		}
	}
	return d
}

// orNull is null, which removes, for the zero value.
func orNull[T comparable](value T) any {
	var zero T
	if value == zero {
		return nil
	}
	return value
}

func orNullList[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

func encode(patch tree) []byte {
	text, err := json.Marshal(patch)
	if err != nil {
		panic(fmt.Sprintf("encode patch: %v", err)) // made of strings and API types, which always encode
	}
	return text
}

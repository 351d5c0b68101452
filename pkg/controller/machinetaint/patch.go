// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"encoding/json"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// All writes are merge patches on the version that they were decided on, so fields that this
// program does not know are kept.

type tree = map[string]any

// machinePatch returns the differences of a Machine: annotations, and taints and annotations of its
// node template.
func machinePatch(before, after *mcm.Machine) []byte {
	patch := guarded(before.ResourceVersion, mapPatch(before.Annotations, after.Annotations))
	was, is := before.Spec.NodeTemplateSpec, after.Spec.NodeTemplateSpec
	template := tree{}
	if !slices.EqualFunc(was.Spec.Taints, is.Spec.Taints, fit.SameTaint) {
		template["spec"] = tree{"taints": orNullList(is.Spec.Taints)}
	}
	if d := mapPatch(was.Annotations, is.Annotations); len(d) > 0 {
		template["metadata"] = tree{"annotations": d}
	}
	if len(template) > 0 {
		patch["spec"] = tree{"nodeTemplate": template}
	}
	return encode(patch)
}

func nodePatch(n plan.NodeChange) []byte {
	annotations := tree{}
	for key, value := range n.Annotations {
		annotations[key] = orNull(value)
	}
	patch := guarded(n.Machine.Node.ResourceVersion, annotations)
	if !slices.EqualFunc(n.Taints, n.Machine.Node.Spec.Taints, fit.SameTaint) {
		patch["spec"] = tree{"taints": orNullList(n.Taints)}
	}
	return encode(patch)
}

func deploymentPatch(d *v1alpha1.MachineDeployment, change plan.DeploymentChange) []byte {
	annotations := tree{}
	for key, value := range change.Annotations {
		annotations[key] = orNull(value)
	}
	spec := tree{}
	if change.Replicas != 0 {
		spec["replicas"] = d.Spec.Replicas + int32(change.Replicas)
	}
	if change.Field != nil {
		spec["excessReplicas"] = *change.Field
	}
	if change.Witness != nil {
		spec["reserveWitness"] = orNull(*change.Witness)
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

// statusPatch replaces all conditions, which is safe because of the version.
func statusPatch(d *v1alpha1.MachineDeployment, s v1alpha1.MachineDeploymentStatus) []byte {
	patch := guarded(d.ResourceVersion, nil)
	patch["status"] = tree{
		"excessReplicas": orNull(s.ExcessReplicas), "readyExcessReplicas": orNull(s.ReadyExcessReplicas),
		"selector": orNull(s.Selector), "conditions": orNullList(s.Conditions),
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

// mapPatch returns a merge patch from one map to another.
func mapPatch(was, is map[string]string) tree {
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

// orNull returns null, which removes a field, for the zero value.
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

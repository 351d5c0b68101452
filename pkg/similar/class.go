// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

const (
	// usualPods is the default limit of pods of a kubelet.
	usualPods = 110
	// A MachineClass names GPUs in this way; a Node names them by vendor.
	classGPU, nodeGPU corev1.ResourceName = "gpu", "nvidia.com/gpu"
)

// FromClass estimates a template from the nodeTemplate of a MachineClass and the labels of the
// MachineDeployment's own node template; false if the class has no nodeTemplate.
func FromClass(name string, class *v1alpha1.NodeTemplate, labels map[string]string) (Template, bool) {
	if class == nil {
		return Template{}, false
	}
	capacity := ClassCapacity(class)
	return Template{
		Name:        name,
		Capacity:    capacity,
		Allocatable: capacity,
		Free:        capacity,
		Labels:      classLabels(class, labels),
		Estimated:   true,
	}, true
}

// ClassCapacity returns what a machine has for pods according to the nodeTemplate of its
// MachineClass, by the names that Nodes use.
func ClassCapacity(class *v1alpha1.NodeTemplate) corev1.ResourceList {
	capacity := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(usualPods, resource.DecimalSI)}
	maps.Copy(capacity, class.Capacity)
	if gpus, ok := capacity[classGPU]; ok {
		delete(capacity, classGPU)
		if _, named := capacity[nodeGPU]; !named && !gpus.IsZero() {
			capacity[nodeGPU] = gpus
		}
	}
	maps.Copy(capacity, class.VirtualCapacity)
	return capacity
}

// classLabels returns the labels that a kubelet and a cloud add to every Node, overridden by the
// pool's own.
func classLabels(class *v1alpha1.NodeTemplate, labels map[string]string) map[string]string {
	all := map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	if class.Architecture != nil && *class.Architecture != "" {
		all[corev1.LabelArchStable] = *class.Architecture
	}
	for label, value := range map[string]string{
		corev1.LabelInstanceTypeStable: class.InstanceType,
		corev1.LabelTopologyRegion:     class.Region,
		corev1.LabelTopologyZone:       class.Zone,
	} {
		if value != "" {
			all[label] = value
		}
	}
	maps.Copy(all, labels)
	return all
}

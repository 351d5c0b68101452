// SPDX-License-Identifier: Apache-2.0

package read

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// lastApplied is a whole object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// slim takes away what nobody looks at. The object is changed: it has just been read, and is ours.
func slim(o runtime.Object) runtime.Object {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
		if annotations := m.GetAnnotations(); annotations[lastApplied] != "" {
			delete(annotations, lastApplied)
		}
	}
	switch o := o.(type) {
	case *corev1.Pod:
		slimPod(o)
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesAttached, o.Status.VolumesInUse = nil, nil, nil
	case *mcm.MachineClass:
		o.ProviderSpec = runtime.RawExtension{}
	}
	return o
}

// slimPod keeps what says where a pod may run, and what it takes there.
func slimPod(p *corev1.Pod) {
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i, c := range containers {
			containers[i] = corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
		}
	}
	p.Spec.EphemeralContainers, p.Spec.HostAliases, p.Spec.ImagePullSecrets = nil, nil, nil
	conditions := p.Status.Conditions
	p.Status = corev1.PodStatus{Phase: p.Status.Phase, NominatedNodeName: p.Status.NominatedNodeName}
	for _, c := range conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			p.Status.Conditions = []corev1.PodCondition{c}
		}
	}
	if p.Spec.NodeName != "" {
		// Volumes matter for those that wait.
		p.Spec.Volumes = nil
	}
}

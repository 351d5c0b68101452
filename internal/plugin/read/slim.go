// SPDX-License-Identifier: Apache-2.0

package read

import (
	"maps"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	requests "k8s.io/component-helpers/resource"

	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// lastApplied contains the whole object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// slimObject removes the fields that are not read. It changes the object, which was just read and
// is not shared.
func slimObject(o runtime.Object) runtime.Object {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
		if annotations := m.GetAnnotations(); annotations[lastApplied] != "" {
			delete(annotations, lastApplied)
		}
	}
	switch o := o.(type) {
	case *corev1.Pod:
		trimPod(o)
		return Pod(o)
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesAttached, o.Status.VolumesInUse = nil, nil, nil
	case *mcm.MachineClass:
		o.ProviderSpec = runtime.RawExtension{}
	}
	return o
}

// trimPod keeps the fields of a pod that a screen shows. Volumes matter only for waiting pods.
func trimPod(p *corev1.Pod) {
	conditions := p.Status.Conditions
	p.Status.Conditions = nil
	for _, c := range conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			p.Status.Conditions = []corev1.PodCondition{c}
		}
	}
	if p.Spec.NodeName != "" {
		p.Spec.Volumes = nil
	}
}

// longest is the length of the longest annotation value of a pod that is kept: the ones that are
// read are true, false or a name.
const longest = 253

// Pod keeps what determines where a pod may run, what it uses there, and its state. The result
// takes at most [fit.MaxBytes] besides its state, because users decide how many pods there are and
// how large they are. It changes the pod.
func Pod(p *corev1.Pod) *corev1.Pod {
	p.ManagedFields, p.Finalizers = nil, nil
	maps.DeleteFunc(p.Annotations, func(_, value string) bool { return len(value) > longest })
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i, c := range containers {
			containers[i] = corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
		}
	}
	p.Spec.EphemeralContainers, p.Spec.HostAliases, p.Spec.ImagePullSecrets = nil, nil, nil
	state := corev1.PodStatus{
		Phase: p.Status.Phase, NominatedNodeName: p.Status.NominatedNodeName, Conditions: p.Status.Conditions, StartTime: p.Status.StartTime,
	}
	keepResize(p, &state)
	keepPulling(p, &state)
	p.Status = corev1.PodStatus{}
	large, slim := p.Size() > fit.MaxBytes, p
	p.Status = state
	if large {
		slim = target.StripPod(p)
	}
	slim.Status = state
	return slim
}

// keepResize keeps what a pod has on its Node until it is resized, where that counts.
func keepResize(p *corev1.Pod, state *corev1.PodStatus) {
	if p.Spec.NodeName == "" {
		return
	}
	if equality.Semantic.DeepEqual(fit.Requests(p), requests.PodRequests(p, requests.PodResourcesOptions{})) {
		return
	}
	state.Resources, state.AllocatedResources = p.Status.Resources, p.Status.AllocatedResources
	state.ContainerStatuses, state.InitContainerStatuses = resourcesOf(p.Status.ContainerStatuses), resourcesOf(p.Status.InitContainerStatuses)
}

// maxPullMessage is how many bytes are kept of the message about an image.
const maxPullMessage = 1024

// keepPulling keeps how far a pod is that pulls images for a machine in reserve. It has one container.
func keepPulling(p *corev1.Pod, state *corev1.PodStatus) {
	if p.Labels[plan.Label] == "" || len(p.Status.ContainerStatuses) == 0 {
		return
	}
	c := corev1.ContainerStatus{State: p.Status.ContainerStatuses[0].State}
	if w := c.State.Waiting; w != nil {
		w.Message = strings.ToValidUTF8(w.Message[:min(len(w.Message), maxPullMessage)], "")
	}
	state.ContainerStatuses = []corev1.ContainerStatus{c}
}

func resourcesOf(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	kept := make([]corev1.ContainerStatus, 0, len(all))
	for _, c := range all {
		kept = append(kept, corev1.ContainerStatus{Name: c.Name, AllocatedResources: c.AllocatedResources, Resources: c.Resources})
	}
	return kept
}
